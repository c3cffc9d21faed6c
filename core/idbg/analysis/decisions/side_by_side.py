"""Align two texts line by line."""

from difflib import SequenceMatcher
from itertools import zip_longest

import msgspec


class SideLine(msgspec.Struct, frozen=True):
    """One line of both texts: the 1-based numbers, 0 and "" where one has none. `same`: they are equal."""

    left: int
    left_text: str
    right: int
    right_text: str
    same: bool


def side_by_side(left: str, right: str) -> tuple[SideLine, ...]:
    """Every line of both, those that are equal beside each other."""
    ours, theirs = left.splitlines(), right.splitlines()
    rows: list[SideLine] = []
    for tag, begin, end, there, until in SequenceMatcher(None, ours, theirs).get_opcodes():
        for one, other in zip_longest(range(begin, end), range(there, until)):
            rows.append(
                SideLine(
                    0 if one is None else one + 1,
                    "" if one is None else ours[one],
                    0 if other is None else other + 1,
                    "" if other is None else theirs[other],
                    tag == "equal",
                )
            )
    return tuple(rows)


def around_changes(rows: tuple[SideLine, ...], lines: int = 3) -> tuple[SideLine | None, ...]:
    """The rows that differ with so many equal ones around; None stands for those that are left out."""
    near = {at + step for at, row in enumerate(rows) if not row.same for step in range(-lines, lines + 1)}
    kept: list[SideLine | None] = []
    for at, row in enumerate(rows):
        if at in near:
            kept.append(row)
        elif not kept or kept[-1] is not None:
            kept.append(None)
    return tuple(kept)
