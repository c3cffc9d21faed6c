"""Draw a terminal's screen as an SVG that works with any monospace font.

Each run of cells of one colour is a text with a fixed width. Characters of frames and bars are drawn as shapes, because
fonts leave gaps between them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from xml.sax.saxutils import escape

import pyte
from pyte.screens import Char

CELL = (8.4, 18.0)  # width and height of a cell, in the picture's units
SIZE = 14  # of the font: DejaVu Sans Mono, Menlo and their like are 0.6 of it wide
INK, PAPER = "#d4d4d4", "#1e1e1e"  # where the program leaves it to the terminal
FONTS = "ui-monospace,SFMono-Regular,Menlo,'DejaVu Sans Mono',Consolas,monospace"
NAMED = {
    "black": "#000000",
    "red": "#cd3131",
    "green": "#0dbc79",
    "brown": "#e5e510",
    "blue": "#2472c8",
    "magenta": "#bc3fbc",
    "cyan": "#11a8cd",
    "white": "#e5e5e5",
    "brightblack": "#666666",
}
# which of its four sides a sign that draws frames leads to
STROKES = (
    {"─": "lr", "━": "lr", "│": "ud", "┃": "ud", "╴": "l", "╶": "r", "╵": "u", "╷": "d"}
    | {"╭": "rd", "╮": "ld", "╰": "ru", "╯": "lu", "┌": "rd", "┐": "ld", "└": "ru", "┘": "lu"}
    | {"├": "udr", "┤": "udl", "┬": "lrd", "┴": "lru", "┼": "lrud"}
)
# the part of its cell that a block fills: left, top, width, height, in eighths
BLOCKS = (
    {sign: (0, 8 - n, 8, n) for n, sign in enumerate("▁▂▃▄▅▆▇█", 1)}
    | {sign: (0, 0, n, 8) for n, sign in enumerate("▏▎▍▌▋▊▉", 1)}
    | {"▐": (4, 0, 4, 8), "▀": (0, 0, 8, 4), "▔": (0, 0, 8, 1), "▕": (7, 0, 1, 8)}
)
SHADES = {"░": 0.25, "▒": 0.5, "▓": 0.75}


@dataclass(frozen=True)
class Run:
    """Cells of one row that look alike."""

    row: int
    column: int
    cells: tuple[Char, ...]

    @property
    def text(self) -> str:
        return "".join(cell.data for cell in self.cells)

    @property
    def ink(self) -> str:
        cell = self.cells[0]
        return _colour(cell.bg, PAPER) if cell.reverse else _colour(cell.fg, INK)


def picture(screen: pyte.Screen) -> str:
    """The screen as SVG."""
    width, height = screen.columns * CELL[0], screen.lines * CELL[1]
    style = f"text{{font:{SIZE}px {FONTS};white-space:pre}}.b{{font-weight:bold}}.u{{text-decoration:underline}}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(width)} {_n(height)}">',
        f"<style>{style}</style>",
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
        *_papers(screen),
        *_inks(screen),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _colour(name: str, default: str) -> str:
    if name == "default":
        return default
    return NAMED.get(name) or f"#{name}"


def _n(value: float) -> str:
    """A number as short as it can be written."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _rows(screen: pyte.Screen) -> Iterator[tuple[int, list[Char]]]:
    for row in range(screen.lines):
        yield row, [screen.buffer[row][column] for column in range(screen.columns)]


def _papers(screen: pyte.Screen) -> Iterator[str]:
    """What is behind the text: a rectangle for each stretch of one colour."""
    for row, cells in _rows(screen):
        papers = [_colour(cell.fg, INK) if cell.reverse else _colour(cell.bg, PAPER) for cell in cells]
        start = 0
        for end in range(1, len(papers) + 1):
            if end == len(papers) or papers[end] != papers[start]:
                if papers[start] != PAPER:
                    place = f'x="{_n(start * CELL[0])}" y="{_n(row * CELL[1])}"'
                    # a hair more than its cells: renderers leave gaps between rectangles that only touch
                    size = f'width="{_n((end - start) * CELL[0] + 0.3)}" height="{_n(CELL[1] + 0.3)}"'
                    yield f'<rect {place} {size} fill="{papers[start]}"/>'
                start = end


def _inks(screen: pyte.Screen) -> Iterator[str]:
    for row, cells in _rows(screen):
        column = 0
        while column < len(cells):
            cell = cells[column]
            if not cell.data.strip():
                column += 1
            elif _is_drawn(cell):
                end = _end(cells, column, partial(_same_sign, cell))
                yield _shape(Run(row, column, tuple(cells[column:end])))
                column = end
            else:
                end = _end(cells, column, lambda each: not _is_drawn(each))
                while not cells[end - 1].data.strip():
                    end -= 1
                yield _text(Run(row, column, tuple(cells[column:end])))
                column = end


def _same_sign(cell: Char, other: Char) -> bool:
    return cell.data == other.data


def _is_drawn(cell: Char) -> bool:
    return cell.data in STROKES or cell.data in BLOCKS or cell.data in SHADES


def _end(cells: list[Char], start: int, fits: Callable[[Char], bool]) -> int:
    """Where the run that begins here ends: at another look, or where the cell does not fit."""
    first = cells[start]
    end = start + 1
    while end < len(cells) and _alike(cells[end], first) and fits(cells[end]):
        end += 1
    return end


def _alike(one: Char, other: Char) -> bool:
    looks = (one.fg, one.bold, one.underscore, one.reverse) == (other.fg, other.bold, other.underscore, other.reverse)
    return looks and (not one.reverse or one.bg == other.bg)


def _text(run: Run) -> str:
    cell = run.cells[0]
    classes = " ".join(name for name, on in (("b", cell.bold), ("u", cell.underscore)) if on)
    look = f' class="{classes}"' if classes else ""
    place = f'x="{_n(run.column * CELL[0])}" y="{_n(run.row * CELL[1] + 13.5)}"'
    width = f'textLength="{_n(len(run.cells) * CELL[0])}" lengthAdjust="spacingAndGlyphs"'
    return f'<text {place} {width} fill="{run.ink}"{look}>{escape(run.text)}</text>'


def _shape(run: Run) -> str:
    sign, count = run.cells[0].data, len(run.cells)
    left, top = run.column * CELL[0], run.row * CELL[1]
    if sign in STROKES:
        lines = "".join(_stroke(STROKES[sign], left + n * CELL[0], top) for n in range(count))
        if STROKES[sign] == "lr":
            lines = f"M{_n(left)} {_n(top + CELL[1] / 2)}h{_n(count * CELL[0])}"
        return f'<path d="{lines}" stroke="{run.ink}" fill="none"/>'
    x, y, wide, high = BLOCKS.get(sign, (0, 0, 8, 8))
    width = CELL[0] * (count - 1) + CELL[0] * wide / 8 if wide == 8 else CELL[0] * wide / 8
    opacity = f' opacity="{SHADES[sign]}"' if sign in SHADES else ""
    boxes = range(1) if wide == 8 else range(count)
    return "".join(
        f'<rect x="{_n(left + n * CELL[0] + CELL[0] * x / 8)}" y="{_n(top + CELL[1] * y / 8)}" '
        f'width="{_n(width)}" height="{_n(CELL[1] * high / 8)}" fill="{run.ink}"{opacity}/>'
        for n in boxes
    )


def _stroke(sides: str, left: float, top: float) -> str:
    """Lines from the cell's middle to its sides."""
    x, y = left + CELL[0] / 2, top + CELL[1] / 2
    ends = {"l": f"H{_n(left)}", "r": f"H{_n(left + CELL[0])}", "u": f"V{_n(top)}", "d": f"V{_n(top + CELL[1])}"}
    return "".join(f"M{_n(x)} {_n(y)}{ends[side]}" for side in sides)
