"""Partition a graph between accelerator and host when some nodes fall back, and count what crosses between them.

The partitions are those of torch's CapabilityBasedPartitioner (with partitions of a single node), found in one walk. It
goes from the outputs up and gives each node to the partition nearest to the outputs that it can join without a cycle.
Call a node's depth the most trips to the host and back on any path from it to an output. From a node of depth d such a
trip leads to every smaller depth, so it can join none of those partitions; no path leads back from depth d to d through
the host, so it joins that one. Hence a partition is the accelerated nodes of one depth.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from idbg.schema.graphs import Graph, Node

HOST = -1

_Crossing = dict[tuple[int, int], dict[int, None]]  # (depth of the source, of the reader) -> places of what crosses


class Boundary(Struct, frozen=True):
    """What goes from one side to another: `source` and `to` are indexes of `Partitions.parts`, or HOST.

    `nodes` makes the values that cross; several readers on one side need a value once. `nbytes` is their size with
    symbols at their hints; `unsized` counts the values whose size nobody knows, which `nbytes` leaves out. A number
    takes 0 bytes.
    """

    source: int
    to: int
    nodes: tuple[str, ...]
    nbytes: int
    unsized: int


class Partitions(Struct, frozen=True):
    """The accelerated `parts`, in the order they run, and the calls left on the `host`, all in the graph's order.

    The graph's own inputs, weights and outputs cross no boundary: they come and go whatever falls back. As in torch, an
    element of a tuple (operator.getitem) is where the tuple is; so an element of an input is on the host. Nodes inside
    a torch.cond are not named: they go where their cond goes.
    """

    parts: tuple[tuple[str, ...], ...]
    host: tuple[str, ...]
    boundaries: tuple[Boundary, ...]

    @property
    def count(self) -> int:
        return len(self.parts)

    @property
    def crossings(self) -> int:
        """Transfers of one value each."""
        return sum(len(boundary.nodes) for boundary in self.boundaries)

    @property
    def bytes(self) -> int:
        """Bytes of all transfers whose size is known."""
        return sum(boundary.nbytes for boundary in self.boundaries)


class Merge(Struct, frozen=True):
    """One change of the rules, and the partitions and crossing bytes that it would leave."""

    label: str
    count: int
    bytes: int


def partition(graph: Graph, fallback: Collection[str]) -> Partitions:
    """The graph's partitions when the nodes named in `fallback` run on the host.

    A node inside a torch.cond takes its cond with it; names that are no call of the graph's change nothing.
    """
    calls = _CallGraph(graph)
    depths = calls.depths(calls.named(fallback))
    order = sorted(set(depths) - {HOST}, reverse=True)
    sides = {HOST: HOST, **{depth: index for index, depth in enumerate(order)}}
    members: dict[int, list[str]] = {side: [] for side in sides.values()}
    for place in calls.places:
        members[sides[depths[place]]].append(calls.nodes[place].name)
    boundaries = tuple(
        calls.boundary(sides[source], sides[to], places) for (source, to), places in calls.crossing(depths).items()
    )
    parts = tuple(tuple(members[side]) for side in range(len(order)))
    return Partitions(parts, tuple(members[HOST]), boundaries)


def best_merge(
    graph: Graph,
    broken: Mapping[str, Collection[str]],
    now: Partitions | None = None,
    candidates: Iterable[str] | None = None,
) -> Merge | None:
    """The one change that leaves the fewest partitions, then the fewest bytes; None if none leaves fewer.

    `broken` has each possible change, and the nodes that no longer fall back because of it; a node that several changes
    hold back stays on the host until all are made. `now` is the partition with all of these on the host, if at hand;
    `candidates` the changes that are tried, if not all.
    """
    calls = _CallGraph(graph)
    held = {label: calls.named(names) for label, names in broken.items()}
    holders = Counter(place for places in held.values() for place in places)
    least = (now.count, now.bytes) if now else calls.cost(calls.depths(holders.keys()))
    best: Merge | None = None
    for label in held if candidates is None else candidates:
        places = held[label]
        freed = {place for place in places if holders[place] == 1}
        if not freed or _count(depths := calls.depths(holders.keys() - freed)) > least[0]:
            continue
        if (cost := calls.cost(depths)) < least:
            best, least = Merge(label, *cost), cost
    return best


class _CallGraph:
    """A graph's calls as numbers: the `places` of calls in the graph, and by place those of the calls that it reads."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes = graph.nodes
        self._place = {node.name: place for place, node in enumerate(graph.nodes) if _is_call(node)}
        self.places = list(self._place.values())
        find = self._place.get
        # Tuples of numbers: the garbage collector lets them be, where as many lists took it five times as long
        self._inputs = [tuple([at for name in node.inputs if (at := find(name)) is not None]) for node in graph.nodes]
        self._elements = self._elements_of_tuples()
        self._sizes: dict[int, int | None] = {}

    def named(self, names: Iterable[str]) -> set[int]:
        """Where the calls of these names are; of a node inside a torch.cond, where the cond is."""
        places: set[int] = set()
        for name in names:
            branch, inside, _ = name.partition(".")
            callers = self.graph.users.get(branch, ()) if inside else (name,)
            places.update(self._place[caller] for caller in callers if caller in self._place)
        return places

    def depths(self, held: Collection[int]) -> list[int]:
        """Each node's depth by its place; HOST for what does not run on the accelerator.

        The walk keeps twice the depth of an accelerated node, and one more for what is above a host node: to come back
        to the accelerator from there rounds up to the next depth.
        """
        odd = [0] * len(self.nodes)
        for place in held:
            odd[place] = 1
        below = [-1] * len(self.nodes)
        for place in reversed(self.places):
            here = below[place]
            here = here | 1 if odd[place] else (here + 1) & ~1
            below[place] = here
            for source in self._inputs[place]:
                if below[source] < here:
                    below[source] = here
        depths = [HOST] * len(self.nodes)
        for place in self.places:
            if not odd[place]:
                depths[place] = below[place] >> 1
        for place, source in self._elements:
            depths[place] = depths[source]
        return depths

    def crossing(self, depths: list[int]) -> _Crossing:
        """The values that cross, by the sides between which they do."""
        crossing: _Crossing = {}
        for place in self.places:
            to = depths[place]
            for source in self._inputs[place]:
                if depths[source] != to:
                    crossing.setdefault((depths[source], to), {})[source] = None
        return crossing

    def boundary(self, source: int, to: int, places: Collection[int]) -> Boundary:
        sizes = [self._size(place) for place in places]
        nodes = tuple(self.nodes[place].name for place in sorted(places))
        return Boundary(source, to, nodes, sum(size or 0 for size in sizes), sizes.count(None))

    def cost(self, depths: list[int]) -> tuple[int, int]:
        """How many partitions there would be, and the bytes that would cross."""
        crossing = self.crossing(depths).values()
        return _count(depths), sum(self._size(place) or 0 for places in crossing for place in places)

    def _elements_of_tuples(self) -> list[tuple[int, int]]:
        """(place, source) of each getitem that torch moves to its source: one whose readers are all getitems.

        Torch never ends where x[i] has two such sources on different sides; the later one wins here.
        """
        getitems = {node.name for node in self.nodes if node.target == "operator.getitem" and _is_call(node)}
        if not getitems:
            return []
        at = {node.name: place for place, node in enumerate(self.nodes)}
        others = {at.get(name) for node in self.nodes if node.name not in getitems for name in node.inputs}
        moved = {at[name]: {at[source] for source in self.nodes[at[name]].inputs} - others for name in getitems}
        return sorted((place, max(sources)) for place, sources in moved.items() if sources)

    def _size(self, place: int) -> int | None:
        """Bytes of the node's value, or None; a transfer is dense, also of a tensor that repeats its memory."""
        if place not in self._sizes:
            node = self.nodes[place]
            known = [tensor.nbytes for tensor in node.tensors if tensor.itemsize]
            total = sum(size for size in known if size is not None)
            self._sizes[place] = None if node.unknown or len(known) < len(node.tensors) or None in known else total
        return self._sizes[place]


def _count(depths: list[int]) -> int:
    return len(set(depths) - {HOST})


def _is_call(node: Node) -> bool:
    """Whether it is a call of the graph itself; a name with a dot is inside a torch.cond."""
    return node.op.startswith("call") and "." not in node.name
