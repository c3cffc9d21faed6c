"""What the author of another compiler calls, so that its stages are shown: `stage`, and readers of dumped files.

Nothing here imports torch or anything of idbg: outside of a session a call of `stage` costs a comparison.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

GROUP = "idbg.stages"
"""The entry points of packages whose dumps are read: each a StageReader."""

LineLinksByKey = Mapping[int | str, str | Sequence[str]]
"""A line of the text (1-based), or a string that marks its lines (such as a debug handle), to the names of nodes of the
compiled graph. A debug handle of Inductor ("kernel:3") can stand for the nodes that it computes.
"""


class StageText(NamedTuple):
    """What a compiler made of a graph at one of its stages.

    `language` colours it ("mlir", "llvm", "xml", "json", "ptx", "sass", "asm", "python", "cpp"); where it is empty it
    is guessed. Bytes that are no text are listed with their size. Locations in MLIR, LLVM's debug information and
    OpenVINO's layer names are links without further `links`. `frame` is torch's compile id ("0/0"), and `part`
    "forward", "backward" or "inference"; where they are empty, they are those of the graph that is being compiled.
    """

    name: str
    text: str | bytes
    language: str = ""
    links: LineLinksByKey = MappingProxyType({})
    frame: str = ""
    part: str = ""


class StageReader(ABC):
    """Reads what one compiler dumps. Under the entry point `idbg.stages`; made without arguments, once a run.

    `compiler` is its name on the screen; `package` the module whose import means that the program uses the compiler.
    """

    compiler: str
    package: str

    @abstractmethod
    def dumping(self, folder: Path, ready: Callable[[], None]) -> AbstractContextManager[object]:
        """While it lasts, the compiler writes its dumps into `folder`, which is new and empty.

        They are read when a graph was compiled, and when the program ended. A compiler that works at another time calls
        `ready` when the dumps of a graph are complete.
        """

    @abstractmethod
    def read(self, folder: Path) -> Iterable[StageText]:
        """The stages of the files in there, from the highest to the lowest. Read files are removed afterwards."""


Sink = Callable[[str, StageText], None]
"""Takes a compiler's name, and one of its stages."""

_sinks: list[Sink] = []


def stage(
    name: str,
    text: str | bytes,
    *,
    language: str = "",
    links: LineLinksByKey | None = None,
    compiler: str = "",
) -> None:
    """Show `text` as a stage of the graph that is being compiled; outside of a session it does nothing.

    `compiler` is the calling package where it is empty. See StageText for the rest.
    """
    if _sinks:
        _sinks[-1](compiler or package_of(sys._getframe(1).f_globals), StageText(name, text, language, links or {}))


def package_of(module: Mapping[str, object]) -> str:
    """The package of a module by its globals; of a script its file's name."""
    name = str(module.get("__name__", ""))
    if name != "__main__":
        return name.partition(".")[0]
    return Path(str(module.get("__file__", "script"))).stem


def begin(sink: Sink) -> None:
    """Send stages to `sink` until `end`."""
    _sinks.append(sink)


def end(sink: Sink) -> None:
    """Send none to `sink` any more."""
    _sinks.remove(sink)
