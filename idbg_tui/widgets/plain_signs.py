"""Signs, borders and scrollbars that the terminal can show."""

from contextlib import suppress
from typing import ClassVar

from textual.scrollbar import ScrollBar, ScrollBarRender

from idbg.format import glyphs
from idbg.format.glyphs import SignSet


class _WholeCells(ScrollBarRender):
    """Whole cells in two colours; Textual's ends in eighths of a cell, drawn with block characters."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "]
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "]


def use(name: SignSet) -> None:
    """Draw with these signs; call before the first paint. Round corners are drawn as the set has them."""
    glyphs.use(name)
    if name == "unicode":
        return
    border = "ascii" if name == "ascii" else "solid"
    with suppress(ImportError):  # a Textual without the private name draws borders as it does
        from textual._border import BORDER_CHARS

        for kind in ("round", "solid"):
            BORDER_CHARS[kind] = BORDER_CHARS[border]  # type: ignore[index]
    ScrollBar.renderer = _WholeCells
