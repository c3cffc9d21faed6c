"""Capture what this process compiles into a log of its own, in the folder of a session.

`begin` starts it in any process; `idbg.startup` does so in the processes that a program of a session starts.
"""

import atexit
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from msgspec.structs import replace

import idbg
from idbg.accelerators.parse import parse
from idbg.accelerators.registry import NO_RULES
from idbg.config import settings
from idbg.engine import collectives
from idbg.engine.compat.comparing import random_as_eager
from idbg.engine.compat.distributed import Replicas
from idbg.engine.compat.forks import forget_threads
from idbg.engine.kerneldiff.in_program.graph_calls import GraphComparisons
from idbg.engine.watching import Watched, ended, this_process, watching
from idbg.schema import events
from idbg.schema.diff import Comparison, DiffReport, sayable
from idbg.schema.errors import AcceleratorError, IdbgError
from idbg.schema.processes import Process
from idbg.schema.programs import Program, Target
from idbg.schema.remarks import Remark
from idbg.schema.runs import History
from idbg.session import files, processes
from idbg.session.launch import comparison_of
from idbg.session.store import Store
from idbg.startup.sitecustomize import passing

RUN = 1
SUMMARY_SECONDS = 1.0
"""Between two summaries of the log, by which others list this process."""
_RULES_LIMIT = 1 << 20  # bytes
_LAST = -1000  # after multiprocessing's own work at the end of a process
_current: "OwnProcess | None" = None


class OwnProcess:
    """The log of this process while it compiles. What it compiled before is not compiled again, and not recorded.

    Events are written on the thread that compiles: a thread of ours would be one more when the program forks.
    """

    def __init__(self, session: Path, process: Process) -> None:
        """Raises OutputError if the log cannot be written."""
        self._store, self.process = Store.of_process(session, process, _limit())
        self.folder = self._store.folder
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._history = History()
        self._summarized = 0.0
        self._stack = ExitStack()
        self._program, target = _program(), _target_of(session, self.process.run)
        self.capture = Watched(RUN, self._emit, parse(target.rules) if target.has_rules else None)
        self.capture.backend_called = self._backend_called
        comparison = comparison_of(session)
        self._reports: list[DiffReport] = []
        if comparison is not None:
            self._compare(comparison)
        self._emit(
            events.SessionOpened(
                version=idbg.__version__, program=self._program, folder=str(self.folder), process=self.process
            )
        )
        self._emit(this_process(with_machine=False))
        self._emit(events.RunStarted(run=RUN, program=self._program, target=target, comparison=comparison))
        self._keep_summary()

    def start(self) -> None:
        """Capture from here on, until `end`."""
        self._stack.enter_context(watching(self.capture))
        if self.process.rank is not None:
            self._stack.enter_context(collectives.recorded(RUN, self._emit))

    def end(self, status: int = 0, error: BaseException | None = None) -> None:
        """Complete the log: the process ends now. Idempotent; a fork of the process changes nothing."""
        run = self._history.runs[RUN]
        if os.getpid() != self._pid or run.ended is not None:
            return
        failure = ended(self.capture, error, self._program)
        self._stack.close()
        self._report_numbers(is_over=True)
        run_ended = events.RunEnded(
            run=RUN,
            verdict="clean",
            seconds=time.time() - run.started,
            failure=failure,
            checked=self.capture.accelerator is not None,
            exit_status=status,
        )
        run.apply(run_ended)  # its verdict is that of its worst stage
        self._emit(replace(run_ended, verdict=run.verdict))
        self._keep_summary()
        self._store.close()

    def _compare(self, comparison: Comparison) -> None:
        """Compare each graph that is compiled from here on, until the end."""
        replicas = Replicas()
        self._stack.enter_context(replicas.watched())
        self._stack.enter_context(random_as_eager())
        self.capture.comparisons = GraphComparisons(RUN, self._emit, comparison, "auto", replicas, self._compared)

    def _compared(self, report: DiffReport) -> None:
        self._reports.append(report)
        self._report_numbers(is_over=False)

    def _report_numbers(self, *, is_over: bool) -> None:
        """The comparisons so far as one: more may come, until the process is over."""
        from idbg.worker.comparing import merged

        if not self._reports:
            return
        whole = merged(self._reports)
        notes = [Remark("first calls"), *([Remark("all outputs")] if whole.gradients else [])]
        whole = replace(whole, notes=(*whole.notes, *notes))
        if not is_over and whole.verdict in ("passed", "empty"):
            whole = replace(whole, verdict="waiting")
        self._emit(events.Compared(run=RUN, report=sayable(whole)))

    def leave(self) -> None:
        """This process is a fork of the one that is captured: hold nothing of that one's log, whose lock is its own."""
        self.capture.is_paused = True
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self._store.descriptor, inheritable=False)  # what is buffered is the other process's to write
        os.close(null)

    def _emit(self, event: events.SessionEvent) -> None:
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._history.apply(event)
            try:
                note = self._store.append(event)
                if note is not None:
                    self._history.apply(note)
                if (
                    isinstance(event, events.DecisionsRecorded)
                    and time.monotonic() - self._summarized > SUMMARY_SECONDS
                ):
                    self._keep_summary()
            # Broad on purpose: beside the disk's OSError, encoding a plug-in's record may raise anything, and none of
            # it may end the program's compile.
            except Exception:
                self._store.close()

    def _keep_summary(self) -> None:
        self._summarized = time.monotonic()
        summary = self._store.summary(self._history)
        if summary is not None:
            self._store.keep(summary)

    def _backend_called(self, _: str) -> None:
        self._emit(events.BackendsCalled(run=RUN, backends=tuple(self.capture.backends)))


def begin(session: Path, process: Process) -> OwnProcess:
    """Capture what this process compiles from here on, until it ends. Raises OutputError if the log cannot be written.

    A process that is captured already goes on in its log.
    """
    global _current
    if _current is not None:
        return _current
    _current = own = OwnProcess(session, process)
    _note_pid(session, own.process)
    own.start()
    atexit.register(lambda: own.end(error=_uncaught()))
    _end_with_multiprocessing(own)
    _end_before_exit(own)
    return own


def begin_inherited(session: str, parent_rank: str) -> None:
    """The same for a process that a captured one started."""
    begin(Path(session), described(Path(session), parent_rank))


def forget() -> None:
    """This process is a fork of the one that was captured: nothing more goes to that one's log."""
    global _current
    if _current is not None:
        _current.leave()
        forget_threads()
        _current = None


def described(session: Path, parent_rank: str = "") -> Process:
    """This process, named after its rank, the name that multiprocessing knows it by, or as a child."""
    pid = os.getpid()
    rank, local_rank, world_size = _ranks(parent_rank)
    run = max((int(name.name[4:]) for name in session.glob("run-*") if name.name[4:].isdecimal()), default=0)
    return Process(
        name=f"rank{rank}" if rank is not None else f"{_own_name() or 'child'}-{pid}",
        pid=pid,
        parent=os.getppid(),
        host=os.uname().nodename,
        rank=rank,
        local_rank=local_rank,
        world_size=world_size,
        command=tuple(sys.orig_argv),
        started=time.time(),
        run=run,
    )


def _ranks(parent_rank: str) -> tuple[int | None, int | None, int | None]:
    """Rank, local rank and world size: as torch.distributed has them, or as its launcher set them. A process that a
    rank started has the rank's variables too, and is none.
    """
    import torch.distributed

    if parent_rank and passing.own_rank() == parent_rank:
        return None, None, None
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), _number("LOCAL_RANK"), torch.distributed.get_world_size()
    for variables in passing.RANKS:
        if (number := _number(variables[0])) is not None:
            return number, _number(variables[1]), _number(variables[2])
    return None, None, None


def _number(variable: str) -> int | None:
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else None


def _own_name() -> str:
    """The name that the program gave it; "" where multiprocessing numbered it, or did not start it."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    name = multiprocessing.current_process().name if multiprocessing is not None else ""
    return "" if name == "MainProcess" or "Process-" in name else str(name)


def _program() -> Program:
    """The main file of this process, also where multiprocessing imported it."""
    main = sys.modules.get("__mp_main__") or sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    return Program(path=str(file) if file else Path(sys.executable).name, argv=tuple(sys.argv[1:]), cwd=os.getcwd())


def _target_of(session: Path, run: int) -> Target:
    """The rules of the main process's run, for whatever backend the program calls."""
    rules = NO_RULES
    with contextlib.suppress(OSError, AcceleratorError, UnicodeDecodeError):
        text = files.read(session / f"run-{run}" / "rules.toml", _RULES_LIMIT).decode()
        parse(text)
        rules = text
    return Target(backend="", accelerator=parse(rules).name, rules=rules)


def _limit() -> int:
    with contextlib.suppress(IdbgError):
        return settings.load(os.environ).keeping.session_size
    return 0


def _note_pid(session: Path, process: Process) -> None:
    """Leave the name where the process that waits for this one notes how it ended."""
    with contextlib.suppress(OSError):
        files.write(processes.pid_file(session, process), process.name.encode())


def _uncaught() -> BaseException | None:
    """The exception that ends this process, if one does."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return error if isinstance(error, Exception) else None


def _end_with_multiprocessing(own: OwnProcess) -> None:
    """Complete the log where an exception ends a process of multiprocessing, which prints it and lets it go."""
    util = sys.modules.get("multiprocessing.util")
    if util is None or sys.modules["multiprocessing.process"].parent_process() is None:
        return

    def end_with_error() -> None:
        error = sys.exc_info()[1]
        if isinstance(error, SystemExit):  # torch.multiprocessing.spawn sends the exception on, and exits
            error = error.__context__
        if isinstance(error, Exception):
            own.end(1, error)

    util.Finalize(None, end_with_error, exitpriority=_LAST)


def _end_before_exit(own: OwnProcess) -> None:
    """Complete the log also where the process ends by os._exit, as multiprocessing's forks do."""
    real: Callable[[int], None] = os._exit

    def exit_completed(status: int) -> None:
        own.end(status & 0xFF)
        real(status)

    os._exit = exit_completed  # type: ignore[assignment]
