"""End the program on a signal or a lost terminal, and restore the terminal."""

import asyncio
import contextlib
import os
import select
import signal
import sys
import threading
import time
from types import FrameType
from typing import IO, Any

from textual.app import App

from idbg_tui.terminal import input_bytes
from idbg_tui.terminal.watchdog import ScreenWatchdog

HANG_UP = 0.5  # seconds after the terminal is gone, for the kernel's own signal to come first


class _Terminal:
    """The file to which Textual draws. It takes what is written after the terminal is gone too: the thread that writes
    would end, and leave the others waiting for it. The kernel continues a process whose terminal hangs up, and Textual
    then draws again.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._file.flush()

    def fileno(self) -> int:
        """The terminal's."""
        return self._file.fileno()

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._file.isatty()


class AppRunner:
    """Signals, and a terminal that is gone, from here on. One for the process; it shows one app after the other."""

    def __init__(self) -> None:
        self._ended: list[int] = []  # by which signals
        self._app: App[Any] | None = None
        self._watchdog: ScreenWatchdog | None = None
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, self._end)
        input_bytes.use()
        if sys.__stderr__ is not None:
            vars(sys)["__stderr__"] = _Terminal(sys.__stderr__)  # which Textual's driver takes
        threading.Thread(target=watch_terminal, args=(sys.stdin.fileno(), self._ended), daemon=True).start()

    @property
    def status(self) -> int:
        """128 + N if signal N ended the program, else 0."""
        return 128 + self._ended[0] if self._ended else 0

    def show(self, app: App[Any], watchdog: ScreenWatchdog | None = None) -> int:
        """Run the app until it ends; the exit status that this comes to. `watchdog` is the one that the app starts."""
        self._app, self._watchdog = app, watchdog
        try:
            app.run()
        finally:
            if watchdog is not None:
                watchdog.stop()
            self._app = self._watchdog = None
        return self.status or app.return_code or 0

    def _end(self, number: int, frame: FrameType | None) -> None:
        watchdog = self._watchdog
        if number == signal.SIGINT and watchdog is not None and watchdog.is_away:
            return  # it is for the editor
        self._ended.append(number)
        if watchdog is not None:
            watchdog.signalled(number)
        if len(self._ended) > 1 or self._app is None:
            raise SystemExit(128 + number)  # the app did not leave at the first signal, or there is none
        try:
            asyncio.get_running_loop().call_soon_threadsafe(self._app.exit)
        except RuntimeError:
            raise SystemExit(128 + number) from None  # no screen yet, or no longer


def watch_terminal(terminal: int, ended: list[int]) -> None:
    """Wait until the terminal is gone, and hang up ourselves if nobody has.

    The kernel does it only for a controlling terminal; without, Textual would read the end of its input for ever.
    """
    poller = select.poll()
    poller.register(terminal, 0)  # a hang-up is always reported
    if poller.poll() and not ended:
        time.sleep(HANG_UP)
        if not ended:
            os.kill(os.getpid(), signal.SIGHUP)
