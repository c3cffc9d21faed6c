"""Run one try of a script: started by a server, watched, and ended if it takes too much time or memory."""

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
from idbg.schema.faults import signal_name

PRINTED = 20_000  # characters of the output that are kept, half of them the first
_KEPT = 4 * PRINTED  # bytes
_HALF = PRINTED // 2
_LEFT_OUT = "\n[...]\n"
CHUNK = 1 << 16
POLL_SECONDS = 0.05  # between two looks at the memory
FAMILY_SECONDS = 0.4  # between two looks at the process tree, each of which reads all of /proc
TIDY_SECONDS = 0.5  # for processes to clean up after SIGTERM
OVER_SECONDS = 30.0  # for the server to end the processes that a script left


@dataclass(frozen=True)
class Limits:
    """The limits of a try: seconds, and bytes of memory for it and all processes that it starts."""

    seconds: float
    memory: int


class Attempt:
    """One try. If it is interrupted, its process continues until the server ends."""

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
        """Run the script of the order until it ends or exceeds a limit. Raises ServerGone."""
        read, write = os.pipe()
        try:
            os.set_blocking(read, False)
            try:
                self._server.send(order, write)
            finally:
                os.close(write)
            self.pid = self._receive("pid", OVER_SECONDS)
            self._began = time.monotonic()
            how = self._watched(read)
            seconds = time.monotonic() - self._began
            self._server.send({"over": TIDY_SECONDS})
            self._receive("over", OVER_SECONDS)
            self._read(read)
        finally:
            os.close(read)
        return self._result(how, seconds)

    def lost(self) -> TryResult:
        """The result if the server is gone, as the script ended it. Ends the script too."""
        send(signal.SIGKILL, self._family)
        if self._root is not None:
            end_all(self._root)
            send(signal.SIGKILL, [self._root])
        self._printed += b"\nidbg: this process ended the one that had started it\n"
        return self._result(-signal.SIGKILL, time.monotonic() - self._began)

    def _receive(self, key: str, seconds: float) -> int:
        """The value of the server's next message with this key; other messages are outdated and skipped."""
        while key not in (message := self._server.receive(seconds)):
            pass
        return int(str(message[key] if message[key] is not True else 1))

    def _watched(self, output: int) -> int | Literal["hung", "memory"]:
        """Its exit status, or the limit that it exceeded."""
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
            if output in ready and not self._read(output):
                files.remove(output)
            if self._server.file in ready:
                return self._receive("ended", 0.0)
        return "hung"

    def _read(self, output: int) -> bool:
        """Read the available output; returns whether more can follow."""
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

    def _result(self, how: int | Literal["hung", "memory"], seconds: float) -> TryResult:
        status = how if isinstance(how, int) else None
        name = signal_name(-status) if status is not None and status < 0 else ""
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


def _memory_kills() -> int:
    """The number of processes that the kernel has killed for lack of memory since it booted."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
