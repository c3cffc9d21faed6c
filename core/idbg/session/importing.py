"""Import the trace of a job as a session: read its files into the logs of the session's processes.

One process is the session's main one; of several each has a log of its own, and the main log names them.
"""

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

import idbg
from idbg.accelerators.parse import parse
from idbg.accelerators.registry import rules_for
from idbg.config.settings import default_accelerator
from idbg.format.amounts import counted
from idbg.format.failures import headline
from idbg.format.verdicts import session_words
from idbg.schema import events
from idbg.schema.code import OutputCode
from idbg.schema.decisions.dynamo import BreakAgain
from idbg.schema.errors import BadInput, output_errors
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Graph
from idbg.schema.processes import HowCaptured, Process
from idbg.schema.programs import Program, Target
from idbg.schema.runs import History
from idbg.session import files
from idbg.session.files import LOG
from idbg.session.store import Store
from idbg.traces import archives, sources
from idbg.traces.debug_folder import DebugFolder
from idbg.traces.process import Emit, Opening, ProcessImport
from idbg.traces.trace_file import TraceFile
from idbg.traces.triton import TritonFiles

BACKEND = "unknown"  # until the trace has what a backend did
MARK = "imported.txt"
"""What a session was imported from: the size and time of each file, and the rules."""
UNPACKED = "imported"
"""The folder in the session's into which an archive is unpacked."""
JUST_CHANGED = 10.0  # seconds: a file of another machine that changed since is still written
POLL = 0.2  # seconds between two looks at a trace that is still written


@dataclass
class LogWriter:
    """Writes the events of one process to its log, and the session's summary at its end."""

    store: Store
    history: History = field(default_factory=History)

    def __call__(self, event: SessionEvent) -> None:
        """Raises OutputError."""
        with output_errors(f"cannot write the session {self.store.folder}", "check the disk and --output"):
            self.store.append(event)
        if (of_summary := _of_summary(event)) is not None:
            self.history.apply(of_summary)

    def end(self) -> None:
        """Say what was left out, write the summary and close the log."""
        if self.store.left_out:
            text = f"{counted(self.store.left_out, 'fact')} of the trace left out: their values are beyond all bounds"
            self(events.Noted(level="warning", text=text, missing=True))
        if (summary := self.store.summary(self.history)) is not None:
            self.store.keep(summary)
        self.store.close()


def _of_summary(event: SessionEvent) -> SessionEvent | None:
    """What a summary needs of an event: of graphs and code that there are some."""
    match event:
        case events.GraphCaptured(graph=graph):
            return events.GraphCaptured(at=event.at, run=event.run, graph=Graph(graph.id, ()))
        case events.CodeCaptured(code=code):
            kernels = tuple(replace(kernel, source="", calls=()) for kernel in code.kernels)
            return events.CodeCaptured(at=event.at, run=event.run, code=OutputCode(code.frame, code.part, "", kernels))
        case events.StageCaptured() | events.KernelLowered():
            return None
        case events.DecisionsRecorded() if not event.of(BreakAgain):
            return None
        case _:
            return event


@dataclass
class _Process:
    """A process on its way into a log; `process` is None of the session's main one."""

    reader: ProcessImport
    writer: LogWriter
    process: Process | None


class ProcessLogs:
    """The logs of the processes whose traces are in a folder, which may grow. `say` gets what the session's main log
    has of them. Of the `main` part the log is the session's own, by its writer. `how`: see Process.
    """

    def __init__(
        self,
        place: Path,
        kind: sources.Kind,
        session: Path,
        opening: Opening,
        say: Emit,
        *,
        main: tuple[Path, LogWriter] | None = None,
        how: HowCaptured = "import",
        limit: int = 0,
    ) -> None:
        self._place, self._kind, self._session, self._opening = place, kind, session, opening
        self._say, self._main, self._how, self._limit = say, main, how, limit
        self._parts: dict[Path, list[Path]] = {}
        self._known: dict[Path, _Process | None] = {}  # None: it was read, or cannot be
        self._ranks: set[int] = set()

    def read(self, progress: Callable[[int], None]) -> None:
        """Read all of a trace that does not grow, a part after the other. `progress` gets the bytes so far."""
        done = 0
        for path in self._firsts():
            if (process := self._of(path)) is None:
                continue
            for read in self._steps(path, process, is_whole=True):
                progress(done + read)
            done += process.reader.read_bytes
            self._end(path, process)

    def poll(self, *, is_over: bool) -> bool:
        """Read what came since the last time, also of new processes. `is_over`: no more comes. False: nothing came."""
        found = False
        for path in self._firsts():
            if (process := self._of(path)) is not None:
                for _ in self._steps(path, process, is_whole=is_over):
                    found = True
        for path, process in list(self._known.items()) if is_over else ():
            if process is not None:
                self._end(path, process)
        return found

    def _firsts(self) -> list[Path]:
        """The first part of each process; `_parts` has the others."""
        self._parts = sources.by_process(sources.parts_of(self._place, self._kind), self._kind)
        return list(self._parts)

    def _steps(self, path: Path, process: _Process, *, is_whole: bool) -> Iterator[int]:
        """Read on. Yields the bytes so far. What cannot be read any more is over."""
        try:
            yield from process.reader.steps(is_whole=is_whole)
        except OSError as error:
            self._cannot_read(path, error)
            if not is_whole:
                self._end(path, process)

    def close(self) -> None:
        """Nothing more is written."""
        for process in self._known.values():
            if process is not None:
                process.writer.store.close()

    def _cannot_read(self, path: Path, error: OSError) -> None:
        why = f"{path.name} cannot be read: {error.strerror or error}"
        self._say(events.Noted(level="warning", text=why, missing=True))

    def _of(self, path: Path) -> _Process | None:
        """The process of a part of the trace; None where it was read, or cannot be."""
        if path not in self._known:
            try:
                self._known[path] = self._begin(path)
            except OSError as error:
                self._known[path] = None
                self._cannot_read(path, error)
        return self._known[path]

    def _begin(self, path: Path) -> _Process:
        if self._main is not None and path == self._main[0]:
            writer = self._main[1]
            return _Process(self._reader(path, self._opening, writer), writer, None)
        process = replace(sources.identity_of(path).process(path.stat().st_mtime), how=self._how)
        if process.rank is not None and process.rank in self._ranks:
            text = f"rank {process.rank} has more than one trace, so {self._place.name} may hold two jobs"
            self._say(events.Noted(level="warning", text=text, missing=True))
        self._ranks |= {process.rank} if process.rank is not None else set()
        store, process = Store.of_process(self._session, process, self._limit, imported=True)
        writer = LogWriter(store)
        opening = self._opening._replace(folder=store.folder, process=process, source=str(path), is_written=False)
        reader = self._reader(path, opening, writer)
        self._say(events.ProcessStarted(process=process))
        return _Process(reader, writer, process)

    def _reader(self, path: Path, opening: Opening, writer: LogWriter) -> ProcessImport:
        match self._kind:
            case "debug":
                return DebugFolder(path, opening, writer)
            case "triton":
                return TritonFiles(self._parts[path], opening, writer)
            case _:
                dumps = sources.dumps_of(self._place, sources.identity_of(path).pid)
                return TraceFile(path, opening, writer, dumps)

    def _end(self, path: Path, known: _Process) -> None:
        known.reader.end()
        self._known[path] = None
        if known.process is not None:
            known.writer.end()
            history = known.writer.history
            failure = history.last.cause if history.last is not None else None
            ended = events.ProcessEnded(
                name=known.process.name,
                last_phase=known.reader.last_phase,
                failure=str(headline(failure)) if failure is not None else "",
                verdict=history.verdict,
                said=session_words(history),
            )
            self._say(ended)


class Import:
    """The trace of a job on its way into a session of its own. Raises BadInput where there is nothing to import,
    OutputError where the session's folder cannot be written.
    """

    def __init__(self, source: Path, output: Path, *, accelerator: str = "", limit: int = 0) -> None:
        self.source = source.absolute()
        kind = _kind(self.source)
        target, program = target_of(accelerator), Program(path=str(self.source), is_trace=True)
        self._mark = mark_of(self.source, kind, target)
        self._missing: list[str] = []
        stem = self.source.name.partition(".")[0]
        name = stem if stem.lower().startswith("trace") else f"trace-{stem}"
        self._main = LogWriter(Store.create(output, program, limit, name=name, imported=True))
        self.folder = self._main.store.folder
        self.bytes = 0
        opening = Opening(program, target, self.folder, parse(target.rules), source=str(self.source))
        try:
            self._main(opening.event())  # so that a session that a signal ends can be listed and removed
            self._logs = self._begun(kind, opening._replace(is_written=True), limit)
        except BaseException:  # also a signal: a session of which nothing was read is of no use
            self._main.store.close()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def _begun(self, kind: sources.Kind, opening: Opening, limit: int) -> ProcessLogs:
        place, kind = self._unpacked() if kind == "archive" else (self.source, kind)
        parts = sources.parts_of(place, kind)
        main = (parts[0], self._main) if len(sources.by_process(parts, kind)) == 1 else None
        if main is None:
            self._say_missing()
        inside = (file for part in parts for file in ([part] if part.is_file() else sources.files_of(part)))
        with contextlib.suppress(OSError):  # only the progress needs it
            self.bytes = sum(file.stat().st_size for file in inside)
        return ProcessLogs(place, kind, self.folder, opening, self._main, main=main, limit=limit)

    def _unpacked(self) -> tuple[Path, sources.Kind]:
        """Unpack the archive into the session's folder. Raises BadInput where it holds nothing to import."""
        place = self.folder / UNPACKED
        with output_errors(f"cannot unpack {self.source} into {place}", "check the disk and --output"):
            self._missing += archives.unpack(self.source, place)
        kind = sources.kind_of(place)
        if kind is None or kind == "archive":
            raise nothing_in(self.source)
        return place, kind

    def _say_missing(self) -> None:
        for text in self._missing:
            self._main(events.Noted(level="warning", text=text, missing=True))
        self._missing.clear()

    def read(self, progress: Callable[[int], None] = lambda read: None) -> None:
        """Read a trace that does not grow. `progress` gets the bytes so far."""
        try:
            self._logs.read(progress)
            self._close()
        finally:
            self._logs.close()
            self._main.store.close()
        with output_errors(f"cannot write the session {self.folder}", "check the disk and --output"):
            files.write(self.folder / MARK, self._mark.encode("utf-8", "backslashreplace"))

    def follow(self, is_over: Callable[[], bool]) -> None:
        """Read a trace that grows, until `is_over`."""
        over = False
        while not over:
            over = is_over()
            if not self._logs.poll(is_over=over) and not over:
                time.sleep(POLL)
        self._close()

    def _close(self) -> None:
        """End the session's main log."""
        self._say_missing()
        self._main.end()


def _kind(source: Path) -> sources.Kind:
    kind = sources.kind_of(source)
    if kind is None:
        raise nothing_in(source)
    return kind


def nothing_in(source: Path) -> BadInput:
    """There is nothing to import, or it cannot be read."""
    try:
        if source.is_dir():
            os.listdir(source)
        elif source.exists():
            sources.head_of(source)
    except OSError as error:
        return BadInput(f"{source} cannot be read: {error.strerror or error}", hint="name a file or folder that can be")
    return BadInput(
        f"there is no trace in {source}" if source.exists() else f"there is no {source}",
        hint="run the program with TORCH_TRACE=FOLDER, and name that folder",
    )


def target_of(accelerator: str) -> Target:
    """The target whose rules imported graphs are checked against. Raises AcceleratorError."""
    target = Target(backend=BACKEND, accelerator=accelerator or default_accelerator(BACKEND))
    text, _ = rules_for(target)
    return replace(target, rules=text, own_backend=True)


def mark_of(source: Path, kind: sources.Kind, target: Target) -> str:
    """What distinguishes an import from others: the files as they are now, and the rules."""
    inside = [source] if kind == "archive" else sources.parts_of(source, kind)
    lines = []
    for path in inside:
        with contextlib.suppress(OSError):  # gone meanwhile
            status = path.stat()
            lines.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return "\n".join([idbg.__version__, target.accelerator, target.rules, *lines])


def imported_before(source: Path, output: Path, accelerator: str) -> Path | None:
    """The newest session in `output` that has the same import; None where there is none."""
    source = source.absolute()
    if (kind := sources.kind_of(source)) is None:
        return None
    mark = mark_of(source, kind, target_of(accelerator)).encode("utf-8", "backslashreplace")
    for found in sorted(output.glob(f"trace*/{MARK}"), key=lambda path: path.parent.name, reverse=True):
        with contextlib.suppress(OSError):
            if files.read(found, len(mark)) == mark and (found.parent / LOG).is_file():
                return found.parent
    return None


def is_written(source: Path) -> bool:
    """Whether a trace still grows: the process that wrote one of its files lives on this machine, or a file has just
    changed.
    """
    for path in sources.parts_of(source, "trace") if sources.kind_of(source) == "trace" else ():
        with contextlib.suppress(OSError):
            identity, status = sources.identity_of(path), path.stat()
            if time.time() - status.st_mtime < JUST_CHANGED or _has_open(identity.pid, status):
                return True
    return False


def _has_open(pid: int, status: os.stat_result) -> bool:
    """Whether this process has the file open."""
    with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if os.path.samestat(entry.stat(), status):
                    return True
    return False
