"""What is written in pieces shows the same as what is written whole, and no more than what changed is written."""

import random
import re

import pyte
import pytest
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from idbg_tui.terminal.changed_output import PaintedCells, _pieces

WIDTH, HEIGHT = 30, 6
STYLES = ["none", "red", "bold red", "on blue", "bold white on blue", "underline", "reverse", "#102030 on #405060"]
TEXTS = ["a", "abc", "  ", "x y z", "│─╮", "模型", "é", "e\u0301", "12345678"]


def strip(*pieces: tuple[str, str]) -> Strip:
    return Strip([Segment(text, Style.parse(style)) for text, style in pieces])


def row(choice: random.Random) -> Strip:
    made = strip(*((choice.choice(TEXTS), choice.choice(STYLES)) for _ in range(choice.randint(0, 8))))
    return made.adjust_cell_length(WIDTH)


def seen(cell: pyte.screens.Char) -> tuple[object, ...]:
    """What is seen of a cell: of a blank no colour but that behind it, unless lines or swapped colours are drawn."""
    if cell.data == " " and not (cell.underscore or cell.reverse or cell.strikethrough):
        return " ", cell.bg
    return tuple(cell)


class Shown:
    """A terminal that is written to, and one to which the same is written whole."""

    def __init__(self, system: ColorSystem = ColorSystem.TRUECOLOR) -> None:
        self.system, self.painted = system, PaintedCells()
        self.screen, self.whole = pyte.Screen(WIDTH, HEIGHT), pyte.Screen(WIDTH, HEIGHT)

    def paint(self, y: int, x: int, strip: Strip) -> str:
        text = self.painted.written([(y, x, strip)], self.system)
        pyte.Stream(self.screen).feed(text)
        fresh = PaintedCells().written([(y, x, strip)], self.system)
        pyte.Stream(self.whole).feed(fresh)
        return text

    @property
    def is_same(self) -> bool:
        ours, theirs = self.screen.buffer, self.whole.buffer
        return all(seen(ours[y][x]) == seen(theirs[y][x]) for y in range(HEIGHT) for x in range(WIDTH))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("system", [ColorSystem.TRUECOLOR, ColorSystem.STANDARD])
def test_any_order_of_paints_shows_what_whole_paints_show(seed: int, system: ColorSystem) -> None:
    choice, shown = random.Random(seed), Shown(system)
    for _ in range(60):
        line, x = row(choice), choice.choice([0, 0, 0, 4])
        shown.paint(choice.randrange(HEIGHT), x, line.crop(0, choice.randint(1, WIDTH - x)))
        assert shown.is_same


def test_nothing_is_written_for_what_is_there_and_a_colour_is_a_change() -> None:
    shown = Shown()
    assert shown.paint(0, 0, strip(("ab", "red"), ("cd", "none")))
    assert shown.paint(0, 0, strip(("a", "red"), ("b", "red"), ("cd", "none"))) == ""
    assert shown.paint(0, 0, strip(("ab", "blue"), ("cd", "none"))).count("ab") == 1


def test_only_changed_cells_are_written_and_near_ones_at_once() -> None:
    shown = Shown()
    shown.paint(0, 0, strip(("a" * WIDTH, "red on blue")))
    text = shown.paint(0, 0, strip(("aaXaaYaaaaaaaaaaaaaaZaaaaaaaaa", "red on blue")))
    assert re.sub(r"\x1b\[[\d;]*[mHCG]", "|", text).replace("||", "|") == "|XaaY|Z|"


def test_a_style_is_written_as_what_it_changes() -> None:
    text = Shown().paint(0, 0, strip(("a", "red on blue"), ("b", "green on blue"), ("c", "green")))
    assert re.findall(r"\x1b\[([\d;]*)m", text) == ["32", "31;44", "32", "0"]
    text = Shown().paint(0, 0, strip(("a", "#102030"), ("b", "bold #102030"), ("c", "bold italic #102030")))
    assert re.findall(r"\x1b\[([\d;]*)m", text) == ["38;2;16;32;48", "1", "3", "0"]


def test_each_style_of_a_frame_is_written_once() -> None:
    line = strip(*(("x", "red"), (" ", "none"), ("y", "green")) * 4)
    text = PaintedCells().written([(0, 0, line), (3, 0, line)], ColorSystem.TRUECOLOR)
    assert re.findall(r"\x1b\[([\d;]*)m", text) == ["31", "32", "0"]
    screen = pyte.Screen(WIDTH, HEIGHT)
    pyte.Stream(screen).feed(text)
    assert [screen.display[y].strip() for y in (0, 3)] == ["x yx yx yx y"] * 2


def test_both_kinds_of_updates_are_read() -> None:
    one, two = strip(("ab", "none")), strip(("cd", "none"))
    assert list(_pieces(LayoutUpdate([[one, two], [two]], Region(3, 1, 4, 2)))) == [
        (1, 3, one),
        (1, 5, two),
        (2, 3, two),
    ]
    chops = ChopsUpdate([{0: one, 2: None, 4: two}], [(0, 0, 5)], [[2, 4, 6]])
    assert [(y, x, piece.text) for y, x, piece in _pieces(chops)] == [(0, 0, "ab"), (0, 4, "c")]
