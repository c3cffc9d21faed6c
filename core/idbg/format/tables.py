"""Measure texts in cells of a terminal, and cut them."""

import unicodedata

from idbg.format.glyphs import MARKS


def cells(text: str) -> int:
    """How many cells of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def cut(text: str, width: int) -> str:
    """The text in at most `width` cells: its beginning and its end, which tell more than its middle."""
    if cells(text) <= width:
        return text
    mark = MARKS["ellipsis"]
    room = width - len(mark)
    if room < 2:
        return mark[:width]
    back = room // 2
    return beginning(text, room - back) + mark + beginning(text[::-1], back)[::-1]


def clip(text: str, width: int) -> str:
    """A sentence in at most `width` cells: its beginning, which matters most."""
    if cells(text) <= width:
        return text
    mark = MARKS["ellipsis"]
    return beginning(text, width - len(mark)) + mark[: max(width, 0)]


def beginning(text: str, width: int) -> str:
    """As much of the text as `width` cells hold."""
    taken, used = 0, 0
    for letter in text:
        used += cells(letter)
        if used > width:
            break
        taken += 1
    return text[:taken]
