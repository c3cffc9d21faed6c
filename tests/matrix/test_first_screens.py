"""The welcome screen and the tour, in a real terminal: painted at once, used with keys alone, and left as it was."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.harness.recorded import RECORDINGS
from tests.harness.terminal import LEFT_ALTERNATE_SCREEN, Terminal

ROOT = Path(__file__).resolve().parents[2]
Open = Callable[..., Terminal]

pytestmark = pytest.mark.slow


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Open]:
    """Run `idbg` in a terminal, with its sessions and settings in a folder of the test's."""
    opened: list[Terminal] = []
    (tmp_path / "settings.toml").touch()
    env = {"IDBG_SETTINGS": str(tmp_path / "settings.toml"), "IDBG_OUTPUT": str(tmp_path / "sessions")}
    env |= {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}

    def open_(*arguments: str, columns: int = 80, rows: int = 24, **more: str) -> Terminal:
        command = [sys.executable, "-m", "idbg", *arguments]
        opened.append(Terminal(command, cwd=tmp_path, env={**env, **more}, columns=columns, rows=rows))
        return opened[-1]

    yield open_
    for terminal in opened:
        terminal.close()


def test_a_session_is_chosen_among_the_last_ones_and_opened(start: Open, tmp_path: Path) -> None:
    for name in ("attention", "resnet"):
        folder = tmp_path / "sessions" / f"{name}-1"
        folder.mkdir(parents=True)
        (folder / "events.jsonl").write_bytes((RECORDINGS / f"{name}.jsonl").read_bytes())
    (tmp_path / "sessions" / "torn-1").mkdir()
    begun = (RECORDINGS / "attention.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "sessions" / "torn-1" / "events.jsonl").write_bytes(b"".join(begun[:4]) + b"not an event\n" + begun[5])

    terminal = start("open")
    terminal.until("3 in sessions")
    assert "damaged" in terminal.until("Take the tour") and "resnet.py" in terminal.text
    terminal.press("resnet violations")
    terminal.until(" 1 of 3 sessions")
    terminal.press("enter")
    terminal.until("saved")
    assert "Graph" in terminal.text
    terminal.press("q")
    assert terminal.wait() == 0, terminal.text
    assert terminal.raw.count(LEFT_ALTERNATE_SCREEN) == 2  # of the welcome screen, and of the session's


def test_the_welcome_screen_is_left_with_a_key_or_a_signal_and_needs_only_ascii(start: Open) -> None:
    terminal = start("open", IDBG_ASCII="1")
    assert terminal.until("Take the tour").isascii() and "none in sessions yet" in terminal.text
    terminal.press("esc")
    assert terminal.wait() == 0, terminal.text
    terminal = start("open")
    terminal.until("Take the tour")
    os.kill(terminal.pid, 15)
    assert terminal.wait() == 128 + 15 and LEFT_ALTERNATE_SCREEN in terminal.raw


def test_the_tour_is_walked_to_its_end_on_the_real_model(start: Open, tmp_path: Path) -> None:
    terminal = start("tour", IDBG_ASCII="1")
    terminal.until(lambda text: "Tour 2 of 11" in text and "Press u." in text, 120)
    for keys, step in ((["u"], 3), (["v"], 4), (["3"], 5), (["8", *["down"] * 4, " "], 6), ([" "], 7), (["2"], 8)):
        terminal.press(*keys)
        terminal.until(f"Tour {step} of 11")
        assert [letter for letter in terminal.text if not letter.isascii()] == []
    terminal.press("d")
    terminal.until("Tour 9 of 11", 120)
    terminal.press("0")
    terminal.until("Tour 10 of 11")
    terminal.press("1", "v", "x")
    assert "a script that shows it" in terminal.until("Tour 11 of 11", 120)
    terminal.press("q")
    assert terminal.wait() == 0, terminal.text
    assert len(list((tmp_path / "sessions").glob("tour-*/repros/*/repro.py"))) == 1
