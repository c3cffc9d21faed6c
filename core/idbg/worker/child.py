"""Start, read, signal and end one worker process."""

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from idbg.config.environment import NICENESS, PATH_ADDED, SCRATCH, importable
from idbg.schema.faults import CrashSite, signal_name
from idbg.worker import protocol
from idbg.worker.crash_site import crash_site
from idbg.worker.guard import dismiss, guard

log = logging.getLogger(__name__)
# The folder that the user stands in must not shadow the worker's own imports. Not by -P: the program would see that
# flag, and hand it to what it starts by multiprocessing.
BEGIN = "import sys; sys.flags.safe_path or sys.path.pop(0); from idbg.worker.main import main; main()"
COMMAND = (sys.executable, "-c", BEGIN)
NICE = 10  # measured: keypress to repaint while resnet18 compiles, p95 24 ms at nice 10, 47 ms at 0
CHUNK = 65_536
TIDY_SECONDS = 1.0  # for what the program started to end in order
DRAIN_CHUNKS = 64  # a grandchild that never stops printing must not hold the drain for ever


class Child:
    """One process in a session and group of its own. Reads never block; its stdin is empty.

    `alone`: no screen shares the processors and the terminal with it. It is as nice as we are, and reads our stdin,
    unless that is a terminal, which only processes of its session can read. `doomed` is a folder that goes as well
    where the host is killed. Raises OSError if the process cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        *,
        doomed: Path | None = None,
        alone: bool = False,
    ) -> None:
        self._scratch = tempfile.mkdtemp(prefix="idbg-")  # for what compilers have half-written
        request_read, self._requests = os.pipe()
        self.events, event_write = os.pipe()
        ours = {NICENESS: str(0 if alone else NICE), SCRATCH: self._scratch}
        try:
            self.process = subprocess.Popen(
                [*command, str(request_read), str(event_write)],
                stdin=None if alone and _can_be_read(0) else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(request_read, event_write),
                start_new_session=True,
                env=importable(environment) | ours,
            )
        except OSError:
            os.close(self._requests)
            os.close(self.events)
            shutil.rmtree(self._scratch, ignore_errors=True)
            raise
        finally:
            os.close(request_read)
            os.close(event_write)
        log.debug("process %d is %s", self.process.pid, command)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.stdout, self.stderr = self.process.stdout.fileno(), self.process.stderr.fileno()
        for fd in (self.events, self.stdout, self.stderr):
            os.set_blocking(fd, False)
        self._guard = guard(-self.process.pid, Path(self._scratch), *(() if doomed is None else (doomed,)))
        self._line = bytearray()
        self._forced = False

    def send(self, request: protocol.Request) -> None:
        """Hand a request to a child that waits for one. A child that is gone is found by `exited`, not here."""
        self.write(protocol.encode(request))

    def write(self, line: bytes) -> None:
        """Hand it a line of another protocol."""
        rest = line + b"\n"
        with contextlib.suppress(BrokenPipeError):
            while rest:
                rest = rest[os.write(self._requests, rest) :]

    def lines(self) -> list[bytes] | None:
        """The whole lines of one read of the event pipe; None at its end."""
        chunk = read(self.events)
        return None if chunk == b"" else self._whole(chunk or b"")

    def remaining_lines(self) -> list[bytes]:
        """The whole lines that a dead child left in the event pipe."""
        lines = []
        while chunk := read(self.events):
            lines += self._whole(chunk)
        return lines

    def _whole(self, chunk: bytes) -> list[bytes]:
        self._line += chunk
        if b"\n" not in chunk:
            return []
        *whole, rest = bytes(self._line).split(b"\n")
        self._line = bytearray(rest)
        return whole

    def drain(self, fd: int, take: Callable[[bytes], None]) -> None:
        """Give `take` all that lies in a pipe now."""
        for _ in range(DRAIN_CHUNKS):
            chunk = read(fd)
            if not chunk:
                return
            take(chunk)

    def exited(self) -> bool:
        """Whether the process is gone; its children may not be."""
        return self.process.poll() is not None

    def signal(self, number: signal.Signals) -> None:
        """Signal the whole group: compilers that the child started are in it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def hang_up(self) -> None:
        """Close the request pipe: an idle child ends by itself."""
        if self._requests >= 0:
            os.close(self._requests)
            self._requests = -1

    def end(self, patience: float = 0.0) -> None:
        """Leave no process of the group behind; give the child `patience` seconds to end by itself.

        SIGTERM, a moment, SIGKILL: a program, and a compiler that we did not start, may have something to tidy up.
        """
        self.hang_up()
        _wait_until(self.exited, patience)
        self._forced = self._forced or not self.exited()
        self.signal(signal.SIGTERM)
        _wait_until(lambda: self.exited() and not _is_alive(self.process.pid), TIDY_SECONDS)
        self.signal(signal.SIGKILL)
        self.process.wait()
        dismiss(self._guard)
        self._guard = None
        shutil.rmtree(self._scratch, ignore_errors=True)

    def close(self) -> None:
        """Release the pipes, after `end`."""
        os.close(self.events)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def crash_site(self) -> CrashSite | None:
        """The place at which a signal killed it, before `end`; None if none did, or it left no stacks."""
        status = self.process.poll()
        return crash_site(Path(self._scratch), signal_name(-status)) if status is not None and status < 0 else None

    def cause(self) -> str:
        """A description of how it ended."""
        status = self.process.returncode
        if self._forced:
            return "closed its pipes and did not exit"
        if status < 0:
            return f"killed by {signal_name(-status)}"
        return f"exited with status {status}"


def _can_be_read(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:  # closed
        return False
    return not os.isatty(fd)


def _wait_until(done: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.01)


def _is_alive(group: int) -> bool:
    """Whether a process of the group still runs; the dead that nobody has reaped do not count, where /proc tells."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    entries = list(Path("/proc").glob("[0-9]*/stat"))
    return not entries or any(_runs_in(entry, group) for entry in entries)


def _runs_in(stat: Path, group: int) -> bool:
    try:
        state, _, process_group = stat.read_text().rpartition(") ")[2].split()[:3]
    except (OSError, ValueError):
        return False  # it ended while we looked
    return state != "Z" and int(process_group) == group


def read(fd: int) -> bytes | None:
    """The bytes that lie in a non-blocking pipe, b"" at its end, None if there are none."""
    try:
        return os.read(fd, CHUNK)
    except BlockingIOError:
        return None


def forget_ours() -> int:
    """Remove idbg's variables from the environment, which a program must not see; returns the niceness to set."""
    if os.environ.pop(PATH_ADDED, ""):
        rest = os.environ.pop("PYTHONPATH").partition(os.pathsep)[2]
        os.environ |= {"PYTHONPATH": rest} if rest else {}
    return int(os.environ.pop(NICENESS, NICE))
