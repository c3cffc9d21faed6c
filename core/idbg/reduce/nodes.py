"""Find nodes of a graph that are enough for its failure, of which no single one can be left out.

Bisection finds the last node that matters, then the first, and the nodes
between them are tried, or the two alone; further nodes are found one by one. The graph's structure only guides the
search: a sweep at the end asks whether each node is needed.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from idbg.reduce.ddmin import first_failing, thinned

Nodes = frozenset[str]

FEW = 4
"""Up to this many nodes are tried one by one."""


@dataclass(frozen=True)
class Flow:
    """Nodes in execution order, each with the nodes that it reads (without placeholders). A node in `bound` (a tuple, a
    function, a computed size) cannot become an input: it is kept with the nodes that read it.
    """

    reads: Mapping[str, tuple[str, ...]]
    bound: frozenset[str] = frozenset()

    def closed(self, kept: Iterable[str]) -> frozenset[str]:
        """These nodes, and the bound ones that they need."""
        found: set[str] = set()
        stack = list(kept)
        while stack:
            name = stack.pop()
            if name not in found:
                found.add(name)
                stack += [source for source in self.reads[name] if source in self.bound]
        return frozenset(found)

    def feeding(self, name: str) -> frozenset[str]:
        """The node, and all nodes that it is computed from."""
        found: set[str] = set()
        stack = [name]
        while stack:
            if (one := stack.pop()) not in found:
                found.add(one)
                stack += self.reads[one]
        return frozenset(found)


@dataclass(frozen=True)
class Reduced:
    """`kept` fails (it was tried, or is the whole); without any single node, and those that need it, it does not.
    `passing`: the nearest set that was tried and passed; None if none did.
    """

    kept: Nodes
    passing: Nodes | None


def reduce_nodes(
    flow: Flow,
    fails: Callable[[Nodes], bool],
    *,
    better: Callable[[Nodes], None] = lambda kept: None,
    doing: Callable[[str, int], None] = lambda words, calls: None,
    passes: Callable[[Nodes], bool] = lambda kept: True,
) -> Reduced:
    """Reduce the nodes. The whole is known to fail, and the empty set to pass: neither is tried, and no set twice.

    `fails` gets sets that are closed under `flow.bound`; its exceptions end the search, and `better` has got each
    smaller failing set before. `doing` gets, before each question, what the search does and how many more questions it
    expects. `passes`: whether a set that does not fail passes, and does not fail in another way.
    """
    search = _Search(flow, fails, better, doing)
    if len(search.kept) > FEW:
        search.narrow()
    search.sweep()
    held = [kept for kept, failed in search.answers.items() if not failed and kept < search.kept]
    nearest = (kept for kept in sorted(held, key=len, reverse=True) if passes(kept))
    return Reduced(search.kept, next(nearest, None))


class _Search:
    def __init__(
        self,
        flow: Flow,
        fails: Callable[[Nodes], bool],
        better: Callable[[Nodes], None],
        doing: Callable[[str, int], None],
    ) -> None:
        self.flow, self.fails, self.better, self.doing = flow, fails, better, doing
        self.place = {name: place for place, name in enumerate(flow.reads)}
        self.kept: Nodes = frozenset(flow.reads)
        self.answers: dict[Nodes, bool] = {}
        self.read_by: dict[str, list[str]] = {name: [] for name in flow.reads}
        for name, sources in flow.reads.items():
            for source in sources:
                self.read_by[source].append(name)
        self.words, self.expected = "", 0

    def ask(self, names: Iterable[str]) -> bool:
        """Whether these fail, with the bound nodes that they need; if so and they are fewer, keep them."""
        nodes = self.flow.closed(names)
        if not nodes or nodes == self.kept:
            return bool(nodes)
        if nodes not in self.answers:
            self.doing(self.words, max(1, self.expected))
            self.expected -= 1
            self.answers[nodes] = self.fails(nodes)
        if self.answers[nodes] and len(nodes) < len(self.kept):
            self.kept = nodes
            self.better(nodes)
        return self.answers[nodes]

    def begin(self, words: str, expected: float) -> None:
        self.words, self.expected = words, math.ceil(expected)

    def narrow(self) -> None:
        nodes = self.ordered(self.kept)
        halves = math.log2(len(nodes))
        self.begin("the shortest failing prefix", 2 * halves + 3 + FEW)
        _, length = first_failing(len(nodes), lambda length: self.ask(nodes[:length]))
        last = nodes[length - 1]
        self.begin("the last node and what feeds it", halves + 3 + FEW)
        if self.ask([last]):
            return
        self.ask(_reached([last], self.flow.reads, self.kept))
        nodes = self.ordered(self.kept)
        self.begin("the shortest failing suffix", math.log2(len(nodes)) + 1 + FEW)
        _, length = first_failing(len(nodes), lambda length: self.ask(nodes[-length:]))
        first = nodes[-length]
        self.begin("what lies between the first and the last node", 2 + FEW)
        between = self.between({first, last})
        if self.ask(between) and len(between) > FEW and not self.ask([first, last]):
            self.ask(self.way(first, last))
        self.begin("runs of nodes", 2 * math.log2(len(self.kept)) + FEW)
        thinned(self.ordered(self.kept), self.ask, {first, last}, self.between)

    def sweep(self) -> None:
        """Leave out single nodes, the last first, repeatedly, until none can be."""
        left = self.ordered(self.kept)
        while left:
            self.begin("each single node", len(left))
            name = left.pop()
            if name in self.kept and self.ask(self.without(name)):
                # the others are tried again, after those that were not tried yet
                left = [*(self.ordered(self.kept - set(left))), *left]

    def without(self, name: str) -> Nodes:
        """The kept nodes without this one and those that need it."""
        gone = {name}
        stack = [name]
        while stack:
            source = stack.pop()
            if source in self.flow.bound:
                readers = [reader for reader in self.read_by[source] if reader in self.kept and reader not in gone]
                gone.update(readers)
                stack += readers
        return self.kept - gone

    def between(self, names: set[str]) -> list[str]:
        """These, and the nodes on any path from one of them to another through the kept ones."""
        after = _reached(names, self.read_by, self.kept)
        return self.ordered(after & _reached(names, self.flow.reads, self.kept))

    def way(self, first: str, last: str) -> list[str]:
        """The nodes of a shortest path from one to the other through the kept ones."""
        came: dict[str, str] = {last: ""}
        queue = deque([last])
        while queue and first not in came:
            name = queue.popleft()
            for source in self.flow.reads[name]:
                if source in self.kept and source not in came:
                    came[source] = name
                    queue.append(source)
        found, name = [], first if first in came else ""
        while name:
            found.append(name)
            name = came[name]
        return found

    def ordered(self, names: Iterable[str]) -> list[str]:
        return sorted(names, key=self.place.__getitem__)


def _reached(names: Iterable[str], leads: Mapping[str, Sequence[str]], within: Nodes) -> Nodes:
    """These, and all nodes that are reached from them through `within`."""
    found: set[str] = set()
    stack = [name for name in names if name in within]
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack += [other for other in leads[name] if other in within]
    return frozenset(found)
