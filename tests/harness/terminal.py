"""A program in a real pseudo-terminal: its screen as text, its keys, its end."""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte

KEYS = {
    "enter": "\r",
    "esc": "\x1b",
    "tab": "\t",
    "down": "\x1b[B",
    "up": "\x1b[A",
    "ctrl+c": "\x03",
    "backspace": "\x7f",
}
MOST = 1 << 20  # bytes that are read before they are drawn
LEFT_ALTERNATE_SCREEN = b"\x1b[?1049l"


class Terminal:
    def __init__(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], columns: int = 160, rows: int = 45
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = bytearray()
        self.status: int | None = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            ours = {name: value for name, value in os.environ.items() if name not in ("LINES", "COLUMNS", "NO_COLOR")}
            # readline, which pytest imports, puts LINES and COLUMNS behind os.environ's back: name the environment
            os.execvpe(argv[0], list(argv), {**ours, **env, "TERM": "xterm-256color", "COLORTERM": "truecolor"})

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)

    @property
    def text(self) -> str:
        return "\n".join(self.screen.display)

    def pump(self, seconds: float) -> bool:
        """Read what comes in up to `seconds`, and all that waits behind it; False once the program has ended."""
        data, alive = b"", True
        while alive and len(data) < MOST and select.select([self.fd], [], [], 0 if data else seconds)[0]:
            try:
                part = os.read(self.fd, 1 << 16)
            except OSError:
                part = b""
            data += part
            alive = bool(part)
        self.raw += data
        # pyte prints private sequences that it does not know
        for unknown in (b"\x1b[>4;1m", b"\x1b[>4;0m", b"\x1b[>1u", b"\x1b[<u", b"\x1b[?2048$p"):
            data = data.replace(unknown, b"")
        self.stream.feed(data)
        return alive

    def settle(self, quiet: float = 0.3, limit: float = 10.0) -> None:
        """Read until nothing came for `quiet` seconds."""
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            before = len(self.raw)
            if not self.pump(quiet) or len(self.raw) == before:
                return

    def idle(self, quiet: float = 0.3, limit: float = 60.0) -> None:
        """Read until nothing came for `quiet` seconds in which the program waited: on a busy machine a frame may stop
        halfway for longer. Linux only.
        """
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            before = len(self.raw), self._ticks()
            if not self.pump(quiet) or (not self._is_running() and (len(self.raw), self._ticks()) == before):
                return

    def _stat(self, file: str) -> list[str]:
        """The fields of proc(5)'s stat behind the name, the state first; [] of a thread that ended."""
        try:
            return Path(file).read_text().rpartition(")")[2].split()
        except OSError:
            return []

    def _ticks(self) -> int:
        return sum(map(int, self._stat(f"/proc/{self.pid}/stat")[11:13]))

    def _is_running(self) -> bool:
        """Whether a thread of it has work to do, also one that waits for a processor."""
        return any(self._stat(f"{task}/stat")[:1] != ["S"] for task in Path(f"/proc/{self.pid}/task").iterdir())

    def press(self, *keys: str) -> None:
        for key in keys:
            os.write(self.fd, KEYS.get(key, key).encode())
            self.settle(0.15)

    def until(self, seen: str | Callable[[str], bool], seconds: float = 60.0) -> str:
        """Wait until the text is on the screen (or the function says so), and give the screen."""
        wanted = seen if callable(seen) else lambda text: seen in text
        deadline, alive = time.monotonic() + seconds, True
        while not wanted(text := self.text):
            assert alive, f"the program ended before {seen!r}; its screen:\n{text}"
            assert time.monotonic() < deadline, f"{seen!r} was not seen in {seconds} s; the screen:\n{text}"
            alive = self.pump(0.1)
        return text

    def wait(self, seconds: float = 60.0) -> int:
        """The program's exit status."""
        deadline = time.monotonic() + seconds
        while self.status is None:
            self.pump(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            assert time.monotonic() < deadline or self.status is not None, f"it did not end; its screen:\n{self.text}"
        while self.pump(0.1) and select.select([self.fd], [], [], 0)[0]:
            pass
        return self.status

    def close(self) -> None:
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
