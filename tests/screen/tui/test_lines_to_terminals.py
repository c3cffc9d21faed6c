"""In real terminals: what is written in pieces shows what a whole drawing shows; tmux; a connection that drops."""

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.recorded import RECORDINGS
from tests.harness.terminal import Terminal

pytestmark = pytest.mark.usefixtures("painted")

SIZES = ((120, 40), (80, 24), (60, 15), (160, 45))
KEYS = ("j", "k", "g", "G", "l", "f", "1", "2", "3", "4", "5", "6", "7", "8", "0", "-", "\t", "\x04", "\x15", "z", "]")


def environment(folder: Path) -> dict[str, str]:
    (folder / "settings.toml").touch()
    paths = {"XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
    return {"IDBG_SETTINGS": str(folder / "settings.toml"), "LANG": "C.UTF-8", **paths}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    folder = tmp_path / "saved"
    folder.mkdir()
    shutil.copy(RECORDINGS / "planted.jsonl", folder / "events.jsonl")
    return folder


@pytest.fixture
def terminal(saved: Path) -> Iterator[Terminal]:
    opened = Terminal([sys.executable, "-m", "idbg_tui", str(saved)], cwd=saved, env=environment(saved))
    opened.until("55 nodes")
    opened.settle(0.5)
    yield opened
    opened.close()


def test_keys_and_resizes_leave_on_the_screen_what_a_whole_drawing_does(terminal: Terminal) -> None:
    choice = random.Random(24)
    for number in range(60):
        if number % 12 == 11:
            for _ in range(5):  # as one drags a window's corner
                terminal.resize(choice.randint(60, 160), choice.randint(15, 45))
            terminal.resize(*choice.choice(SIZES))
            terminal.idle()
        terminal.press(choice.choice(KEYS))
        if number % 6 == 5:
            terminal.idle(1.0)  # a first view is imported between two frames
            before = terminal.text
            terminal.press("\x0c")
            terminal.idle()
            assert terminal.text == before


def test_a_change_of_focus_and_of_pane_write_less_than_their_borders(terminal: Terminal) -> None:
    """The whole screen, which each wrote before, is 48 kB."""
    for key, most in (("2", 8_000), ("1", 8_000), ("5", 12_000), ("7", 12_000)):
        terminal.raw.clear()
        terminal.press(key)
        terminal.idle()
        assert 0 < len(terminal.raw) < most, key
    terminal.raw.clear()
    terminal.settle(1.0, 1.5)
    assert not terminal.raw


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed here: apt-get install tmux")
def test_in_tmux_it_is_drawn_and_follows_the_windows_size(saved: Path) -> None:
    name = f"idbg-{os.getpid()}"

    def tmux(*command: str) -> str:
        done = subprocess.run(["tmux", "-L", name, *command], capture_output=True, text=True, check=True, env=env)
        return done.stdout

    def until(text: str) -> None:
        deadline = time.monotonic() + 60
        while text not in tmux("capture-pane", "-p") and time.monotonic() < deadline:
            time.sleep(0.1)
        assert text in tmux("capture-pane", "-p")

    env = {name: value for name, value in os.environ.items() if name not in ("LINES", "COLUMNS")} | environment(saved)
    tmux("-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", sys.executable, "-m", "idbg_tui", str(saved))
    try:
        until("55 nodes")
        tmux("send-keys", "4")
        until("enter go there")
        tmux("resize-window", "-x", "80", "-y", "24")
        until("1Gra  2Src  3Nod  4 Find 1  5 Diff")
        tmux("resize-window", "-x", "160", "-y", "45")
        until("2 Source")
    finally:
        tmux("kill-server")


def test_a_connection_that_drops_keeps_what_was_captured(tmp_path: Path) -> None:
    program, kept = tmp_path / "small.py", tmp_path / "kept"
    program.write_text(
        "import time\nimport torch\n\n\ndef model(x):\n    return x.sin() + 1\n\n\n"
        "torch.compile(model, backend='eager')(torch.ones(3))\nprint('captured')\ntime.sleep(60)\n"
    )
    command = [sys.executable, "-m", "idbg_tui", str(program), "--output", str(kept)]
    terminal = Terminal(command, cwd=tmp_path, env=environment(tmp_path), columns=120, rows=40)
    terminal.until("sin")
    os.close(terminal.fd)
    deadline = time.monotonic() + 60
    while os.waitpid(terminal.pid, os.WNOHANG)[0] == 0:
        assert time.monotonic() < deadline, "it did not end"
        time.sleep(0.05)
    again = Terminal(
        [sys.executable, "-m", "idbg", "open", "last", "--output", str(kept)],
        cwd=tmp_path,
        env=environment(tmp_path),
        columns=120,
        rows=40,
    )
    again.until("cancelled")
    again.until("sin")
    again.close()
