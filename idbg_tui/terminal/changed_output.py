"""Write to the terminal only the cells that changed, and of their styles only what differs from the cell before.

Textual writes each widget's region whole, with all of a style before each piece of text: three quarters of its output.
Over SSH that is felt: a change of focus wrote 48 kB.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple, Self

from rich.cells import get_character_cell_size
from rich.color import ColorSystem
from rich.console import Console, RenderableType
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.app import App, ReturnType
from textual.geometry import Size
from textual.screen import Screen
from textual.strip import Strip

_SYSTEMS = {
    "standard": ColorSystem.STANDARD,
    "256": ColorSystem.EIGHT_BIT,
    "truecolor": ColorSystem.TRUECOLOR,
    "windows": ColorSystem.WINDOWS,
}
_ON_BLANKS = frozenset(("4", "7", "9"))  # underline, reverse, strike
_NEAR = 4  # unchanged cells between two changed ones: to write them is shorter than to move the cursor


class _Look(NamedTuple):
    """A style as the terminal's parameters: attributes, foreground, background."""

    attributes: tuple[str, ...]
    foreground: tuple[str, ...]
    background: tuple[str, ...]

    def after(self, before: "_Look") -> str:
        """What changes `before` to this; "" for nothing."""
        if before == self:
            return ""
        if before.attributes != self.attributes:
            return _codes("0", *self.attributes, *self.foreground, *self.background)
        foreground = () if self.foreground == before.foreground else self.foreground or ("39",)
        background = () if self.background == before.background else self.background or ("49",)
        return _codes(*foreground, *background)

    def of_blank(self, before: "_Look") -> "_Look":
        """What is as good for a blank, of which only the background is seen, and nearest to `before`."""
        drawn = _ON_BLANKS.intersection((*self.attributes, *before.attributes))
        return self if drawn else before._replace(background=self.background)


def _codes(*parameters: str) -> str:
    return f"\x1b[{';'.join(parameters)}m"


_PLAIN = _Look((), (), ())
Cell = tuple[str, _Look]
"""A character, with what is drawn over it, and its look; the second cell of a wide one has none."""


class _Written(CompositorUpdate):
    """An update that is ready to be written."""

    def __init__(self, text: str) -> None:
        self._text = text

    def render_segments(self, console: Console) -> str:
        return self._text


class PaintedCells:
    """What the terminal shows, as far as it is known, by rows."""

    def __init__(self) -> None:
        self._rows: dict[int, list[Cell | None]] = {}
        self._look = _PLAIN

    def written(self, pieces: Iterable[tuple[int, int, Strip]], system: ColorSystem | None) -> str:
        """What makes the terminal show these strips, each from its column `x` in its row `y`."""
        self._look = _PLAIN
        parts = [part for y, x, strip in pieces for part in self._row(y, x, _cells(strip, system))]
        return "".join([*parts, "\x1b[0m"]) if parts else ""

    def _row(self, y: int, x: int, cells: list[Cell]) -> Iterator[str]:
        row = self._rows.setdefault(y, [])
        row += [None] * (x + len(cells) - len(row))
        before = row[x : x + len(cells)]
        if before == cells:
            return
        row[x : x + len(cells)] = cells
        for first, last in _runs(before, cells):
            yield f"\x1b[{y + 1};{x + first + 1}H"
            for character, look in cells[first:last]:
                wanted = look.of_blank(self._look) if character == " " else look
                yield wanted.after(self._look)
                self._look = wanted
                yield character


def _runs(before: Sequence[Cell | None], after: Sequence[Cell]) -> list[tuple[int, int]]:
    """Where they differ, from and to (exclusive); near ones are one, and a wide character is never cut."""
    changed = [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    if any(cell is not None and not cell[0] for cell in (*before, *after)):
        return [(0, len(after))]
    runs: list[tuple[int, int]] = []
    for at in changed:
        if runs and at - runs[-1][1] <= _NEAR:
            runs[-1] = runs[-1][0], at + 1
        else:
            runs.append((at, at + 1))
    return runs


def _cells(strip: Strip, system: ColorSystem | None) -> list[Cell]:
    cells: list[Cell] = []
    for text, style, _ in strip:
        look = _look(style, system) if style else _PLAIN
        blank = look if _ON_BLANKS.intersection(look.attributes) else _Look((), (), look.background)
        if text.isascii():
            cells += [(character, blank if character == " " else look) for character in text]
            continue
        for character in text:
            width = get_character_cell_size(character)
            if width == 0 and cells:
                cells[-1] = cells[-1][0] + character, cells[-1][1]
                continue
            cells.append((character, look))
            cells += [("", look)] * (width - 1)
    return cells


@lru_cache(maxsize=4096)
def _look(style: Style, system: ColorSystem | None) -> _Look:
    if system is None:
        return _PLAIN
    attributes = tuple(code for name, code in _ATTRIBUTES.items() if getattr(style, name))
    colors = [
        () if color is None else color.downgrade(system).get_ansi_codes(foreground=foreground)
        for color, foreground in ((style.color, True), (style.bgcolor, False))
    ]
    return _Look(attributes, *colors)


_ATTRIBUTES = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "underline": "4",
    "blink": "5",
    "reverse": "7",
    "conceal": "8",
    "strike": "9",
}


def _pieces(update: LayoutUpdate | ChopsUpdate) -> Iterator[tuple[int, int, Strip]]:
    """Row, column and strip of what an update paints."""
    if isinstance(update, LayoutUpdate):
        for y, strips in enumerate(update.strips, update.region.y):
            x = update.region.x
            for strip in strips:
                yield y, x, strip
                x += strip.cell_length
        return
    for y, first, last in update.spans:
        for end, (x, piece) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if piece is not None and x <= last and end > first:
                yield y, x, piece if end <= last else piece.crop(0, min(end, last) - x)


class ChangedOutputApp(App[ReturnType]):
    """An app that writes the cells that changed."""

    _painted: PaintedCells
    _painted_size: Size | None = None  # of the terminal as it was painted; None: it may show something else

    def refresh(self, *, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """Write the whole screen anew, whatever the terminal shows."""
        self._painted_size = None
        return super().refresh(repaint=repaint, layout=layout, recompose=recompose)

    def on_resize(self) -> None:
        """A terminal that was smaller for a moment has lost what was outside, also where it is as large as before."""
        self.refresh()

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Leave the terminal to another program."""
        with super().suspend():
            yield
        self.refresh()

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        writes = self._running and not self.is_headless and not self._batch_count
        if not writes or not isinstance(renderable, LayoutUpdate | ChopsUpdate):
            super()._display(screen, renderable)
            return
        if self._painted_size != self.size:
            self._painted, self._painted_size = PaintedCells(), self.size
        if text := self._painted.written(_pieces(renderable), _SYSTEMS.get(self.console.color_system or "")):
            super()._display(screen, _Written(text))  # type: ignore[arg-type]  # it takes every update
