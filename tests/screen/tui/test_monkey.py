"""Keys at random over saved sessions, at several sizes: does the screen take any of them, in any order?

IDBG_MONKEYS=50 pytest tests/screen/tui/test_monkey.py lets so many loose, of 1,000 keys each. A failure names its seed.
"""

import os
import random
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot

from idbg_tui.app import IdbgApp
from idbg_tui.controllers.leaving import Leaving
from idbg_tui.terminal import suspend
from tests.harness.recorded import app_of
from tests.harness.screen import settle

RECORDED = ("attention", "planted", "benched", "resnet", "mlp_train_cuda", "minified")
SIZES = ((160, 45), (120, 40), (80, 24), (60, 15), (20, 5), (200, 60))
TURN = 43  # keys from one size to the next
PASTE, PASTES = 29, ("conv", "a\nb", "\x1b[31mred", "漢" * 300, "[[rules]]\nkind = ", "")
KEYS: tuple[str, ...] = (
    *("j", "k", "g", "G", "h", "l", "f", "n", "N", "o", "t", "w", "p", "s", "m", "space", "enter", "escape", "slash"),
    *("up", "down", "left", "right", "home", "end", "pageup", "pagedown", "ctrl+d", "ctrl+u", "ctrl+o", "ctrl+y"),
    *(
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
        "7",
        "8",
        "9",
        "tab",
        "shift+tab",
        "z",
        "equals_sign",
        "minus",
        "plus",
        "underscore",
    ),
    *("left_square_bracket", "right_square_bracket", "left_curly_bracket", "right_curly_bracket", "comma", "full_stop"),
    *(
        "i",
        "I",
        "u",
        "U",
        "v",
        "V",
        "M",
        "P",
        "C",
        "B",
        "R",
        "T",
        "D",
        "ctrl+x",
        "d",
        "r",
        "c",
        "x",
        "X",
        "b",
        "a",
        "A",
        "y",
        "Y",
    ),
    *(
        "question_mark",
        "ctrl+p",
        "colon",
        "exclamation_mark",
        "apostrophe",
        "Z",
        "backspace",
        "delete",
        "S",
        "ctrl+z",
        "ctrl+s",
        "shift+up",
        "shift+down",
        "0",
        "漢",
        "at",
        "asterisk",
        "vertical_line",
        "E",
        "ctrl+l",
        "ctrl+i",
    ),
)


@pytest.fixture(autouse=True)
def caged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may leave neither the screen nor the folder: no quitting, no editor, no clipboard."""
    (tmp_path / "cage").mkdir()
    monkeypatch.chdir(tmp_path / "cage")
    monkeypatch.setattr(Leaving, "quit", lambda self: None)
    monkeypatch.setattr(Leaving, "interrupt", lambda self: None)
    monkeypatch.setattr(suspend, "edit", lambda *_: None)
    monkeypatch.setattr(suspend, "edit_text", lambda app, name, text, *_: text)
    monkeypatch.setattr(suspend, "copy", lambda *_: "copied")


async def play(app: IdbgApp, pilot: Pilot[None], seed: int, count: int) -> None:
    """Press keys, and change the size of the terminal now and then."""
    chance, pressed = random.Random(seed), list[str]()
    for number in range(1, count + 1):
        if not app.is_running or app.return_code is not None:
            break
        if number % PASTE == 0:
            pressed.append("paste")
            app.post_message(events.Paste(chance.choice(PASTES)))
            await pilot.pause()
        elif number % TURN:
            pressed.append(chance.choice(KEYS))
            await pilot.press(pressed[-1])
        else:
            size = chance.choice(SIZES)
            pressed.append(f"{size[0]}x{size[1]}")
            await pilot.resize_terminal(*size)
    last = " ".join(pressed[-40:])
    assert len(pressed) == count and app.return_code is None, f"monkey {seed} ended the screen: ... {last}"


async def let_loose(folder: Path, seed: int, count: int) -> None:
    app = app_of(RECORDED[seed % len(RECORDED)], folder)
    async with app.run_test(size=SIZES[seed % len(SIZES)]) as pilot:
        await settle(pilot)
        await play(app, pilot, seed, count)
        await settle(pilot)  # what follows the last key


@pytest.mark.parametrize("seed", range(2))
async def test_a_monkey_does_not_end_the_screen(tmp_path: Path, seed: int) -> None:
    await let_loose(tmp_path, seed, 150)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 100 + int(os.environ.get("IDBG_MONKEYS", "1"))))
async def test_monkeys_do_not_end_the_screen_in_a_thousand_keys(tmp_path: Path, seed: int) -> None:
    await let_loose(tmp_path, seed, 1000)
