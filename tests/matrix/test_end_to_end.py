"""The main job, in a real terminal, on a real model: compile, walk, filter, edit rules, leave with a repro."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.harness.terminal import LEFT_ALTERNATE_SCREEN, Terminal

ROOT = Path(__file__).resolve().parents[2]
Open = Callable[..., Terminal]

pytestmark = pytest.mark.slow


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Open]:
    """Open `idbg-tui` in a terminal, with its sessions and settings in a folder of the test's."""
    opened: list[Terminal] = []
    (tmp_path / "settings.toml").touch()
    env = {"IDBG_SETTINGS": str(tmp_path / "settings.toml"), "EDITOR": "true"}

    def open_(*arguments: str, **options: int) -> Terminal:
        command = [sys.executable, "-m", "idbg_tui", "--output", str(tmp_path / "sessions"), *arguments]
        terminal = Terminal(command, cwd=ROOT, env=env, **options)
        opened.append(terminal)
        return terminal

    yield open_
    for terminal in opened:
        terminal.close()


def rejects(screen: str) -> int:
    """How many violations the header counts."""
    found = re.search(r"✘ (\d+) reject", screen.splitlines()[0])
    return int(found[1]) if found else 0


def test_resnet_from_first_paint_to_repro(start: Open, tmp_path: Path):
    terminal = start("examples/resnet.py")
    terminal.until("1 Graph")
    terminal.until(lambda screen: rejects(screen) == 20 and "kernels" in screen, 300)

    terminal.press("v")
    assert "aten.convolution.default" in terminal.until("unsupported_ops: convolution is denied")
    terminal.press("/", "bn2", "enter")
    terminal.until(lambda screen: re.search(r"\d+ of \d+", screen.splitlines()[1]) is not None)
    terminal.press("esc")

    terminal.press("8")
    terminal.until("multiple 1 ")
    terminal.press("+", "+", "+", "+")
    terminal.until(lambda screen: "multiple 16 " in screen and rejects(screen) > 20)
    terminal.press("_", "_", "_", "_")
    terminal.until(lambda screen: "multiple 1 " in screen and rejects(screen) == 20)

    terminal.press("c", "1", "v", "r")
    terminal.until(lambda screen: rejects(screen) == 20 and "kernels" in screen.splitlines()[0], 300)
    terminal.press("x")
    terminal.until("reproduced", 120)
    terminal.press("q")
    assert terminal.wait() == 0, terminal.raw[-3000:].decode()
    assert LEFT_ALTERNATE_SCREEN in terminal.raw

    (script,) = (tmp_path / "sessions").glob("resnet-*/repros/*/repro.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "REPRODUCED unsupported_ops" in done.stdout


def test_a_saved_session_opens_without_torch(start: Open, tmp_path: Path):
    subprocess.run(
        [sys.executable, "-m", "idbg", "run", "examples/mlp_train.py", "--backend", "mock", "--warn",
         "--output", str(tmp_path / "made")],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (saved,) = (tmp_path / "made").iterdir()
    terminal = start(str(saved))
    terminal.until("layer_norm")
    maps = Path(f"/proc/{terminal.pid}/maps")
    if maps.exists():
        assert "libtorch" not in maps.read_text()
    terminal.press("q")
    assert terminal.wait() == 0, terminal.text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_restores_the_terminal_and_leaves_no_process(start: Open, number: signal.Signals):
    terminal = start("examples/plain_script.py", "--backend", "eager")
    terminal.until("1 Graph")
    terminal.settle(0.5, 3)
    os.kill(terminal.pid, number)
    terminal.wait()
    assert LEFT_ALTERNATE_SCREEN in terminal.raw


def test_a_small_terminal_shows_one_pane_and_a_line_of_all(start: Open):
    terminal = start("examples/mlp_train.py", "--backend", "mock", columns=80, rows=24)
    terminal.until("layer_norm", 60)
    assert len(terminal.screen.display) == 24
    terminal.press("7")
    terminal.until("dynamo")
    terminal.press("ctrl+c")
    terminal.settle(0.5, 3)
    if terminal.status is None:
        terminal.press("q")
    assert terminal.wait() == 0, terminal.text
