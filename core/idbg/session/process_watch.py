"""Watch the processes of a live session: which have begun a log, and how they end.

A process writes its log itself. The process that waits for it notes its exit status (`idbg.startup`), and
that it is gone shows in the lock of its log.
"""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from idbg.accelerators.parse import parse
from idbg.format.failures import headline
from idbg.format.verdicts import process_outcome, session_words
from idbg.schema import events
from idbg.schema.decisions.dynamo import FrameResult
from idbg.schema.errors import OutputError
from idbg.schema.events import SessionEvent
from idbg.schema.faults import signal_name
from idbg.schema.processes import Process, ProcessEnd
from idbg.schema.programs import Program, Target, Verdict
from idbg.schema.runs import History
from idbg.schema.strict_json import like
from idbg.session import files, processes, reading
from idbg.startup.sitecustomize import passing
from idbg.traces.process import Opening

if TYPE_CHECKING:
    from idbg.session.importing import ProcessLogs

log = logging.getLogger(__name__)
NO_PROGRAM = Program(path="")
POLL_SECONDS = 0.25
SETTLE_SECONDS = 2.0
"""How long the exit status of a process that is gone is waited for."""
_NOTE_LIMIT = 1000  # bytes
_PROBLEM = ".problem-"


class ProcessWatch:
    """Emits ProcessStarted and ProcessEnded for the processes of a session that begin from now on, until `close`.

    The trace of one that cannot capture itself is read into its log, with the rules of `target`.
    """

    def __init__(
        self,
        session: Path,
        emit: Callable[[SessionEvent], None],
        program: Program = NO_PROGRAM,
        target: Callable[[], Target] = Target,
    ) -> None:
        self._session, self._emit, self._program, self._target = session, emit, program, target
        self._traced: ProcessLogs | None = None
        self._running: dict[str, Process] = {}
        self._known: set[str] = set(processes.names(session))
        self._gone: dict[str, float] = {}  # since when
        self._problems: set[str] = set()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Look from time to time, on a thread. Idempotent."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="idbg-processes", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Look a last time. Idempotent."""
        if self._thread is None or self._closing.is_set():
            return
        self._closing.set()
        self._thread.join()
        self.look(last=True)

    def _serve(self) -> None:
        while not self._closing.wait(POLL_SECONDS):
            try:
                self.look()
            except (OSError, OutputError):  # the session's folder was removed, or the disk is full
                log.exception("the processes of the session cannot be watched")
                return

    def look(self, *, last: bool = False) -> None:
        """Emit what is new. `last`: nothing is waited for any more."""
        if not (self._session / processes.FOLDER).is_dir():
            return
        self._read_traces(last=last)
        self._find_started()
        for name, process in list(self._running.items()):
            ended = self._end_of(name, process, last=last)
            if ended is not None:
                del self._running[name]
                self._emit(ended)
        self._find_problems()

    def _read_traces(self, *, last: bool) -> None:
        """Read what torch has written of processes that do not capture themselves."""
        folder = Path(passing.traces(str(self._session)))
        if self._traced is None and folder.is_dir():
            from idbg.session.importing import ProcessLogs  # few programs have such processes

            target = self._target()
            opening = Opening(self._program, replace(target, backend=""), self._session, parse(target.rules))
            self._traced = ProcessLogs(folder, "trace", self._session, opening, self._take_of_trace, how="trace")
        if self._traced is not None:
            self._traced.poll(is_over=last)

    def _take_of_trace(self, event: SessionEvent) -> None:
        """Take what the trace's reader says; how the process ended is known better here."""
        if isinstance(event, events.ProcessStarted):
            process = replace(event.process, host=os.uname().nodename)
            note = processes.pid_file(self._session, process)
            with contextlib.suppress(OSError):
                if not note.exists():  # else it has ended already
                    files.write(note, process.name.encode())
            self._known.add(process.name)
            self._running[process.name] = process
            self._emit(events.ProcessStarted(process=process))
        elif not isinstance(event, events.ProcessEnded):
            self._emit(event)

    def _find_started(self) -> None:
        for name in processes.names(self._session):
            if name in self._known:
                continue
            process = self._process_of(name)
            if process is not None:
                self._known.add(name)
                self._running[name] = process
                self._emit(events.ProcessStarted(process=process))

    def _process_of(self, name: str) -> Process | None:
        """The process whose log this is; None while the log has no whole line."""
        with contextlib.suppress(OutputError), reading.opened_log(self._session / processes.FOLDER / name) as file:
            opening = reading.first_event(file)
            if isinstance(opening, events.SessionOpened):
                return opening.process or Process(name=name, started=opening.at)
        return None

    def _end_of(self, name: str, process: Process, *, last: bool) -> events.ProcessEnded | None:
        """How it ended; None while that is not known."""
        folder = self._session / processes.FOLDER / name
        status = self._status_of(process)
        if status is None:
            if files.is_live(folder) or (not last and _is_waited_for(process)):
                return None
            since = self._gone.setdefault(name, time.monotonic())
            if not last and time.monotonic() - since < SETTLE_SECONDS:
                return None
        end, verdict, said = end_of_log(folder)
        if status is not None and os.WIFSIGNALED(status):
            end = replace(end, signal=signal_name(os.WTERMSIG(status)))
        elif status is not None:
            end = replace(end, exit_status=os.WEXITSTATUS(status), failure=end.failure if status else "")
        verdict, said = process_outcome(end, verdict, said)
        return like(events.ProcessEnded, end, name=name, at=time.time(), verdict=verdict, said=said)

    def _status_of(self, process: Process) -> int | None:
        """Its status as os.waitpid has it, which the process that waited for it has noted; None where none has."""
        path = processes.pid_file(self._session, process)
        with contextlib.suppress(OSError, ValueError):
            name, _, status = files.read(path, _NOTE_LIMIT).decode().partition("\n")
            if status:
                return int(status) if name in (process.name, "") else None
        return _status_of_zombie(process.pid) if process.host == os.uname().nodename else None

    def _find_problems(self) -> None:
        """Note why a process could not be captured, once each."""
        with contextlib.suppress(OSError):
            for path in (self._session / processes.FOLDER).glob(f"{_PROBLEM}*"):
                if path.name not in self._problems:
                    self._problems.add(path.name)
                    why = files.read(path, 1 << 16).decode("utf-8", "replace")
                    pid = path.name.removeprefix(_PROBLEM)
                    text = f"what process {pid} compiled is not recorded: {why}"
                    self._emit(events.Noted(level="warning", text=text))


def _status_of_zombie(pid: int) -> int | None:
    """The status of a process that ended badly and that nobody has waited for, as Linux has it; else None."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        return int(fields[-1]) or None if fields[0] == "Z" else None
    return None


def _is_waited_for(process: Process) -> bool:
    """Whether the process is still known to this system: nobody has waited for it yet."""
    if process.host != os.uname().nodename or not process.pid:
        return False
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        return True
    return True


class EndOfLog(NamedTuple):
    """What a process compiled as its log ends, or the exception that ended it, and the verdict with its words."""

    end: ProcessEnd
    verdict: Verdict
    said: str


def end_of_log(folder: Path) -> EndOfLog:
    """How a process's log ends, as far as the log has it."""
    history = History()
    begun: dict[tuple[str, str], None] = {}  # frames and their phases; "" stands for the frame itself
    failure = None
    with contextlib.suppress(OutputError):
        for event in reading.read(folder).events:
            history.apply(event)
            if isinstance(event, events.RunEnded):
                begun.clear()
                failure = history.last.cause if history.last is not None else event.failure
            elif isinstance(event, events.FrameStarted):
                begun[(event.frame.id, "")] = None
            elif isinstance(event, events.DecisionsRecorded):
                for result in event.of(FrameResult):
                    begun.pop((result.frame, ""), None)
            elif isinstance(event, events.FrameFailed):
                begun.pop((event.frame, ""), None)
            elif isinstance(event, events.PhaseChanged):
                key = (event.frame, event.phase)
                if event.seconds is None:
                    begun[key] = None
                else:
                    begun.pop(key, None)
    frame, phase = next(reversed(begun), ("", ""))
    end = ProcessEnd(last_phase=phase, last_frame=frame, failure=str(headline(failure)) if failure else "")
    return EndOfLog(end, history.verdict, session_words(history))
