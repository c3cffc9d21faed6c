"""How does one try of a script go: begun by a server, watched, ended where it takes too long or too much?"""

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from select import select
from typing import Literal

from idbg.engine.minify.forks.connection import Message, Server
from idbg.engine.minify.forks.outcome import TryResult
from idbg.engine.minify.forks.processes import Process, end_all, memory_of, process, send, started_by

PRINTED = 20_000  # characters that are kept of what a script prints, half of them its first
_KEPT = 4 * PRINTED  # bytes of these, at most
_HALF = PRINTED // 2
_LEFT_OUT = "\n[...]\n"
CHUNK = 1 << 16
POLL_SECONDS = 0.05  # how often memory is looked at
FAMILY_SECONDS = 0.4  # how often it is looked who started whom, which reads all of /proc
TIDY_SECONDS = 0.5  # for what is ended to tidy up
OVER_SECONDS = 30.0  # for the server to end what a script left


@dataclass(frozen=True)
class Limits:
    """What a try may take: seconds, and bytes for it and all that it starts."""

    seconds: float
    memory: int


class Attempt:
    """One try. Whatever interrupts it leaves its process running: that ends with the server."""

    def __init__(self, server: Server, limits: Limits) -> None:
        self._server, self._limits = server, limits
        self._printed = bytearray()
        self._family: Sequence[Process] = ()
        self._peak = 0
        self._ooms = _memory_kills()
        self._root: Process | None = None
        self.pid = 0
        self._began = time.monotonic()

    def run(self, order: Message) -> TryResult:
        """Run the script of the order to its end, or ours. Raises ServerGone."""
        read, write = os.pipe()
        try:
            os.set_blocking(read, False)
            try:
                self._server.tell(order, write)
            finally:
                os.close(write)
            self.pid = self._hear("pid", OVER_SECONDS)
            self._began = time.monotonic()
            how = self._watched(read)
            seconds = time.monotonic() - self._began
            self._server.tell({"over": TIDY_SECONDS})
            self._hear("over", OVER_SECONDS)
            self._take(read)
        finally:
            os.close(read)
        return self._told(how, seconds)

    def lost(self) -> TryResult:
        """What is left to say where the server is gone: the script ended it. Ends the script as well."""
        send(signal.SIGKILL, self._family)
        if self._root is not None:
            end_all(self._root)
            send(signal.SIGKILL, [self._root])
        self._printed += b"\nidbg: this process ended the one that had started it\n"
        return self._told(-signal.SIGKILL, time.monotonic() - self._began)

    def _hear(self, word: str, seconds: float) -> int:
        """What the server says under this word; what it says before is of no interest any more."""
        while word not in (said := self._server.hear(seconds)):
            pass
        return int(str(said[word] if said[word] is not True else 1))

    def _watched(self, output: int) -> int | Literal["hung", "memory"]:
        """The status with which it ends; or for what it has to be ended."""
        self._root = process(self.pid)
        server = process(self._server.process.pid)
        self._family = [self._root] if self._root is not None else []
        files = [self._server.file, output]
        look, census = self._began, self._began + FAMILY_SECONDS
        while (now := time.monotonic()) < self._began + self._limits.seconds:
            if now >= census:
                self._family = started_by(server) if server is not None else self._family
                census = now + FAMILY_SECONDS
            if now >= look:
                look = now + POLL_SECONDS
                held = memory_of(self._family)
                self._peak = max(self._peak, held)
                if held > self._limits.memory:
                    return "memory"
            ready, _, _ = select(files, [], [], max(0.0, min(look, self._began + self._limits.seconds) - now))
            if output in ready and not self._take(output):
                files.remove(output)
            if self._server.file in ready:
                return self._hear("ended", 0.0)
        return "hung"

    def _take(self, output: int) -> bool:
        """Read what lies there; whether there can be more."""
        for _ in range(256):
            try:
                chunk = os.read(output, CHUNK)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self._printed += chunk
            del self._printed[_KEPT // 2 : -_KEPT // 2]
        return True

    def _told(self, how: int | Literal["hung", "memory"], seconds: float) -> TryResult:
        status = how if isinstance(how, int) else None
        name = _signal_name(-status) if status is not None and status < 0 else ""
        text = bytes(self._printed).decode(errors="replace")
        by_kernel = name == "SIGKILL" and _memory_kills() > self._ooms
        return TryResult(
            status=status if not name else None,
            signal="" if by_kernel else name,
            hung=how == "hung",
            out_of_memory=how == "memory" or by_kernel,
            printed=text if len(text) <= PRINTED else text[:_HALF] + _LEFT_OUT + text[-_HALF:],
            seconds=seconds,
            peak=self._peak,
        )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _memory_kills() -> int:
    """How many processes the kernel has killed for want of memory since it began."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
