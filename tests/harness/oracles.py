"""Graphs and oracles by Hypothesis: what may be asked of a search, and what may fail."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

from idbg.reduce.nodes import Flow

Nodes = frozenset[str]
Oracle = Callable[[Nodes], bool]


@dataclass(frozen=True)
class Problem:
    """A graph that fails as a whole. `told` is how the oracle is described where a test fails."""

    flow: Flow
    fails: Oracle
    told: str

    @property
    def whole(self) -> Nodes:
        return frozenset(self.flow.reads)

    def without(self, kept: Nodes, name: str) -> Nodes:
        """The largest part without this node that is closed: found slowly, by asking each reader again and again."""
        left = kept - {name}
        while True:
            fewer = frozenset(node for node in left if set(self.flow.reads[node]) & self.flow.bound <= left)
            if fewer == left:
                return left
            left = fewer


@st.composite
def flows(draw: st.DrawFn, most: int = 16) -> Flow:
    """Each node reads up to three earlier ones, most often the one before it."""
    names = [f"n{place}" for place in range(draw(st.integers(1, most)))]
    reads: dict[str, tuple[str, ...]] = {}
    for place, name in enumerate(names):
        near = st.sampled_from(names[max(0, place - 2) : place]) if place else st.nothing()
        any_ = st.sampled_from(names[:place]) if place else st.nothing()
        reads[name] = tuple(draw(st.lists(near | any_, unique=True, max_size=3))) if place else ()
    return Flow(reads, draw(st.frozensets(st.sampled_from(names), max_size=3)))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    flow = draw(flows())
    told, fails = draw(oracles(flow))
    whole = frozenset(flow.reads)
    return Problem(flow, lambda kept: bool(kept) and (kept == whole or fails(kept)), f"{told} of {flow}")


def oracles(flow: Flow, deep: int = 1) -> st.SearchStrategy[tuple[str, Oracle]]:
    """What fails: by what must be there, or must not, by ways through the graph, and by no rule at all."""
    parts = st.frozensets(st.sampled_from(list(flow.reads)), min_size=1, max_size=5)
    ends = st.tuples(st.sampled_from(list(flow.reads)), st.sampled_from(list(flow.reads)), st.integers(0, 3))
    kinds = (
        parts.map(lambda part: (f"all of {set(part)}", part.__le__))
        | st.lists(parts, min_size=2, max_size=3).map(_one_of)
        | ends.map(lambda end: (f"a way {end}", lambda kept: longest_way(flow, kept, end[0], end[1]) > end[2]))
        | st.tuples(parts, parts, parts).map(_hidden)
        | st.integers(2, 4).map(lambda by: (f"modulo {by}", lambda kept: len(kept) % by == len(flow.reads) % by))
        | st.tuples(st.integers(0, 10**6), st.integers(5, 95)).map(_by_chance)
    )
    if not deep:
        return kinds
    two = st.tuples(oracles(flow, deep - 1), oracles(flow, deep - 1))
    return kinds | two.map(lambda of: (f"{of[0][0]} and {of[1][0]}", lambda kept: of[0][1](kept) and of[1][1](kept)))


def longest_way(flow: Flow, kept: Nodes, first: str, last: str) -> int:
    """Steps of the longest way from one to the other through what is kept; -1 where there is none."""
    far = {first: 0} if first in kept else {}
    for name, sources in flow.reads.items():
        steps = [far[source] + 1 for source in sources if source in far]
        if name in kept and steps:
            far[name] = max(steps)
    return far.get(last, -1)


def _one_of(parts: list[Nodes]) -> tuple[str, Oracle]:
    return f"one of {parts}", lambda kept: any(part <= kept for part in parts)


def _hidden(of: tuple[Nodes, Nodes, Nodes]) -> tuple[str, Oracle]:
    needed, hiding, showing = of
    return (
        f"all of {set(needed)}, hidden by any of {set(hiding)} without {set(showing)}",
        lambda kept: needed <= kept and (not hiding & kept or showing <= kept),
    )


def _by_chance(of: tuple[int, int]) -> tuple[str, Oracle]:
    seed, percent = of

    def fails(kept: Nodes) -> bool:
        digest = hashlib.sha256(f"{seed} {sorted(kept)}".encode()).digest()
        return int.from_bytes(digest[:4], "big") % 100 < percent

    return f"{percent} % of all, seed {seed}", fails
