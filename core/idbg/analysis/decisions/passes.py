"""Align the nodes of a graph before and after a pass."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

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
