"""Watch the event loop: if it hangs, say so, let Ctrl+C end it, and restore the terminal.

While the event loop does not turn, no key is read, and a program that is killed leaves the terminal as the screen had
it: with the mouse reported, on the alternate screen, without an echo.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

PATIENCE = 10  # seconds
TICK = 1.0
_LEAVE = 3  # ticks that the loop has to leave after a signal
_WRITE = 0.5  # seconds; a terminal that nobody reads takes nothing, and a write to it does not return
_LAST = 3.0  # seconds: as we leave, on a busy machine

_MOUSE_OFF = "\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l"
_MOUSE_ON = "\x1b[?1000h\x1b[?1003h\x1b[?1015h\x1b[?1006h"
_PLAIN_KEYS = "\x1b[<u"  # Ctrl+C is a byte again, where the terminal sent it as a sequence
_KEY_REPORTS = "\x1b[>1u"
# what Textual's driver writes when it leaves, at once
RESTORE = f"\x1b[?2004l\x1b[?7h\x1b[?2048l{_MOUSE_OFF}{_PLAIN_KEYS}\x1b[?1049l\x1b[?25h\x1b[?1004l"

# Waits for our end without a word. Unless somebody else has set the terminal since, it is restored.
_GUARD = """
import ast, os, sys, termios
before, during, restore = ast.literal_eval(sys.argv[1])
if not os.read(0, 1):
    os.write(1, restore.encode())
    if termios.tcgetattr(1) == during:
        termios.tcsetattr(1, termios.TCSANOW, before)
"""

_Attributes = list[int | list[bytes | int]]


class ScreenWatchdog:
    """Looks at the loop each second, on a thread of its own. Make it before the screen: it remembers the terminal."""

    def __init__(self) -> None:
        self.terminal, self.screen = sys.stdin.fileno(), sys.stderr.fileno()  # Textual draws to stderr
        self._before: _Attributes = termios.tcgetattr(self.terminal)
        self._during: _Attributes = self._before
        self._silent = 0  # ticks since the loop last turned
        self._since_signal = 0  # ticks
        self._signal = 0
        self._away = threading.Event()  # the terminal is an editor's
        self._ended = threading.Event()
        self._guard: subprocess.Popen[bytes] | None = None
        self._writer = threading.Thread()

    # ------------------------------------------------------------- on the loop's thread

    def start(self, loop: asyncio.AbstractEventLoop, repaint: Callable[[], object]) -> None:
        """Watch from here on; `repaint` is called on the loop when it turns again after it did not."""
        self._repaint = repaint
        threading.Thread(target=self._watch, args=(loop,), name="idbg-watchdog", daemon=True).start()

    def stop(self) -> None:
        self._ended.set()
        self._dismiss_guard()

    def away(self, away: bool) -> None:
        """Another program has the terminal (`away`) or not; meanwhile the loop may block."""
        (self._away.set if away else self._away.clear)()

    def signalled(self, number: int) -> None:
        """The program got a signal to leave."""
        self._signal = self._signal or number
        if self.is_stuck:
            self._leave()

    @property
    def is_away(self) -> bool:
        return self._away.is_set()

    @property
    def is_stuck(self) -> bool:
        return self._silent >= PATIENCE

    # ------------------------------------------------------------- on its own thread

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._ended.wait(TICK):
            if self._away.is_set():
                self._silent = 0
                continue
            try:
                loop.call_soon_threadsafe(self._turned)
            except RuntimeError:
                return  # the loop is closed
            self._silent += 1  # not the time that has passed: the process may have been stopped, or have slept
            self._since_signal += bool(self._signal)
            if self._since_signal > _LEAVE and self._silent > _LEAVE:
                self._leave()
            if self._silent == PATIENCE:
                self._hold()
            elif self.is_stuck:
                self._say()

    def _turned(self) -> None:
        stuck, self._silent = self.is_stuck, 0
        if stuck:
            self._release()

    def _hold(self) -> None:
        """Ctrl+C becomes a signal, and who kills us finds the terminal as it was before."""
        self._during = termios.tcgetattr(self.terminal)
        held = list(self._during)
        held[3] = int(held[3]) | termios.ISIG  # type: ignore[arg-type]
        termios.tcsetattr(self.terminal, termios.TCSANOW, held)
        self._write(_MOUSE_OFF + _PLAIN_KEYS)
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _GUARD, repr((self._before, held, RESTORE))],
            stdin=subprocess.PIPE,
            stdout=self.screen,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._say()

    def _release(self) -> None:
        self._dismiss_guard()
        termios.tcsetattr(self.terminal, termios.TCSANOW, self._during)
        self._write(_MOUSE_ON + _KEY_REPORTS)
        self._repaint()

    def _dismiss_guard(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.communicate(b"x")

    def _say(self) -> None:
        columns, rows = shutil.get_terminal_size()
        words = f" idbg has not answered for {self._silent} s: Ctrl+C ends it "
        self._write(f"\x1b7\x1b[{rows};1H\x1b[7m{words[: columns - 1]}\x1b[0m\x1b8")

    def _leave(self) -> NoReturn:
        """Whoever asks: nothing of the loop's can be waited for."""
        termios.tcsetattr(self.terminal, termios.TCSANOW, self._before)
        if self._writer.is_alive():
            self._writer.join(_LAST)
        if self._write(f"{RESTORE}idbg-tui: ended; it did not answer for {self._silent} s{_where()}\n", _LAST):
            self._dismiss_guard()  # else it restores the terminal after us
        os._exit(128 + (self._signal or signal.SIGINT))

    def _write(self, text: str, seconds: float = _WRITE) -> bool:
        """Write it, if the terminal took what was written before. Whether it took this within `seconds`."""

        def write() -> None:
            with contextlib.suppress(OSError):  # the terminal is gone
                os.write(self.screen, text.encode())

        if self._writer.is_alive():
            return False
        self._writer = threading.Thread(target=write, name="idbg-terminal", daemon=True)
        self._writer.start()
        self._writer.join(seconds)
        return not self._writer.is_alive()


def _where() -> str:
    """The main thread's frame below the signal's handler, for a bug report."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    handlers = (__file__, str(Path(__file__).with_name("runner.py")))
    while frame is not None and frame.f_code.co_filename in handlers:
        frame = frame.f_back
    return f", in {frame.f_code.co_name} ({frame.f_code.co_filename}:{frame.f_lineno})" if frame else ""
