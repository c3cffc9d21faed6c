"""Scrollbars for terminals without block characters."""

from typing import ClassVar

from textual.scrollbar import ScrollBar, ScrollBarRender


class AsciiScrollBar(ScrollBarRender):
    """Whole cells in two colours; Textual's ends in eighths of a cell, drawn with block characters."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "]
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "]


def use_ascii_scrollbar() -> None:
    """Draw every scrollbar in this way."""
    ScrollBar.renderer = AsciiScrollBar
