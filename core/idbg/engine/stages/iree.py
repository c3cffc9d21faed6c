"""Read the phases of IREE, as iree-turbine's backend `turbine_cpu` compiles with it.

A node's name is a location of the imported module, and IREE keeps locations down to its last phase. All the MLIR that
the worker prints has them: that setting is of a process, so in a user's own process the phases have no links.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from idbg.analysis.stage_links.mlir import without_locations
from idbg.engine.capture.run import RunCapture
from idbg.engine.compat import iree_stages as iree
from idbg.engine.compat.hooks import hooked
from idbg.engine.compat.origins import sources_recorded
from idbg.stages import StageReader, StageText

PHASES = (
    "torch",
    "input",
    "global-optimization",
    "flow",
    "stream",
    "executable-sources",
    "executable-targets",
    "hal",
    "vm",
)
"""The imported module, and those of IREE's phases that show something that the one before does not."""
_MOST = 4 << 20  # bytes of a phase from which locations are removed


class Iree(StageReader):
    """The phases of each graph that IREE compiles."""

    compiler = "iree"
    package = "iree.compiler.api.ctypes_dl"

    def __init__(self, capture: RunCapture) -> None:
        self._capture = capture

    @contextmanager
    def dumping(self, folder: Path, ready: Callable[[], None]) -> Iterator[None]:
        numbers = count(1)

        def next_folder() -> Path:
            created = folder / f"{next(numbers):04}"
            created.mkdir()
            return created

        wrappers = iree.wrappers(next_folder, ready, locations=self._capture.own_process)
        with hooked(self._capture.feature("IREE stages"), wrappers), sources_recorded():
            yield

    def read(self, folder: Path) -> Iterator[StageText]:
        """Files are named SOURCE.6.flow.mlir, in a folder for each graph."""
        for graph in sorted(folder.iterdir()):
            files = {file.name.split(".")[-2]: file for file in graph.glob("*.mlir")}
            yield from (_stage(phase, files[phase]) for phase in PHASES if phase in files)


def _stage(phase: str, file: Path) -> StageText:
    text = file.read_text(errors="backslashreplace")
    if len(text) > _MOST:
        return StageText(phase, text, "mlir")
    plain, marks = without_locations(text)
    return StageText(phase, plain, "mlir", {line: mark.names for line, mark in marks.items() if mark.names})
