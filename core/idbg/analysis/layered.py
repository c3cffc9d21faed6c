"""Place the boxes of a drawn graph in layers, so that few lines cross.

Sugiyama's four steps. Boxes get ranks, by the longest way to them; lines over several ranks get a bend in each; the
boxes of a rank are put in the order of the middle of their neighbours, down and up, a few times; then each box moves
as near to the middle of its neighbours as its rank leaves room for, a least-squares fit with gaps (pool adjacent
violators). 40 boxes with 80 lines take 2 ms.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

ROW, HEIGHT, GAP, BEND = 66.0, 34.0, 18.0, 8.0  # from rank to rank, of a box, between boxes; the width of a bend
_ORDERINGS, _MOVES = 4, 4  # sweeps; more change little in graphs of 50 boxes


@dataclass(frozen=True)
class Placing:
    """The left upper corner of each box, the points of each line from the bottom of its first box to the top of its
    last, and how large the drawing is.
    """

    boxes: tuple[tuple[float, float], ...]
    lines: tuple[tuple[tuple[float, float], ...], ...]
    width: float
    height: float


@dataclass
class _Layers:
    """Boxes and bends (numbered after the boxes) by rank, in order, with the ways between neighbouring ranks."""

    ranks: list[list[int]]
    widths: list[float]
    above: list[list[int]]
    below: list[list[int]]
    chains: list[list[int]]  # for each line its box, its bends, its box


def placed(widths: Sequence[float], lines: Sequence[tuple[int, int]]) -> Placing:
    """The place of each box, given how wide it is and the lines (from, to) between them. A line from a box to one that
    is not after it is drawn as if it went the other way: graphs have none.
    """
    if not widths:
        return Placing((), (), 0.0, 0.0)
    layers = _layers(widths, [(min(line), max(line)) for line in lines])
    for _ in range(_ORDERINGS):
        _order(layers.ranks, layers.above)
        _order(layers.ranks[::-1], layers.below)
    centres = _centres(layers)
    left = min(centre - width / 2 for centre, width in zip(centres, layers.widths, strict=True))
    rank_of = {each: rank for rank, members in enumerate(layers.ranks) for each in members}
    boxes = tuple((centres[box] - widths[box] / 2 - left, rank_of[box] * ROW) for box in range(len(widths)))
    drawn = tuple(tuple(_points(chain, centres, rank_of, left)) for chain in layers.chains)
    right = max(centre + width / 2 for centre, width in zip(centres, layers.widths, strict=True))
    return Placing(boxes, drawn, right - left, (len(layers.ranks) - 1) * ROW + HEIGHT)


def _points(chain: list[int], centres: list[float], rank_of: dict[int, int], left: float) -> list[tuple[float, float]]:
    points = [(centres[chain[0]] - left, rank_of[chain[0]] * ROW + HEIGHT)]
    for bend in chain[1:-1]:  # straight past the boxes of its rank
        points += [(centres[bend] - left, rank_of[bend] * ROW), (centres[bend] - left, rank_of[bend] * ROW + HEIGHT)]
    return [*points, (centres[chain[-1]] - left, rank_of[chain[-1]] * ROW)]


def _layers(widths: Sequence[float], lines: Sequence[tuple[int, int]]) -> _Layers:
    ranks = _ranks(len(widths), lines)
    layers = _Layers([[] for _ in range(max(ranks) + 1)], list(widths), [[] for _ in widths], [[] for _ in widths], [])
    for box, rank in enumerate(ranks):
        layers.ranks[rank].append(box)
    for start, end in lines:
        chain = [start]
        for rank in range(ranks[start] + 1, ranks[end]):
            chain.append(len(layers.widths))
            layers.ranks[rank].append(chain[-1])
            layers.widths.append(BEND)
            layers.above.append([])
            layers.below.append([])
        chain.append(end)
        layers.chains.append(chain)
        for upper, lower in itertools.pairwise(chain):
            layers.below[upper].append(lower)
            layers.above[lower].append(upper)
    return layers


def _ranks(count: int, lines: Sequence[tuple[int, int]]) -> list[int]:
    """By the longest way from above; what nothing leads to stands right above the first that reads it."""
    ranks = [0] * count
    first_reader: dict[int, int] = {}
    read = set()
    for start, end in sorted(lines, key=lambda line: line[1]):
        if start != end:
            ranks[end] = max(ranks[end], ranks[start] + 1)
            read.add(end)
    for start, end in lines:
        if start not in read and start != end:
            first_reader[start] = min(first_reader.get(start, ranks[end]), ranks[end])
    for box, reader in first_reader.items():
        ranks[box] = reader - 1
    return ranks


def _order(ranks: Sequence[list[int]], neighbours: list[list[int]]) -> None:
    """Sort each rank by the middle of its neighbours in the rank before; what has none stays where it is."""
    for before, here in itertools.pairwise(ranks):
        place = {each: at for at, each in enumerate(before)}
        middle = {}
        for at, each in enumerate(here):
            near = [place[other] for other in neighbours[each] if other in place]
            middle[each] = sum(near) / len(near) if near else at
        here.sort(key=middle.__getitem__)


def _centres(layers: _Layers) -> list[float]:
    centres = [0.0] * len(layers.widths)
    for members in layers.ranks:
        at = 0.0
        for each in members:
            centres[each] = at + layers.widths[each] / 2
            at += layers.widths[each] + GAP
        for each in members:
            centres[each] -= at / 2
    for turn in range(_MOVES):
        neighbours = layers.above if turn % 2 == 0 else layers.below
        for members in layers.ranks if turn % 2 == 0 else layers.ranks[::-1]:
            _move(members, neighbours, centres, layers.widths)
    return centres


def _move(members: list[int], neighbours: list[list[int]], centres: list[float], widths: list[float]) -> None:
    """Put each member of a rank as near as there is room to the middle of its neighbours."""
    offset, offsets = 0.0, []
    for at, each in enumerate(members):
        offset += (widths[members[at - 1]] + widths[each]) / 2 + GAP if at else 0.0
        offsets.append(offset)
    pools: list[tuple[float, int]] = []  # (mean, how many)
    for each, shift in zip(members, offsets, strict=True):
        near = neighbours[each]
        wished = sum(centres[other] for other in near) / len(near) if near else centres[each]
        mean, many = wished - shift, 1
        while pools and pools[-1][0] > mean:
            other, count = pools.pop()
            mean, many = (mean * many + other * count) / (many + count), many + count
        pools.append((mean, many))
    places = (mean for mean, many in pools for _ in range(many))
    for each, shift, place in zip(members, offsets, places, strict=True):
        centres[each] = place + shift
