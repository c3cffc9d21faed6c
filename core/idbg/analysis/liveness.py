"""Compute the memory that is alive while each node of a graph runs, and the tensors that are alive at the peak.

The figures are those of torch's own estimator (`torch._inductor.fx_passes.memory_estimator.build_memory_profile`), made
to count every device:

- Inputs are in memory from the start. Weights, buffers and what torch names `primals...` stay to the end: the caller
  holds them. Others (an inference graph's, tangents, saved tensors, constants) go after their last use.
  Torch's default lets an inference graph's weights go too, for it does not know which they are.
- A node's result is in memory from when the node runs, beside all that it reads, to the last use of any view of it;
  what the graph returns stays. Who takes one item of a tuple uses the whole tuple.
- What runs inside of torch.cond is not counted.

They differ from torch's in two cases. A result that nobody uses goes at once; torch keeps it. A size without a hint
is not counted; torch guesses one. Where a session did not record how large a memory is, it reaches as far as the
graph's own tensors do.
"""

import re
from collections.abc import Mapping, Sequence
from operator import attrgetter

from msgspec import Struct

from idbg.analysis.ops import flags, short_name
from idbg.schema.graphs import Dim, Graph, Node, TensorMeta, hint_of

_INPUTS = ("placeholder", "get_attr")

# What an op returns, where nothing was recorded: always memory of its first input ...
VIEWS = frozenset(
    (
        *("alias", "as_strided", "chunk", "detach", "diagonal", "expand", "expand_as", "getattr", "lift_fresh"),
        *("movedim", "narrow", "numpy_T", "permute", "select", "slice", "split", "split_with_sizes", "squeeze"),
        *("swapaxes", "t", "tensor_split", "transpose", "unbind", "unflatten", "unfold", "unsqueeze", "view"),
        *("view_as", "view_as_complex", "view_as_real", "_reshape_alias", "_unsafe_view"),
    )
)
# ... or where strides allow it, or where there is nothing to convert
_RESHAPES = frozenset(("reshape", "reshape_as", "flatten", "ravel"))
_CONVERSIONS = frozenset(
    ("to", "contiguous", "type", "type_as", "float", "half", "bfloat16", "double", "int", "long", "bool", "cpu", "cuda")
)
_COPY = re.compile(r"\bcopy ?= ?True\b")
_OUT = re.compile(r"\bout ?= ?(\w+)")


_PARTIAL = re.compile(r"index_put|slice_scatter|select_scatter|scatter|scatter_add|index_copy|index_add|masked_scatter")
"""Ops that write a part of their first argument, in place with a "_" behind the name, else into a copy of it all."""


class WholeCopy(Struct, frozen=True):
    """A write of a part of an argument that a graph does not do in place: `node` makes a copy of the whole `argument`,
    which later nodes write to, and `back` copies it to the argument; `write` is the node with the user's line.
    """

    node: str
    argument: str
    back: str
    write: str
    nbytes: int


def whole_copies(graph: Graph) -> list[WholeCopy]:
    """The arguments that a post-grad graph copies as a whole, as functionalization left their writes out of place.

    A slice that is written out of place is fused with its copy back; an indexed write needs the copy in memory.
    """
    copies = (node for node in graph.nodes if short_name(node.target) == "copy_" and len(node.inputs) > 1)
    return [found for node in copies if (found := _whole_copy(graph, node)) is not None]


def _whole_copy(graph: Graph, back: Node) -> WholeCopy | None:
    argument, node = (graph.by_name[name] for name in back.inputs[:2])
    chain: list[Node] = []
    while node.inputs and _PARTIAL.fullmatch(short_name(node.target).removesuffix("_")):
        chain.append(node)
        node = graph.by_name[node.inputs[0]]
    nbytes = argument.tensor.nbytes if argument.tensor else None
    in_memory = any(short_name(each.target).startswith(("index_put", "scatter")) for each in chain)
    if node is not argument or argument.op not in _INPUTS or not in_memory or not nbytes:
        return None
    made = chain[-1]
    if short_name(made.target).endswith("_"):  # it writes to the argument itself
        return None
    written = next((each for each in (made, *(graph.by_name[name] for name in made.inputs[1:])) if each.file), made)
    return WholeCopy(made.name, argument.name, back.name, written.name, nbytes)


class Alive(Struct, frozen=True):
    """Memory in use at the peak: the node that made it, and its bytes."""

    node: str
    nbytes: int


class MemoryProfile(Struct, frozen=True):
    """`peak_at` is the first node that runs at the peak; `alive` is what is in memory then, largest first.

    `live_bytes` is the memory in use while each node runs, in the graph's order. `unsized` tensors are not counted:
    a size has no hint, or the dtype no known width.
    """

    peak_bytes: int
    peak_at: str
    alive: tuple[Alive, ...]
    live_bytes: list[int]
    unsized: int


def memory_profile(graph: Graph, *, weights: bool = True) -> MemoryProfile:
    """The graph's memory over time, symbolic sizes at their hints; without `weights`, weights and buffers take none."""
    nodes, storages = graph.nodes, _storages(graph)
    maker, last, size, unsized = _lifetimes(nodes, storages)
    first, end = maker.copy(), len(nodes)
    for position, node in enumerate(nodes):
        if node.op not in _INPUTS:
            continue
        is_weight = node.role in ("weight", "buffer")
        for storage in storages[position]:
            if maker[storage] != position:
                continue
            first[storage] = 0
            if is_weight and not weights:
                size[storage] = 0
            if is_weight or node.name.startswith("primals") or last[storage] < 0:
                last[storage] = end
    last = list(map(max, first, last))
    live = _live_bytes(first, last, size, end)
    peak = max(live, default=0)
    at = live.index(peak) if live else end
    alive = [
        Alive(nodes[made].name, nbytes)
        for made, begun, ended, nbytes in zip(maker, first, last, size, strict=True)
        if nbytes and begun <= at <= ended
    ]
    alive.sort(key=attrgetter("nbytes"), reverse=True)
    return MemoryProfile(peak, nodes[at].name if live else "", tuple(alive), live, unsized)


def _lifetimes(
    nodes: Sequence[Node], storages: Sequence[tuple[int, ...]]
) -> tuple[list[int], list[int], list[int], int]:
    """By storage: the position of its maker, that of its last user (-1: none), its bytes; and how many have no size.

    Flat lists, for 100,000 nodes are to take a fraction of a second.
    """
    count = 1 + max((max(held) for held in storages if held), default=-1)
    maker, last, size, unsized = [-1] * count, [-1] * count, [0] * count, 0
    held_by: dict[str, tuple[int, ...]] = {}
    known: dict[tuple[str, tuple[Dim, ...], tuple[Dim, ...]], int | None] = {}
    for position, (node, held) in enumerate(zip(nodes, storages, strict=True)):
        name = node.name
        if "." in name:  # a node inside of torch.cond
            continue
        held_by[name] = held
        for source in node.inputs:
            for storage in held_by.get(source, ()):
                last[storage] = position
        if node.storage_bytes:
            for storage, whole in zip(held, node.storage_bytes, strict=True):
                if maker[storage] < 0:
                    maker[storage] = position
                if whole is None:
                    unsized += 1
                elif whole > size[storage]:
                    size[storage] = whole
            continue
        for storage, tensor in zip(held, node.tensors, strict=True):
            if maker[storage] < 0:
                maker[storage] = position
            key = (tensor.dtype, tensor.shape, tensor.stride)
            nbytes = known[key] if key in known else known.setdefault(key, _extent(tensor))
            if nbytes is None:
                unsized += 1
            elif nbytes > size[storage]:
                size[storage] = nbytes
    return maker, last, size, unsized


def _live_bytes(first: list[int], last: list[int], size: list[int], count: int) -> list[int]:
    allocated, freed = [0] * (count + 1), [0] * (count + 1)
    for begun, ended, nbytes in zip(first, last, size, strict=True):
        allocated[begun] += nbytes
        freed[ended] += nbytes
    live, current = [], 0
    for more, less in zip(allocated[:count], freed, strict=False):
        current += more
        live.append(current)
        current -= less
    return live


def _extent(tensor: TensorMeta) -> int | None:
    """Bytes from a tensor's first element to its last, what it steps over included; None if not known."""
    if not tensor.itemsize or len(tensor.stride) != len(tensor.shape):
        return tensor.nbytes if tensor.itemsize else None
    reach = 1
    for dim, stride in zip(tensor.shape, tensor.stride, strict=True):
        size, step = hint_of(dim), hint_of(stride)
        if size is None or step is None:
            return None
        if size == 0:
            return 0
        reach += (size - 1) * step
    return reach * tensor.itemsize


def _storages(graph: Graph) -> Sequence[tuple[int, ...]]:
    """By node, the numbers of the memory under its tensors: those recorded, and by the op where none were."""
    recorded = [node.storages for node in graph.nodes]
    if all(held or not node.tensors for node, held in zip(graph.nodes, recorded, strict=True)):
        return recorded
    count = 1 + max((max(held) for held in recorded if held), default=-1)
    held_by: dict[str, tuple[int, ...]] = {}
    storages: list[tuple[int, ...]] = []
    for node, held in zip(graph.nodes, recorded, strict=True):
        if node.tensors and not held:
            held = _taken_from(node, graph, held_by)
        if node.tensors and not held:
            held = tuple(range(count, count + len(node.tensors)))
            count += len(held)
        held_by[node.name] = held
        storages.append(held)
    return storages


def _taken_from(node: Node, graph: Graph, held_by: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The memory of its input that this node returns, judged by its op; nothing if it makes memory of its own."""
    if not node.op.startswith("call") or not node.inputs:
        return ()
    if "out" in node.args and (match := _OUT.search(node.args)):
        return held_by.get(match[1], ())
    source = graph.by_name.get(node.inputs[0])
    held = held_by.get(node.inputs[0], ())
    if source is None or not held:
        return ()
    if node.target == "operator.getitem":
        return _item(node, source, held, graph)
    if not _returns_input(node, source):
        return ()
    return held[:1] * len(node.tensors)


def _item(node: Node, source: Node, held: tuple[int, ...], graph: Graph) -> tuple[int, ...]:
    """What `source[...]` has: a place of a tuple, a view where the index is of numbers and slices, else nothing."""
    index = node.args.partition(", ")[2]
    if len(held) == 1:
        indexed = (graph.by_name[name] for name in node.inputs[1:] if name in graph.by_name)
        return () if "[" in index or any(other.tensors for other in indexed) else held
    if not index.isdecimal():
        return ()
    taken = {user.args.partition(", ")[2] for name in graph.users[source.name] if (user := graph.by_name[name])}
    places = sorted(int(place) for place in taken if place.isdecimal())
    # a tuple read from text holds only what is taken out of it, one read from torch all but its Nones
    place = places.index(int(index)) if len(places) == len(held) else int(index)
    return held[place : place + 1]


def _returns_input(node: Node, source: Node) -> bool:
    name = short_name(node.target)
    in_place = (name.endswith("_") and not name.endswith("__")) or ("True" in node.args and "inplace" in flags(node))
    if name in VIEWS or in_place:
        return True
    if source.tensor is None or node.tensor is None:
        return False
    before, after = source.tensor, node.tensor
    if name in _RESHAPES:  # a copy is contiguous, and a view is so only of what is contiguous
        return _is_contiguous(before) or not _is_contiguous(after)
    if name in _CONVERSIONS:
        same = (before.dtype, before.device, before.stride) == (after.dtype, after.device, after.stride)
        return same and not _COPY.search(node.args)
    return False


def _is_contiguous(tensor: TensorMeta) -> bool:
    if len(tensor.stride) != len(tensor.shape):
        return True
    expected: int | None = 1
    for dim, stride in zip(reversed(tensor.shape), reversed(tensor.stride), strict=True):
        size = hint_of(dim)
        if size != 1 and hint_of(stride) != expected:
            return False
        expected = None if size is None or expected is None else expected * size
    return True
