"""Write what is imported of one process as the events of a session's log: how it begins and ends, and when."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec.structs import replace

import idbg
from idbg.accelerators.model import Accelerator
from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.processes import Process
from idbg.schema.programs import Program, Target
from idbg.traces.imported import RUN, ImportedRun

Emit = Callable[[SessionEvent], None]


class Opening(NamedTuple):
    """What a session's log begins with. `accelerator` is `target`'s, whose rules the graphs are checked against.
    `is_written`: the log has its first event.
    """

    program: Program
    target: Target
    folder: Path
    accelerator: Accelerator
    process: Process | None = None
    source: str = ""
    is_written: bool = False

    def event(self) -> events.SessionOpened:
        """The first event of the log."""
        return events.SessionOpened(
            version=idbg.__version__,
            program=self.program,
            folder=str(self.folder),
            process=self.process,
            source=self.source,
        )


class ProcessImport(Protocol):
    """The records of one process on their way into a log."""

    @property
    def read_bytes(self) -> int:
        """Bytes that were read."""

    def steps(self, *, is_whole: bool) -> Iterator[int]:
        """Read what came since the last time. Yields the bytes so far, from time to time. `is_whole`: no more comes."""

    def end(self) -> None:
        """No more comes: end the run, and say what was left out."""

    @property
    def last_phase(self) -> str:
        """What it compiled at the end; "" where nothing."""


class ProcessLog:
    """The log of an imported process. `write` gets its events; `at` is the time of those that follow."""

    def __init__(self, opening: Opening, write: Emit) -> None:
        self._opening, self._write = opening, write
        self.at = 0.0
        self.began: float | None = None
        self.run = ImportedRun(self.emit, opening.accelerator, opening.folder)

    def emit(self, event: SessionEvent) -> None:
        """Write an event."""
        self._write(replace(event, at=self.at))

    def begin(self, at: float) -> None:
        """The process begins now, if it has not begun."""
        self.at = at
        if self.began is not None:
            return
        self.began = at
        opening = self._opening
        if not opening.is_written:
            self.emit(opening.event())
        self.emit(events.RunStarted(run=RUN, program=opening.program, target=opening.target))

    def torch_found(self, version: str, pid: int) -> None:
        """The version of torch is known."""
        self.emit(events.WorkerStarted(pid=pid, torch=version, python="", devices=(), seconds=0.0))

    def end(self, missing: list[str]) -> None:
        """End the run. `missing`: what was left out, a sentence each."""
        if self.began is None:
            self.begin(time.time())
        self.run.finish()
        for text in missing:
            self.emit(events.Noted(level="warning", text=text, missing=True))
        seconds = max(self.run.ended, self.at) - (self.run.began or self.began or 0.0)
        self.emit(events.RunEnded(run=RUN, verdict=self.run.verdict, seconds=max(seconds, 0.0)))
