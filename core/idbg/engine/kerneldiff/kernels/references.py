"""What should each node of a post-grad graph hold, in float64 and in the program's own precision?

The graph is computed twice side by side: with floating arithmetic kept in float64, and op by op in the dtypes that it
was written in. A node is computed when it is asked for, and dropped when nothing more needs it: about what the compiled
program holds at that time is held here too, once in its own dtype and once in float64.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.fx.node import map_aggregate, map_arg

from idbg.engine.compat import comparing, fx
from idbg.engine.kerneldiff.kernels.philox import drawn
from idbg.engine.kerneldiff.kernels.rounding import size_of
from idbg.schema.errors import said

_WIDE = {torch.complex64: torch.complex128, torch.complex32: torch.complex128}
# the program's own dtype is part of what these compute
_BY_BITS = {"view.dtype", "view_of_dtype", "bitcast", "nextafter", "frexp"}

_map = cast("Callable[[object, Callable[[Any], object]], Any]", map_aggregate)


@dataclass(frozen=True)
class Both:
    """One node's value: with floating numbers in float64, and as the program's own ops compute it."""

    exact: Any
    own: Any


class Unknown(Exception):
    """This node's value cannot be computed; the text says why, as the end of a sentence."""


class References:
    """The values of a graph's nodes for one set of inputs, which are copied here and may be changed after.

    `wanted` says how many buffers hold each node: `done` gives one back.
    """

    def __init__(self, gm: GraphModule, inputs: Iterable[object], wanted: Mapping[str, int]) -> None:
        self.gm = gm
        self.nodes = {node.name: node for node in gm.graph.nodes}
        self.order = {node: place for place, node in enumerate(gm.graph.nodes)}
        self.barriers = [node for node in gm.graph.nodes if _changes_more(node)]
        self.values: dict[Node, Both | Unknown] = {}
        self.rms: dict[Node, Tensor] = {}  # of every floating value, also of those that are dropped
        placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
        self.inputs = copied(inputs)
        for node, value in zip(placeholders, self.inputs, strict=True):
            self._hold(node, Both(_map(value, _widened), value))
        needed = self._before(name for name in wanted if name in self.nodes)
        self.uses = Counter(source for node in needed for source in self._sources(node))
        self.uses.update({self.nodes[name]: count for name, count in wanted.items() if name in self.nodes})

    def value(self, name: str) -> Both:
        """The node's value. Raises Unknown."""
        with torch.no_grad():
            for node in sorted(self._before([name], self.values), key=self.order.__getitem__):
                self._hold(node, self._computed(node))
                for source in self._sources(node):
                    self._used(source)
        value = self.values[self.nodes[name]]
        if isinstance(value, Unknown):
            raise value
        return value

    def take(self, name: str, actual: Tensor) -> None:
        """Hold this as the node's value: random numbers are what the compiled program drew."""
        if self.nodes[name] not in self.values:
            self._hold(self.nodes[name], Both(_widened(actual.clone()), actual.clone()))

    def done(self, name: str) -> None:
        """A buffer that holds this node has been seen."""
        self._used(self.nodes[name])

    def _hold(self, node: Node, value: Both | Unknown) -> None:
        self.values[node] = value
        size = size_of(value.exact) if isinstance(value, Both) else None
        if size is not None:
            self.rms[node] = size

    def _used(self, node: Node) -> None:
        self.uses[node] -= 1
        if self.uses[node] <= 0 and node not in self.barriers:
            self.values[node] = _DROPPED

    def _sources(self, node: Node) -> list[Node]:
        """What must be computed before the node: also all before an op that changes its arguments, and that op before
        all after it.
        """
        if node in self.barriers:
            return [other for other in self.order if self.order[other] < self.order[node] and other.op != "output"]
        last = [barrier for barrier in self.barriers if self.order[barrier] < self.order[node]][-1:]
        return [*node.all_input_nodes, *last] if node.op != "placeholder" else []

    def _before(self, names: Iterable[str], known: Collection[Node] = ()) -> set[Node]:
        """These nodes and all that they are computed from, without what is known."""
        needed: set[Node] = set()
        waiting = [self.nodes[name] for name in names]
        while waiting:
            node = waiting.pop()
            if node not in needed and node not in known:
                needed.add(node)
                waiting += self._sources(node)
        return needed

    def _computed(self, node: Node) -> Both | Unknown:
        if node.op == "get_attr":
            held = comparing.attribute(self.gm, str(node.target))
            return Both(_map(held, _widened), held)
        sources = {source: self.values[source] for source in node.all_input_nodes}
        for value in sources.values():
            if isinstance(value, Unknown):
                return value
        known = cast("dict[Node, Both]", sources)
        try:
            if random := self._random(node, known):
                return random
            return Both(_call(node, known, exact=True), _call(node, known, exact=False))
        except (RuntimeError, TypeError, ValueError, NotImplementedError, LookupError, AttributeError) as error:
            reason = (said(error).strip() or type(error).__name__).splitlines()[0]
            return Unknown(f"{node.name} cannot be computed by itself: {reason}")

    def _random(self, node: Node, known: Mapping[Node, Both]) -> Both | Unknown | None:
        """Inductor's random numbers from the seed that its kernel was given; None for an op that draws none."""
        name = fx.op_name(node.target)
        if name == "prims::inductor_random":
            shape, seed, kind = (map_arg(argument, lambda source: known[source].own) for argument in node.args)
            numbers = drawn(cast("Any", kind), cast("list[int]", shape), cast("Tensor", seed))
            return Both(numbers.double(), numbers)
        if comparing.is_random(node):
            return Unknown(f"{node.name} draws random numbers that no buffer holds")
        return None


_DROPPED = Unknown("it is needed no more")


def copied(inputs: Iterable[object]) -> list[object]:
    """Copies of the inputs with their strides; those that share memory share it still."""
    storages: dict[int, torch.UntypedStorage] = {}

    def copy(value: object) -> object:
        if not isinstance(value, Tensor) or value.layout != torch.strided:
            return value.clone() if isinstance(value, Tensor) else value
        storage = value.untyped_storage()
        if storage.data_ptr() not in storages:
            storages[storage.data_ptr()] = storage.clone()  # type: ignore[no-untyped-call]
        empty = torch.empty(0, dtype=value.dtype, device=value.device)
        return empty.set_(storages[storage.data_ptr()], value.storage_offset(), value.shape, value.stride())

    with torch.no_grad():
        return [copy(value) for value in inputs]


def _widened(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        return leaf.to(_wide(leaf.dtype))
    return leaf


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype.is_floating_point else _WIDE.get(dtype, dtype)


def _changes_more(node: Node) -> bool:
    """Whether the op changes an argument in a way that later nodes see; the copies to inputs at the end are seen by
    none.
    """
    if node.op != "call_function" or not comparing.changes_arguments(node.target):
        return False
    target = node.args[0] if node.args else None
    to_input = fx.op_name(node.target) == "copy_" and isinstance(target, Node) and target.op == "placeholder"
    return not (to_input and not any(user > node for user in cast("Node", target).users if user is not node))


def _call(node: Node, known: Mapping[Node, Both], exact: bool) -> object:
    args, kwargs = cast(
        "tuple[tuple[Any, ...], dict[str, Any]]",
        map_arg((node.args, node.kwargs), lambda source: known[source].exact if exact else known[source].own),
    )
    function, name = cast("Callable[..., object]", node.target), fx.op_name(node.target)
    if name == "copy_" and not _changes_more(node):  # as a value, and the input is left as it was
        target, source = cast("tuple[Tensor, Tensor]", args[:2])
        return source.to(target.dtype).expand_as(target)
    if not exact:
        return _returned(node, args, function(*args, **kwargs))
    if name.rpartition("::")[2] in _BY_BITS or not isinstance(node.target, torch._ops.OpOverload):
        return _in_own_dtypes(function, args, kwargs, node, known)
    try:
        wide_args, wide_kwargs = _map((args, kwargs), _wide_dtype)
        return _map(_returned(node, wide_args, function(*wide_args, **wide_kwargs)), _widened)
    except (RuntimeError, NotImplementedError):  # no such kernel for float64
        return _in_own_dtypes(function, args, kwargs, node, known)


def _wide_dtype(leaf: Any) -> Any:
    return _wide(leaf) if isinstance(leaf, torch.dtype) else leaf


def _in_own_dtypes(
    function: Callable[..., object], args: Any, kwargs: Any, node: Node, known: Mapping[Node, Both]
) -> object:
    """The op in the program's own dtypes, of exact inputs rounded to them; what it changes is carried back."""
    own = map_arg((node.args, node.kwargs), lambda source: known[source].own)
    leaves: list[tuple[Tensor, Tensor]] = []
    dtypes: list[torch.dtype] = []
    _map(own, lambda leaf: dtypes.append(leaf.dtype) if isinstance(leaf, Tensor) else None)
    remaining = iter(dtypes)

    def narrowed(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        leaves.append((leaf, narrow := leaf.to(next(remaining))))
        return narrow

    narrow_args, narrow_kwargs = _map((args, kwargs), narrowed)
    result = function(*narrow_args, **narrow_kwargs)
    if comparing.changes_arguments(node.target):
        for leaf, narrow in leaves:
            leaf.copy_(narrow)
    return _map(_returned(node, args, result), _widened)


def _returned(node: Node, args: Any, result: object) -> object:
    """A graph takes its first argument for the result of an op that returns none (`_foreach_add_`)."""
    written = fx.written(node.target)
    return args[written[0]] if result is None and written else result
