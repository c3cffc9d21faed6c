"""Run the command that starts the ranks of a job, each captured as a process of a session."""

import contextlib
import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal, NamedTuple

import msgspec

import idbg
from idbg.schema import events
from idbg.schema.diff import Comparison
from idbg.schema.errors import BadInput, OutputError, output_errors
from idbg.schema.programs import Program
from idbg.session import files, ranks
from idbg.session.event_bus import EventBus
from idbg.session.files import LOG
from idbg.session.process_watch import ProcessWatch
from idbg.session.store import Store
from idbg.startup.sitecustomize.passing import environment
from idbg.worker.guard import dismiss, guard

COMPARISON = "comparison.json"
_MOST_BYTES = 1 << 20
_READ_SECONDS = 2.0  # that are waited for the last output: a process that goes on may hold the pipe
_END_SECONDS = 30  # that a job has to end its ranks after SIGTERM


class JobSession(NamedTuple):
    """Where the ranks' logs go. Without a `store` another host began the session, and writes its own log."""

    folder: Path
    store: Store | None


def new_session(program: Program, output: Path, folder: Path | None = None, limit: int = 0) -> JobSession:
    """A new session in `output`; or the one in `folder`, which another host of the job may have begun.

    Raises OutputError if it cannot be written.
    """
    if folder is None:
        store = Store.create(output, program, limit)
        return JobSession(store.folder, store)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return JobSession(folder, Store(folder, (folder / LOG).open("xb"), limit))
    except FileExistsError:
        if files.is_session(folder):
            return JobSession(folder, None)
        raise OutputError(f"{folder} is not a session", hint="name a folder that is not there yet") from None
    except OSError as error:
        raise OutputError(
            f"cannot write to the session {folder}: {error.strerror or error}", hint="name another with --session"
        ) from error


def comparison_of(session: Path) -> Comparison | None:
    """What the numbers of the session's ranks are compared with; None where they are not."""
    try:
        return msgspec.json.decode(files.read(session / COMPARISON, _MOST_BYTES), type=Comparison)
    except (OSError, msgspec.MsgspecError):
        return None


class Job:
    """A running job, whose ranks are processes of the session."""

    def __init__(
        self,
        command: Sequence[str],
        program: Program,
        session: JobSession,
        *,
        stdout: int | None = 1,
        comparison: Comparison | None = None,
    ) -> None:
        """Start it. With no `stdout`, what it writes becomes events. `comparison`: of the numbers of each rank.

        Raises BadInput where it cannot be started, OutputError.
        """
        self.folder = session.folder
        if comparison is not None:
            with output_errors(f"cannot write to {self.folder}", "name another --output"):
                files.write(self.folder / COMPARISON, msgspec.json.encode(comparison))
        self._bus = EventBus(session.store) if session.store is not None else None
        self._emit(events.SessionOpened(version=idbg.__version__, program=program, folder=str(self.folder)))
        self._watch = ProcessWatch(self.folder, self._emit)
        self._watch.start()
        try:
            self._process = subprocess.Popen(
                command,
                env=environment(str(self.folder), os.environ),
                cwd=program.cwd or None,
                stdin=subprocess.DEVNULL if stdout is None else None,
                stdout=subprocess.PIPE if stdout is None else stdout,
                stderr=subprocess.PIPE if stdout is None else None,
            )
        except OSError as error:
            self._close()
            raise BadInput(f"cannot start {command[0]}: {error.strerror or error}", hint="write its path") from error

        self._guard = guard(self._process.pid, patience=_END_SECONDS)
        pipes = ((name, getattr(self._process, name)) for name in ("stdout", "stderr"))
        self._readers = [
            threading.Thread(target=self._pass_on, args=pipe, name=f"idbg-{pipe[0]}", daemon=True)
            for pipe in pipes
            if pipe[1] is not None
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> "Job":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def wait(self) -> int:
        """Wait for the job. Returns its exit status, 128 + N after signal N."""
        status = self._process.wait()
        return 128 - status if status < 0 else status

    def wait_and_end(self) -> None:
        """Complete the session's log as soon as the job ends."""
        self.wait()
        self.end()

    def end(self) -> None:
        """Stop the job if it runs still, complete the session's log, and write the ranks' digests. Idempotent."""
        if self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_SECONDS)
            self._process.kill()
            self._process.wait()
        dismiss(self._guard)
        self._guard = None
        for reader in self._readers:
            reader.join(_READ_SECONDS)
        self._close()
        with contextlib.suppress(OutputError):
            ranks.of_session(self.folder)

    def _close(self) -> None:
        self._watch.close()
        if self._bus is not None:
            self._bus.close()

    def _pass_on(self, stream: Literal["stdout", "stderr"], pipe: BinaryIO) -> None:
        for line in pipe:
            self._emit(events.OutputWritten(run=0, stream=stream, text=line.decode("utf-8", "replace")))

    def _emit(self, event: events.SessionEvent) -> None:
        if self._bus is not None:
            self._bus.emit(event)
