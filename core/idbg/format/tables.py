"""How do rows of texts stand in columns that fit a width?"""

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from idbg.format.glyphs import MARKS

GAP = 2  # cells between two columns


class Column(NamedTuple):
    """`right`: numbers, which end below one another. `least`: cells that it keeps when it is cut; 0: it is never cut.
    `rank`: with a width that is too small those of the highest rank are left out first; 0 never are.
    """

    head: str
    right: bool = False
    least: int = 0
    rank: int = 0


def cells(text: str) -> int:
    """How many cells of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def fitted(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """A line of heads and one for each row, within `width` cells where that can be; None: as wide as they are.

    Where it is too narrow, columns are left out by rank, then the widest of those that may be cut is.
    """
    widths = [max([cells(column.head), *(cells(row[at]) for row in rows)]) for at, column in enumerate(columns)]
    shown = list(range(len(columns)))
    if width is not None:
        spare = sorted((at for at in shown if columns[at].rank), key=lambda at: columns[at].rank)
        while spare and _total(shown, widths) > width:
            shown.remove(spare.pop())
        _narrow(columns, shown, widths, width)
    heads = [column.head for column in columns]
    return [_line(columns, shown, widths, row) for row in (heads, *rows)]


def _total(shown: Sequence[int], widths: Sequence[int]) -> int:
    return sum(widths[at] for at in shown) + GAP * (len(shown) - 1)


def _narrow(columns: Sequence[Column], shown: Sequence[int], widths: list[int], width: int) -> None:
    while _total(shown, widths) > width:
        able = [at for at in shown if columns[at].least and widths[at] > columns[at].least]
        if not able:
            return
        widths[max(able, key=lambda at: widths[at])] -= 1


def _line(columns: Sequence[Column], shown: Sequence[int], widths: Sequence[int], row: Sequence[str]) -> str:
    parts = []
    for at in shown:
        text = cut(row[at], widths[at])
        space = " " * (widths[at] - cells(text))
        parts.append(space + text if columns[at].right else text + space)
    return (" " * GAP).join(parts).rstrip()


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


def beginning(text: str, width: int) -> str:
    """As much of the text as `width` cells hold."""
    taken, used = 0, 0
    for letter in text:
        used += cells(letter)
        if used > width:
            break
        taken += 1
    return text[:taken]
