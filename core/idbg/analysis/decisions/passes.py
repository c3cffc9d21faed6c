"""What did a pass do to the order of a graph's nodes, and which node came of which, through all passes?"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

from idbg.schema.decisions.passes import PassRun, PhaseRun
from idbg.schema.graphs import Part
from idbg.schema.runs import Run

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


def changes(run: Run, frame: str) -> Iterator[tuple[PhaseRun, PassRun]]:
    """Every pass that changed a graph of this frame, in order, with the phase that it was in."""
    for phase in run.decided.passes.get(frame, ()):
        for each in phase.passes:
            yield phase, each


def touched(run: Run, frame: str, name: str, part: Part = "") -> list[tuple[PhaseRun, PassRun, str]]:
    """What passes did to the node of this name, and to what it was before: "made", "removed", "moved", "changed".
    `part`: only of this part's post-grad passes, and of those before them.
    """
    names = {name}
    found: list[tuple[PhaseRun, PassRun, str]] = []
    for phase, each in reversed([*changes(run, frame)]):
        if phase.part not in ("", part) and part:
            continue
        of = dict(each.of)
        for verb, which in (
            ("made", each.came),
            ("removed", each.went),
            ("moved", each.moved),
            ("changed", each.changed),
        ):
            if not names.isdisjoint(which):
                found.append((phase, each, verb))
        names |= {old for new in names & of.keys() for old in of[new]}
    return found[::-1]


def came_from(run: Run, frame: str, name: str, part: Part = "") -> tuple[str, ...]:
    """The nodes that the first pass found, in the place of which this one stands now; itself where it was there."""
    names = [name]
    for phase, each in reversed([*changes(run, frame)]):
        if phase.part in ("", part) or not part:
            of = dict(each.of)
            names = [old for new in names for old in of.get(new, (new,))]
    return tuple(dict.fromkeys(names))
