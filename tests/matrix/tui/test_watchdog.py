"""A screen whose loop does not turn says so, can be left, and leaves the terminal as it was whatever kills it."""

import os
import signal
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.harness.recorded import RECORDINGS
from tests.harness.terminal import LEFT_ALTERNATE_SCREEN, Terminal

MOUSE_OFF = b"\x1b[?1003l"
ROOT = Path(__file__).parents[3]
SCRIPT = """
import os, subprocess, sys, time
from pathlib import Path
from threading import Thread
from idbg.session.session import Session
from idbg.config.settings import Settings
from idbg_tui.terminal import watchdog
from idbg_tui.app import IdbgApp
from idbg_tui.terminal.runner import AppRunner

LONG = 10_000  # ticks: how busy the machine is as the screen starts is nobody's fault
watchdog.PATIENCE, watchdog.TICK = LONG, 0.2
app = IdbgApp(lambda: Session.open(Path(sys.argv[1])), Settings())

def impatient():
    app.watchdog._silent = 0
    watchdog.PATIENCE = 3
    os.write(1, b"HANGS")

def spin():
    impatient()
    while True:
        pass

def mute():
    impatient()
    while app.watchdog._guard is None:
        pass
    write = app.watchdog._write  # the terminal takes nothing more in time
    app.watchdog._write = lambda text, *seconds: "ended" not in text and write(text, *seconds)
    while True:
        pass

def pipe():
    impatient()
    os.mkfifo(sys.argv[1] + "/pipe")
    open(sys.argv[1] + "/pipe").read()

def nap():
    impatient()
    while not os.path.exists(sys.argv[1] + "/woken"):
        time.sleep(0.05)
    app.call_after_refresh(setattr, watchdog, "PATIENCE", LONG)

def edit():
    with app.suspend():
        impatient()
        print("EDITING", flush=True)
        time.sleep(2)
        watchdog.PATIENCE = LONG

def flood():
    app.set_interval(0.01, app.refresh)
    Thread(target=wait_until_full).start()

def wait_until_full():
    while app.watchdog._silent < 5:
        time.sleep(0.05)
    Path(sys.argv[1], "full").touch()

def painted():
    # the screen hangs once all of it is there
    if app.ready:
        app.set_timer(0.3, globals()[sys.argv[2]])
    else:
        app.set_timer(0.05, painted)

app.call_later(painted)
app.watchdog = watchdog.ScreenWatchdog()
sys.exit(AppRunner().show(app, app.watchdog))
"""

pytestmark = pytest.mark.slow
Hung = Callable[[str], Terminal]


@pytest.fixture
def hung(tmp_path: Path) -> Iterator[Hung]:
    """A screen over a saved session whose loop soon does something else."""
    opened: list[Terminal] = []
    (tmp_path / "hung.py").write_text(SCRIPT)
    (tmp_path / "events.jsonl").write_bytes((RECORDINGS / "attention.jsonl").read_bytes())

    def open_(how: str) -> Terminal:
        path = os.pathsep.join(sys.path)
        terminal = Terminal(
            [sys.executable, str(tmp_path / "hung.py"), str(tmp_path), how], cwd=tmp_path, env={"PYTHONPATH": path}
        )
        opened.append(terminal)
        return terminal

    yield open_
    for terminal in opened:
        terminal.close()


def until_raw(terminal: Terminal, seen: bytes, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while seen not in terminal.raw and time.monotonic() < deadline:
        terminal.pump(0.1)
    assert seen in terminal.raw


@pytest.mark.parametrize("how", ["spin", "pipe"])
def test_ctrl_c_ends_a_screen_that_does_not_answer_and_says_where_it_was(hung: Hung, how: str) -> None:
    terminal = hung(how)
    terminal.until("has not answered for")
    os.write(terminal.fd, b"\x03")
    assert terminal.wait() == 128 + signal.SIGINT
    assert LEFT_ALTERNATE_SCREEN in terminal.raw and MOUSE_OFF in terminal.raw
    assert f", in {how} (" in terminal.text and termios.tcgetattr(terminal.fd)[3] & termios.ECHO


def test_a_terminal_that_takes_nothing_as_the_screen_leaves_is_restored_after_it(hung: Hung) -> None:
    terminal = hung("mute")
    terminal.until("has not answered for")
    os.write(terminal.fd, b"\x03")
    assert terminal.wait() == 128 + signal.SIGINT
    until_raw(terminal, LEFT_ALTERNATE_SCREEN)


def test_a_signal_ends_it_too(hung: Hung) -> None:
    terminal = hung("spin")
    terminal.until("has not answered for")
    os.kill(terminal.pid, signal.SIGTERM)
    assert terminal.wait() == 128 + signal.SIGTERM
    assert LEFT_ALTERNATE_SCREEN in terminal.raw


def test_a_signal_that_came_before_it_was_noticed_ends_it(hung: Hung) -> None:
    terminal = hung("spin")
    until_raw(terminal, b"HANGS")
    os.kill(terminal.pid, signal.SIGTERM)
    assert terminal.wait() == 128 + signal.SIGTERM
    assert LEFT_ALTERNATE_SCREEN in terminal.raw


def test_the_terminal_is_given_back_when_it_is_killed(hung: Hung) -> None:
    terminal = hung("spin")
    terminal.until("has not answered for")
    assert LEFT_ALTERNATE_SCREEN not in terminal.raw
    terminal.settle(0.5, 1)
    os.kill(terminal.pid, signal.SIGKILL)
    until_raw(terminal, LEFT_ALTERNATE_SCREEN)
    assert MOUSE_OFF in terminal.raw
    deadline = time.monotonic() + 60
    while not termios.tcgetattr(terminal.fd)[3] & termios.ECHO and time.monotonic() < deadline:
        time.sleep(0.05)
    assert termios.tcgetattr(terminal.fd)[3] & (termios.ECHO | termios.ICANON)


def test_a_screen_that_answers_again_is_as_it_was(hung: Hung, tmp_path: Path) -> None:
    terminal = hung("nap")
    terminal.until("has not answered for")
    (tmp_path / "woken").touch()
    terminal.until(lambda screen: "has not answered" not in screen and "Graph" in screen)
    terminal.press("?")
    terminal.until("Keys")
    terminal.press("esc")
    terminal.until(lambda screen: "Keys" not in screen)
    terminal.press("q")
    assert terminal.wait() == 0, terminal.text
    assert LEFT_ALTERNATE_SCREEN in terminal.raw


def test_an_editor_may_take_its_time(hung: Hung) -> None:
    terminal = hung("edit")
    terminal.until("EDITING")
    terminal.until("saved")
    assert b"has not answered" not in terminal.raw
    terminal.press("q")
    assert terminal.wait() == 0, terminal.text


def test_sigterm_ends_a_screen_whose_terminal_nobody_reads(hung: Hung, tmp_path: Path) -> None:
    terminal = hung("flood")
    terminal.until("7 Log")
    wait_for((tmp_path / "full").exists)  # read no more
    os.kill(terminal.pid, signal.SIGTERM)
    wait_for(lambda: os.waitid(os.P_PID, terminal.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None)
    assert terminal.wait() == 128 + signal.SIGTERM


def wait_for(done: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert done()
