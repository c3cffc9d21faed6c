"""Find the first node in which the same graph of two ranks differs."""

import re
from itertools import zip_longest
from typing import NamedTuple, cast

from msgspec.structs import replace

from idbg.analysis.ranks.normal import node_texts, shape_of, without_numbers
from idbg.schema.graphs import Graph, GraphId, Node, Part, Stage
from idbg.schema.ranks import RankDifference, RankSide
from idbg.schema.runs import Run

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_Pair = tuple[Node | None, Node | None]


class RankRun(NamedTuple):
    """A rank's run, and the id that a compile has in it."""

    rank: int
    run: Run
    frame: str


def with_nodes(difference: RankDifference, one: RankRun, other: RankRun) -> RankDifference:
    """A difference of graphs with the first nodes that differ on its first two sides, and their lines."""
    stage, _, part = difference.what.partition(" ")
    keys = [GraphId(each.frame, cast("Stage", stage), cast("Part", part)) for each in (one, other)]
    graphs = [each.run.graphs.get(key) for each, key in zip((one, other), keys, strict=True)]
    first, second = graphs
    if first is None or second is None or (pair := first_unlike(first, second)) is None:
        return difference
    sides = [_side(*each) for each in zip(difference.sides, pair, (first, second), strict=False)]
    follows = difference.kind == "constants" and follow_rank(first, second, one.rank, other.rank)
    return replace(difference, sides=(*sides, *difference.sides[2:]), follows_rank=follows)


def first_unlike(one: Graph, other: Graph) -> _Pair | None:
    """The first nodes in which the graphs differ, not counting constants; else in a constant; None where nowhere."""
    constant: _Pair | None = None
    texts = zip_longest(node_texts(one), node_texts(other))
    for pair, (left, right) in zip(zip_longest(one.nodes, other.nodes), texts, strict=True):
        if left == right:
            continue
        if left is None or right is None or _form(left) != _form(right):
            return pair
        constant = constant or pair
    return constant


def follow_rank(one: Graph, other: Graph, rank: int, other_rank: int) -> bool:
    """Whether each number that differs is the rank's own in both graphs."""
    for left, right in zip(node_texts(one), node_texts(other), strict=False):
        here, there = _NUMBER.findall(left[0]), _NUMBER.findall(right[0])
        unlike = {pair for pair in zip(here, there, strict=False) if pair[0] != pair[1]}
        if len(here) != len(there) or unlike - {(str(rank), str(other_rank))}:
            return False
    return True


def _form(texts: tuple[str, str]) -> tuple[str, str]:
    return without_numbers(texts[0]), texts[1]


def _side(side: RankSide, node: Node | None, graph: Graph) -> RankSide:
    if node is None:
        return replace(side, value="no more nodes")
    users = (graph.by_name[name] for name in graph.users.get(node.name, ()))
    placed = node if node.file else next((user for user in users if user.file), None)
    what = f"{node.role} {node.name}" if node.op == "placeholder" else f"{node.target}({node.args})"
    shape = shape_of(node)
    value = f"{what}: {shape}" if shape else what
    return replace(side, value=value, file=placed.file, line=placed.line) if placed else replace(side, value=value)
