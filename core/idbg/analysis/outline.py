"""Arrange a graph's nodes under headings by the user's modules.

Nodes keep the graph's order; a heading stands where the user's module changes, so each covers a range of nodes. A row
is one integer: a node's index, or, negative, `~heading`. Building costs about 0.1 s for 100,000 nodes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from idbg.schema.graphs import Graph, Node

INPUTS = "inputs"
DEEPEST = 60
"""Names of a module's path that stand on lines of their own; what is deeper, in no model, stands in the last one."""
SMALL = 3
"""A module without children that has fewer nodes than this in a row gets no heading of its own."""


@dataclass(slots=True)
class ModuleHeading:
    """A run of nodes that one module made: `first` to `last` (exclusive). `key` names it over recompilations."""

    key: str
    title: str
    kind: str
    depth: int
    first: int
    last: int
    parent: int
    twin: str = ""  # the title of the sibling before it that does the same
    children: list[int] = field(default_factory=list)

    @property
    def span(self) -> tuple[int, int]:
        """The indices of its first node and of the one after its last."""
        return self.first, self.last


@dataclass
class Outline:
    """The headings in the order of their first nodes, outer before inner, and which of them are folded."""

    headings: list[ModuleHeading]
    owner: list[int]
    folded: set[str]

    def rows(self) -> list[int]:
        """Every row that no fold hides, in the order of the screen: a node's index, or `~heading`."""
        rows: list[int] = []
        self._emit(rows, 0, len(self.owner), [i for i, h in enumerate(self.headings) if h.parent < 0])
        return rows

    def _emit(self, rows: list[int], first: int, last: int, children: Sequence[int]) -> None:
        for child in children:
            heading = self.headings[child]
            rows.extend(range(first, heading.first))
            rows.append(~child)
            if heading.key not in self.folded:
                self._emit(rows, heading.first, heading.last, heading.children)
            first = heading.last
        rows.extend(range(first, last))

    def reveal(self, index: int) -> bool:
        """Unfold whatever hides node `index`; True if something was folded."""
        hidden = [h for h in self.above(index) if self.headings[h].key in self.folded]
        self.folded.difference_update(self.headings[h].key for h in hidden)
        return bool(hidden)

    def above(self, index: int) -> Iterator[int]:
        """The headings that node `index` stands under, innermost first."""
        heading = self.owner[index]
        while heading >= 0:
            yield heading
            heading = self.headings[heading].parent

    def depth(self, row: int) -> int:
        """How many headings a row (a node's index, or `~heading`) stands under."""
        if row < 0:
            return self.headings[~row].depth
        owner = self.owner[row]
        return 0 if owner < 0 else self.headings[owner].depth + 1


def outline(graph: Graph, folded: set[str] | None = None) -> Outline:
    """The outline of a graph; with no `folded`, inputs, and modules that repeat the one before, are folded."""
    paths = _paths(graph.nodes)
    builder = _Builder(graph.nodes, paths)
    _mark_twins(builder.headings, graph.nodes)
    built = Outline(builder.headings, builder.owner, set())
    built.folded = _folded_at_first(built) if folded is None else folded
    return built


def _paths(nodes: Sequence[Node]) -> list[tuple[str, ...]]:
    """For each node the module path that it stands under."""
    split: dict[str, tuple[str, ...]] = {"": ()}
    inner: set[tuple[str, ...]] = set()
    for node in nodes:
        if node.module not in split:
            path = split[node.module] = tuple(node.module.split(".", DEEPEST))
            inner.update(path[:length] for length in range(1, len(path)))
    inputs = (INPUTS,)
    paths = [inputs if node.op == "placeholder" else split[node.module] for node in nodes]
    # leaves with a node or two stand in their parent: a heading for each would double the rows
    for first, last in _stretches(paths):
        path = paths[first]
        if path and path not in inner and last - first < SMALL:
            paths[first:last] = [path[:-1]] * (last - first)
    return paths


def _stretches(paths: Sequence[tuple[str, ...]]) -> list[tuple[int, int]]:
    stretches: list[tuple[int, int]] = []
    first = 0
    for index in range(1, len(paths) + 1):
        if index == len(paths) or paths[index] is not paths[first]:
            stretches.append((first, index))
            first = index
    return stretches


class _Builder:
    """Opens and closes headings along the nodes."""

    def __init__(self, nodes: Sequence[Node], paths: Sequence[tuple[str, ...]]) -> None:
        self.headings: list[ModuleHeading] = []
        self.owner: list[int] = []
        self._open: list[int] = []
        self._path: tuple[str, ...] = ()
        self._seen: dict[tuple[str, ...], int] = {}
        for first, last in _stretches(paths):
            self._move(nodes, paths[first], first)
            self.owner.extend([self._open[-1] if self._open else -1] * (last - first))
        self._close(0, len(nodes))

    def _move(self, nodes: Sequence[Node], path: tuple[str, ...], index: int) -> None:
        shared = 0
        for ours, theirs in zip(self._path, path, strict=False):
            if ours != theirs:
                break
            shared += 1
        self._close(shared, index)
        for depth in range(shared, len(path)):
            self._begin(nodes[index], path[: depth + 1], index, leaf=depth == len(path) - 1)
        self._path = path

    def _begin(self, node: Node, path: tuple[str, ...], index: int, *, leaf: bool) -> None:
        again = self._seen[path] = self._seen.get(path, 0) + 1
        key = ".".join(path) + (f"#{again}" if again > 1 else "")
        kind = node.module_class if leaf and node.module == ".".join(path) else ""
        parent = self._open[-1] if self._open else -1
        if parent >= 0:
            self.headings[parent].children.append(len(self.headings))
        self._open.append(len(self.headings))
        self.headings.append(ModuleHeading(key, path[-1], kind, len(path) - 1, index, index, parent))

    def _close(self, depth: int, index: int) -> None:
        while len(self._open) > depth:
            self.headings[self._open.pop()].last = index


def _folded_at_first(built: Outline) -> set[str]:
    return {heading.key for heading in built.headings if heading.key == INPUTS or heading.twin}


def _mark_twins(headings: Sequence[ModuleHeading], nodes: Sequence[Node]) -> None:
    """Find modules that repeat a sibling before them, operation by operation, as the layers of a transformer do."""
    for parent in (None, *headings):
        children = [h for h in headings if h.parent < 0] if parent is None else [headings[i] for i in parent.children]
        for before, heading in pairwise(children):
            if _same(nodes[before.first : before.last], nodes[heading.first : heading.last]):
                heading.twin = before.twin or before.title


def _same(ours: Sequence[Node], theirs: Sequence[Node]) -> bool:
    return len(ours) == len(theirs) and all(
        a.target == b.target and a.tensors == b.tensors for a, b in zip(ours, theirs, strict=True)
    )
