"""Let readers of compilers' dumps read, within limits: one that raises or hangs loses its stages, and nothing else."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from idbg import plugins
from idbg.engine.capture.run import RunCapture
from idbg.engine.compat.hooks import when_imported
from idbg.format.amounts import counted
from idbg.schema.errors import typed_text
from idbg.stages import GROUP, StageReader, StageText

T = TypeVar("T")
SECONDS = 10.0  # for one call of a reader
_CLOCKS = 2.0  # seconds by which the clock of a file system may be behind


@contextmanager
def reading(capture: RunCapture, own: Sequence[StageReader]) -> Iterator[None]:
    """While it lasts, dumps are read with these readers and with those of other packages."""
    readers = [_Reading(capture, reader, is_own=True) for reader in own]
    readers += [_Reading(capture, reader, is_own=False) for reader in _of_packages(capture)]

    def read() -> None:
        for each in readers:
            each.read()

    with ExitStack() as stack:
        for each in readers:
            stack.callback(each.end)
            stack.enter_context(when_imported(each.package, each.begin))
        stack.callback(read)
        capture.stages.read_dumps = read
        yield


def _of_packages(capture: RunCapture) -> Iterator[StageReader]:
    loaded = plugins.load(GROUP)
    for name, problem in loaded.broken.items():
        capture.note(f"the stage reader {name} cannot be imported: {problem}")
    for name, value in loaded.values.items():
        try:
            assert callable(value), f"it is of type {type(value).__name__}, not a class"
            reader = value()
            assert isinstance(reader, StageReader), f"{type(reader).__name__} is no idbg.StageReader"
            assert isinstance(reader.compiler, str) and isinstance(reader.package, str), "its names are not of type str"
        except Exception as error:  # broad on purpose: a reader is code of others
            capture.note(f"the stage reader {name} cannot be used: {typed_text(error)}")
        else:
            yield reader


class _Reading:
    """One reader in one run."""

    def __init__(self, capture: RunCapture, reader: StageReader, *, is_own: bool) -> None:
        self._capture, self._reader, self._is_own = capture, reader, is_own
        self.package = reader.package
        self._folder: Path | None = None
        self._dumping = ExitStack()
        self._began = time.time()
        self._is_off = False
        self._is_reading = False

    def begin(self) -> None:
        """The compiler was imported: have it dump."""
        folder = Path(tempfile.mkdtemp(prefix=f"idbg-{self._reader.compiler}-"))
        self._folder = folder
        self._safe(lambda: self._dumping.enter_context(self._reader.dumping(folder, self.read)))

    def read(self) -> None:
        """Read what was dumped since the last time."""
        if self._folder is None or self._is_off or self._is_reading or self._capture.is_paused:
            return
        if not any(self._files()):
            return
        self._leave_out_older()
        folder, reader = self._folder, self._reader
        self._is_reading = True
        try:
            found = self._safe(lambda: list(reader.read(folder)))
        finally:
            self._is_reading = False
        for stage in found or ():
            self._take(stage)
        for file in list(self._files()):
            with suppress(OSError):
                os.unlink(file)

    def end(self) -> None:
        """Stop dumping, and remove the folder."""
        self._safe(self._dumping.close)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _take(self, stage: StageText) -> None:
        if (
            isinstance(stage, StageText)
            and stage.frame
            and self._capture.named(stage.frame) not in self._capture.frames
        ):
            self._capture.note(
                f"dumps of {self._reader.compiler} for frame {stage.frame} are of another run: they are left out"
            )
            return
        self._capture.stages.add(self._reader.compiler, stage, "dump", of_author=not self._is_own)

    def _files(self) -> Iterator[str]:
        """The dumped files; what links lead to is not ours to remove."""
        for folder, _, names in os.walk(self._folder or ""):
            yield from (os.path.join(folder, name) for name in names)

    def _leave_out_older(self) -> None:
        older = 0
        for file in list(self._files()):
            with suppress(OSError):
                if os.lstat(file).st_mtime < self._began - _CLOCKS:
                    os.unlink(file)
                    older += 1
        if older:
            self._capture.note(
                f"{counted(older, 'file')} among the dumps of {self._reader.compiler} "
                + ("is older than this run: it is of" if older == 1 else "are older than this run: they are of")
                + f" another run and {'is' if older == 1 else 'are'} left out"
            )

    def _safe(self, call: Callable[[], T]) -> T | None:
        """What the reader returns; None, and it is off from then on, where it raises or takes too long."""
        if self._is_off:
            return None
        try:
            return plugins.within(SECONDS, call)
        except KeyboardInterrupt:
            raise
        except plugins.NoAnswer:
            why = f"it takes longer than {SECONDS:g} s"
        except BaseException as error:  # a reader is code of others, and nothing of it may end the compile
            why = typed_text(error)
        self._is_off = True
        self._capture.note(f"the dumps of {self._reader.compiler} are not read: its reader failed: {why}")
        return None
