"""Write to the terminal only the cells that changed, those of one style after the other.

Textual writes each widget's region whole, with all of a style before each piece of text: three quarters of its output.
Over SSH that is felt: a change of focus wrote 48 kB. A change of colour takes 20 bytes and more, a move of the cursor 4
to 8: so a frame is written style by style, and not row by row.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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

from idbg_tui.terminal.immediate_screen import ImmediateScreen

_SYSTEMS = {
    "standard": ColorSystem.STANDARD,
    "256": ColorSystem.EIGHT_BIT,
    "truecolor": ColorSystem.TRUECOLOR,
    "windows": ColorSystem.WINDOWS,
}
_ON_BLANKS = frozenset(("4", "7", "9"))  # underline, reverse, strike
_NEAR = 4  # unchanged cells between two changed ones: to write them is shorter than to move the cursor


_OFF = {"1": "22", "2": "22", "3": "23", "4": "24", "5": "25", "7": "27", "8": "28", "9": "29"}
"""The parameter that ends an attribute; 22 ends bold and dim."""


class _Look(NamedTuple):
    """A style as the terminal's parameters: background, attributes, foreground."""

    background: tuple[str, ...]
    attributes: tuple[str, ...]
    foreground: tuple[str, ...]

    def after(self, before: "_Look") -> str:
        """What changes `before` to this; "" for nothing."""
        if before == self:
            return ""
        whole = _codes("0", *self.attributes, *self.foreground, *self.background)
        foreground = () if self.foreground == before.foreground else self.foreground or ("39",)
        background = () if self.background == before.background else self.background or ("49",)
        ended = {_OFF[code] for code in before.attributes if code not in self.attributes}
        begun = [code for code in self.attributes if code not in before.attributes or _OFF[code] in ended]
        return min(whole, _codes(*sorted(ended), *begun, *foreground, *background), key=len)

    def serves(self, character: str, look: "_Look") -> bool:
        """Whether `character`, which has the other look, can be written with this: of a blank only what is behind it is
        seen.
        """
        if self == look:
            return True
        drawn = _ON_BLANKS.intersection((*self.attributes, *look.attributes))
        return character == " " and self.background == look.background and not drawn


def _codes(*parameters: str) -> str:
    return f"\x1b[{';'.join(parameters)}m"


_PLAIN = _Look((), (), ())
Cell = tuple[str, _Look]
"""A character, with what is drawn over it, and its look; the second cell of a wide one has none."""


@dataclass
class _Run:
    """Cells beside one another that are written at once, in one look."""

    y: int
    x: int
    look: _Look
    text: str = ""
    width: int = 0

    @property
    def end(self) -> int:
        return self.x + self.width

    def take(self, cells: Sequence[Cell]) -> bool:
        """Add cells at the end; False if they need another look."""
        look, text = self.look, self.text
        for character, other in cells:
            if not look.serves(character, other):
                if text.strip(" ") or not other.serves(" ", look):
                    return False
                look = other  # there are only blanks before it
            text += character
        self.look, self.text = look, text
        self.width += len(cells)
        return True


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

    def written(self, pieces: Iterable[tuple[int, int, Strip]], system: ColorSystem | None) -> str:
        """What makes the terminal show these strips, each from its column `x` in its row `y`."""
        runs = [run for y, x, strip in pieces for run in self._changed(y, x, _cells(strip, system))]
        return _in_fewest_bytes(runs) if runs else ""

    def _changed(self, y: int, x: int, cells: list[Cell]) -> list[_Run]:
        """What of a row is to be written."""
        row = self._rows.setdefault(y, [])
        row += [None] * (x + len(cells) - len(row))
        before = row[x : x + len(cells)]
        if before == cells:
            return []
        row[x : x + len(cells)] = cells
        whole = any(cell is not None and not cell[0] for cell in (*before, *cells))  # a wide character is never cut
        runs: list[_Run] = []
        for at, (old, new) in enumerate(zip(before, cells, strict=True)):
            if old == new and not whole:
                continue
            if runs:
                start = runs[-1].end - x
                if at - start <= _NEAR and runs[-1].take(cells[start : at + 1]):
                    continue
            runs.append(_Run(y, x + at, new[1]))
            runs[-1].take([new])
        return runs


def _in_fewest_bytes(runs: Iterable[_Run]) -> str:
    """The runs of each look, one look after the other; blanks with any look that has their background."""
    groups: dict[_Look, list[_Run]] = {}
    blanks: list[_Run] = []
    for run in runs:
        blank = not run.text.strip(" ") and not _ON_BLANKS.intersection(run.look.attributes)
        (blanks if blank else groups.setdefault(run.look, [])).append(run)
    for run in blanks:
        look = next((look for look in groups if look.serves(" ", run.look)), run.look)
        groups.setdefault(look, []).append(run)
    parts: list[str] = []
    before, at = _PLAIN, (-1, -1)
    for look in sorted(groups):
        parts.append(look.after(before))
        before = look
        for run in sorted(groups[look], key=lambda run: (run.y, run.x)):
            parts += [_move(at, (run.y, run.x)), run.text]
            at = run.y, run.end
    return "".join([*parts, "\x1b[0m"])


def _move(at: tuple[int, int], to: tuple[int, int]) -> str:
    """Moves the cursor from one row and column to another. To a column, and not by so many: a terminal may draw a
    character wider or narrower than we know.
    """
    if at == to:
        return ""
    if at[0] == to[0]:
        return f"\x1b[{to[1] + 1}G"
    return f"\x1b[{to[0] + 1};{to[1] + 1}H"


def _cells(strip: Strip, system: ColorSystem | None) -> list[Cell]:
    cells: list[Cell] = []
    for text, style, _ in strip:
        look = _look(style, system) if style else _PLAIN
        blank = look if _ON_BLANKS.intersection(look.attributes) else _PLAIN._replace(background=look.background)
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
    foreground, background = (
        () if color is None else color.downgrade(system).get_ansi_codes(foreground=is_foreground)
        for color, is_foreground in ((style.color, True), (style.bgcolor, False))
    )
    return _Look(background, attributes, foreground)


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


def _within(pieces: Iterable[tuple[int, int, Strip]], size: Size) -> Iterator[tuple[int, int, Strip]]:
    """What of the pieces is in the terminal. It may have shrunk since they were laid out: what is beyond its border
    would be drawn on it.
    """
    for y, x, strip in pieces:
        if y < size.height and x < size.width:
            yield y, x, strip.crop(0, size.width - x) if x + strip.cell_length > size.width else strip


class ChangedOutputApp(App[ReturnType]):
    """An app that writes the cells that changed."""

    _painted: PaintedCells
    _painted_size: Size | None = None  # of the terminal as it was painted; None: it may show something else

    def get_default_screen(self) -> Screen[object]:
        """The screen below all others."""
        return ImmediateScreen()

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
        try:
            text = self._changes(renderable)
        except AttributeError:  # a Textual without these names: it writes all of the update
            text = self._painted_size = None
        if text is None:
            super()._display(screen, renderable)
        elif text:
            super()._display(screen, _Written(text))  # type: ignore[arg-type]  # it takes every update

    def _changes(self, update: RenderableType | None) -> str | None:
        """What of an update the terminal does not show; None where all is to be written."""
        writes = self._running and not self.is_headless and not self._batch_count
        if not writes or not isinstance(update, LayoutUpdate | ChopsUpdate):
            return None
        if self._painted_size != self.size:
            self._painted, self._painted_size = PaintedCells(), self.size
        return self._painted.written(_within(_pieces(update), self.size), _SYSTEMS.get(self.console.color_system or ""))
