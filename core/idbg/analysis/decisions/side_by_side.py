"""Align two texts line by line, and the nodes of a graph before and after a pass."""

from bisect import bisect_left
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise, zip_longest

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


Pair = tuple[str, str]
"""A node's name before and after; "" where it is not on that side, or stands elsewhere."""


def aligned(before: Sequence[str], after: Sequence[str]) -> list[Pair]:
    """Both orders side by side, as few nodes as possible apart: what stands elsewhere has a row of its own on each
    side. Names are unique on a side. Takes n log n.
    """
    place = {name: at for at, name in enumerate(before)}
    kept = set(_longest_rising([place[name] for name in after if name in place]))
    rows: list[Pair] = []
    at = 0
    for name in after:
        if place.get(name, -1) not in kept:
            rows.append(("", name))
            continue
        here = place[name]
        rows += [(gone, "") for gone in before[at:here]]
        rows.append((name, name))
        at = here + 1
    return [*rows, *((gone, "") for gone in before[at:])]


def _longest_rising(numbers: Sequence[int]) -> list[int]:
    """The longest subsequence that rises."""
    if all(one < other for one, other in pairwise(numbers)):
        return list(numbers)
    tails: list[int] = []
    ends: list[int] = []  # indices of the tails
    previous = [-1] * len(numbers)
    for at, number in enumerate(numbers):
        length = bisect_left(tails, number)
        previous[at] = ends[length - 1] if length else -1
        tails[length : length + 1] = [number]
        ends[length : length + 1] = [at]
    found: list[int] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        found.append(numbers[at])
        at = previous[at]
    return found[::-1]
