"""Arrange a graph's nodes under headings by the user's modules.

Nodes keep the graph's order; a heading stands where the user's module changes, so each covers a range of nodes. A row
is one integer: a node's index, or, negative, `~heading`. Building costs about 0.1 s for 100,000 nodes.

A module that has nothing but one module is one heading with it ("encoder.layer"). Of three or more modules in a row
that are alike, as the layers of a transformer are, the first has a heading, and the others have one together
("1..11").
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

from idbg.schema.graphs import Graph, Node

INPUTS = "inputs"
DEEPEST = 60
"""Names of a module's path that stand on lines of their own; what is deeper, in no model, stands in the last one."""
SMALL = 3
"""A module without children that has fewer nodes than this in a row gets no heading of its own."""
UNLIKE = 4
"""One node in so many may make other tensors than the same node of a module that this one is like."""


@dataclass(slots=True)
class ModuleHeading:
    """A run of nodes that one module made: `first` to `last` (exclusive). `key` names it over recompilations, `path` is
    the module's.

    `twin` is the title of the sibling before it that does the same, node by node, and `model` that one's first node.
    Where several siblings are alike the first counts them all (`alike`); so does the heading that the others have
    together, whose `path` is their parent's. `differing` are nodes whose tensors are not those of the model.
    """

    key: str
    title: str
    kind: str
    depth: int
    first: int
    last: int
    parent: int
    twin: str = ""
    children: list[int] = field(default_factory=list)
    path: str = ""
    alike: int = 0
    model: int = -1
    differing: tuple[int, ...] = ()

    @property
    def span(self) -> tuple[int, int]:
        """The indices of its first node and of the one after its last."""
        return self.first, self.last

    @property
    def is_group(self) -> bool:
        """Whether it stands for several modules."""
        return bool(self.twin) and self.alike > 0


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

    def unfold(self, heading: int) -> None:
        """Unfold a heading, and what is alone in there."""
        chain = [heading]
        while len(children := self.headings[chain[-1]].children) == 1:
            chain += children
        self.folded.difference_update(self.headings[each].key for each in chain)

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
    headings = builder.headings
    count = len(headings)
    tops, is_joined = _joined(headings)
    _group(headings, tops, _mark_twins(headings, tops, graph.nodes))
    if is_joined or len(headings) > count:
        built = _in_order(headings, tops, builder.owner)
    else:
        built = Outline(headings, builder.owner, set())
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
        joined = ".".join(path)
        kind = node.module_class if leaf and node.module == joined else ""
        parent = self._open[-1] if self._open else -1
        if parent >= 0:
            self.headings[parent].children.append(len(self.headings))
        self._open.append(len(self.headings))
        key = f"{joined}#{again}" if again > 1 else joined
        self.headings.append(ModuleHeading(key, path[-1], kind, len(path) - 1, index, index, parent, path=joined))

    def _close(self, depth: int, index: int) -> None:
        while len(self._open) > depth:
            self.headings[self._open.pop()].last = index


def _folded_at_first(built: Outline) -> set[str]:
    return {heading.key for heading in built.headings if heading.key == INPUTS or heading.twin}


def _joined(headings: Sequence[ModuleHeading]) -> tuple[list[int], bool]:
    """Make one heading of each module and the only one in it, where there is nothing else. Returns the outermost
    headings, and whether there was such a module.
    """
    tops, is_joined = [], False
    for at, heading in enumerate(headings):
        if len(heading.children) == 1 and headings[only := heading.children[0]].span == heading.span:
            is_joined, inner = True, headings[only]
            inner.title, inner.parent = f"{heading.title}.{inner.title}", heading.parent
            if heading.parent >= 0:
                siblings = headings[heading.parent].children
                siblings[siblings.index(at)] = only
        elif heading.parent < 0:
            tops.append(at)
    return tops, is_joined


def _mark_twins(headings: Sequence[ModuleHeading], tops: Sequence[int], nodes: Sequence[Node]) -> set[int]:
    """Find modules that repeat a sibling before them, operation by operation, as the layers of a transformer do.
    Returns the headings that they are under.
    """
    repeating = set()
    for siblings in (tops, *(heading.children for heading in headings if len(heading.children) > 1)):
        model: ModuleHeading | None = None
        for heading in (headings[at] for at in siblings):
            differing = _differing(nodes, model, heading) if model is not None else None
            if model is None or differing is None:
                model = heading
                continue
            heading.twin, heading.model, heading.differing = model.title, model.first, differing
            model.alike = max(model.alike, 1) + 1
            repeating.add(heading.parent)
    return repeating


def _differing(nodes: Sequence[Node], model: ModuleHeading, heading: ModuleHeading) -> tuple[int, ...] | None:
    """The nodes of a module that make other tensors than those of its model; None if the two are not alike."""
    length = heading.last - heading.first
    if length != model.last - model.first:
        return None
    most = length // UNLIKE
    differing: list[int] = []
    for index, before in enumerate(range(model.first, model.last), heading.first):
        ours, theirs = nodes[index], nodes[before]
        if ours.target != theirs.target:
            return None
        if ours.tensors != theirs.tensors:
            differing.append(index)
            if len(differing) > most:
                return None
    return tuple(differing)


def _group(headings: list[ModuleHeading], tops: list[int], parents: set[int]) -> None:
    """Put adjoining modules under these headings that are like the one before them under one heading."""
    for parent in parents:
        siblings = headings[parent].children if parent >= 0 else tops
        kept: list[int] = []
        for of_one, alike in groupby(siblings, lambda at: headings[at].model):
            members = list(alike)
            adjoin = all(headings[one].last == headings[other].first for one, other in pairwise(members))
            if of_one >= 0 and len(members) > 1 and adjoin:
                kept.append(len(headings))
                _put_under_one(headings, members, parent)
            else:
                kept += members
        siblings[:] = kept


def _put_under_one(headings: list[ModuleHeading], members: Sequence[int], parent: int) -> None:
    first, last = headings[members[0]], headings[members[-1]]
    group = ModuleHeading(
        f"{first.key}..{last.title}",
        f"{first.title}..{last.title}",
        first.kind,
        first.depth,
        first.first,
        last.last,
        parent,
        first.twin,
        list(members),
        headings[parent].path if parent >= 0 else "",
        len(members),
        first.model,
        tuple(index for member in members for index in headings[member].differing),
    )
    for member in members:
        headings[member].parent = len(headings)
    headings.append(group)


def _in_order(headings: Sequence[ModuleHeading], tops: Sequence[int], owner: Sequence[int]) -> Outline:
    """The headings that are left, in the order of the screen."""
    place_of: dict[int, int] = {}
    ordered: list[ModuleHeading] = []

    def add(at: int, depth: int, parent: int) -> None:
        place_of[at] = len(ordered)
        heading = headings[at]
        heading.depth, heading.parent = depth, parent
        ordered.append(heading)
        for child in heading.children:
            add(child, depth + 1, place_of[at])

    for top in tops:
        add(top, 0, -1)
    for heading in ordered:
        heading.children = [place_of[child] for child in heading.children]
    return Outline(ordered, [place_of.get(at, -1) for at in owner], set())
