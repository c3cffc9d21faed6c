"""Compute one node of a post-grad graph, with floating arithmetic in float64 and in the program's own dtypes.

A value that is exact in its own dtype (a weight, an input, a view of one) is held in that dtype only: it is converted
to float64 where an op needs it, and dropped right after.
"""

import math
import operator
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final, cast

import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.fx.node import map_aggregate, map_arg

from idbg.engine.compat import comparing, fx, mutations
from idbg.engine.compat.torch_types import OpOverload
from idbg.engine.kerneldiff.float64.mode import Float64, NotInFloat64
from idbg.engine.kerneldiff.float64.undeclared_writes import without_undeclared_writes
from idbg.engine.kerneldiff.float64.wide_ops import in_float64
from idbg.engine.kerneldiff.kernels.philox import drawn
from idbg.engine.kerneldiff.kernels.user_reference import reference_of
from idbg.engine.kerneldiff.tensors.float64_device import (
    float64_device,
    is_packed,
    on_float64_device,
    to_float64,
    wide_dtype,
)
from idbg.schema.errors import first_line

AS_OWN: Final = object()
"""Stands for an exact value that is the own one, widened."""

# the program's own dtype is part of what these compute
_BY_BITS = {"view.dtype", "view_of_dtype", "bitcast", "nextafter", "frexp"}
_UNINITIALIZED = {"empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided", "empty_permuted"}
_RAISED = (RuntimeError, TypeError, ValueError, NotImplementedError, LookupError, AttributeError, AssertionError)
_CASTS = ("prims::convert_element_type", "_to_copy", "to")

_map = cast("Callable[[object, Callable[[Any], object]], Any]", map_aggregate)


@dataclass(frozen=True)
class ReferenceValue:
    """A node's value: in float64 (`wide`, which may be AS_OWN), and as the program's own ops compute it (`own`)."""

    wide: Any
    own: Any

    @property
    def exact(self) -> Any:
        """The value in float64; a new copy each time if it is the own value, converted."""
        return _map(self.own, widened) if self.wide is AS_OWN else self.wide

    def apart(self) -> "ReferenceValue":
        """Copies that an op may write to."""
        own = _map(self.own, lambda leaf: leaf.clone() if isinstance(leaf, Tensor) else leaf)
        return ReferenceValue(_map(self.own, lambda leaf: widened(leaf, copy=True)), own)


Known = Mapping[Node, ReferenceValue]


class NotComputable(Exception):
    """The node's value cannot be computed; the text says why, as the end of a sentence."""


def computed(gm: GraphModule, node: Node, known: Known, *, exact: bool = True) -> ReferenceValue:
    """The node's value from those of its input nodes; without `exact`, in its own dtype only.

    Raises NotComputable.
    """
    if node.op == "get_attr":
        return ReferenceValue(AS_OWN, comparing.attribute(gm, str(node.target)))
    try:
        if random := _random(node, known):
            return random
        own = _own(node, known)
        if not exact or _adds_nothing(node, own, known):
            return ReferenceValue(AS_OWN, own)
        return ReferenceValue(_exact(node, known), own)
    except _RAISED as error:
        raise NotComputable(f"{node.name} cannot be computed by itself: {first_line(error)}") from error


def _own(node: Node, known: Known) -> Any:
    args, kwargs = _arguments(node, {source: known[source].own for source in node.all_input_nodes})
    if _copies(node):
        return _as_copied(args)
    result = _returned(node, args, without_undeclared_writes(_function(node), args, kwargs))
    return _blank(result) if is_uninitialized(node) else result


def _function(node: Node) -> Callable[..., object]:
    target = cast("Callable[..., object]", node.target)
    return reference_of(node) or comparing.dense_kernel(target) or target


def _exact(node: Node, known: Known) -> Any:
    args, kwargs = _arguments(node, {source: known[source].exact for source in node.all_input_nodes})
    if _copies(node):
        return _as_copied(args)
    if node.target is operator.getitem:
        return operator.getitem(*args)
    function, users = _function(node), reference_of(node)
    by_bits = fx.op_name(node.target).rpartition("::")[2] in _BY_BITS
    runs_graphs = comparing.dense_kernel(node.target) is not None and not comparing.changes_arguments(node.target)
    if users is None and (by_bits or not (runs_graphs or isinstance(node.target, OpOverload))):
        return _in_own_dtypes(function, args, kwargs, node, known)
    try:
        wide_args, wide_kwargs = _map((args, kwargs), _instead)
        with Float64() if runs_graphs else nullcontext():  # its graphs convert to the program's dtypes
            result = without_undeclared_writes(function, wide_args, wide_kwargs, in_float64)
        result = _map(_returned(node, wide_args, result), widened)
        return _blank(result) if is_uninitialized(node) else result
    except (*_RAISED, NotInFloat64):  # no such kernel for float64
        return _in_own_dtypes(function, args, kwargs, node, known)


def is_uninitialized(node: Node) -> bool:
    """Whether it allocates uninitialized memory, as users do for their kernels."""
    return fx.op_name(node.target) in _UNINITIALIZED


def written_part(reference: ReferenceValue, value: Tensor) -> ReferenceValue:
    """The reference, with the actual value where the memory is still uninitialized."""
    blank = _is_blank(reference.own)
    exact = torch.where(blank, value.to(reference.exact.dtype), reference.exact)
    return ReferenceValue(exact, torch.where(blank, value, reference.own))


def _blank(value: Any) -> Any:
    return value.fill_(_mark_of(value)) if isinstance(value, Tensor) and value.dtype != torch.bool else value


def _is_blank(value: Tensor) -> Tensor:
    return (value != value) | (value == _mark_of(value))


def _mark_of(value: Tensor) -> float:
    """The value that stands for uninitialized memory."""
    is_float = value.dtype.is_floating_point or value.dtype.is_complex or value.dtype == torch.bool
    return math.nan if is_float else torch.iinfo(value.dtype).min


def _arguments(node: Node, values: Mapping[Node, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return cast("tuple[tuple[Any, ...], dict[str, Any]]", map_arg((node.args, node.kwargs), values.__getitem__))


def _adds_nothing(node: Node, own: Any, known: Known) -> bool:
    """Whether the exact result is the own one: a view, or a conversion to a wider dtype, of an exact value."""
    if not node.all_input_nodes or any(known[source].wide is not AS_OWN for source in node.all_input_nodes):
        return False
    if not isinstance(node.target, OpOverload):
        return node.target is operator.getitem  # of what a split gave
    if fx.op_name(node.target) in _CASTS:
        source = known[node.all_input_nodes[0]].own
        return isinstance(own, Tensor) and torch.promote_types(source.dtype, own.dtype) == own.dtype
    return bool(node.target.is_view) and fx.op_name(node.target).rpartition("::")[2] not in _BY_BITS


def _random(node: Node, known: Known) -> ReferenceValue | None:
    """Inductor's random numbers for the kernel's actual seed; None for an op that draws none."""
    name = fx.op_name(node.target)
    if name == "prims::inductor_random":
        shape, seed, kind = (map_arg(argument, lambda source: known[source].own) for argument in node.args)
        numbers = drawn(cast("Any", kind), cast("list[int]", shape), cast("Tensor", seed))
        return ReferenceValue(AS_OWN, numbers)
    if comparing.is_random(node):
        raise NotComputable(f"{node.name} draws random numbers that no buffer holds")
    return None


def changes_more(node: Node) -> bool:
    """Whether the op changes an argument that later nodes read; nothing reads the copies to inputs at the end."""
    if node.op != "call_function" or not comparing.changes_arguments(node.target):
        return False
    target = node.args[0] if node.args else None
    to_input = fx.op_name(node.target) == "copy_" and isinstance(target, Node) and target.op == "placeholder"
    return not (to_input and not any(user > node for user in cast("Node", target).users if user is not node))


def changed_by(node: Node) -> set[Node]:
    """The nodes whose memory this op writes to, back to those that are not views."""
    changed: set[Node] = set()
    waiting = list(mutations.written_nodes(node)) or list(node.all_input_nodes)
    while waiting:
        each = waiting.pop()
        changed.add(each)
        if each.op == "call_function" and not fx.is_computed(each.target):
            waiting += [source for source in each.all_input_nodes if source not in changed]
    return changed


def arguments_written(node: Node) -> list[Node]:
    """The graph's arguments whose memory this op writes to."""
    if node.op != "call_function" or not comparing.changes_arguments(node.target):
        return []
    return [changed for changed in changed_by(node) if changed.op == "placeholder"]


def _copies(node: Node) -> bool:
    """Whether it is the final copy to an input: it is computed as a value, and the input stays unchanged."""
    return fx.op_name(node.target) == "copy_" and not changes_more(node)


def _as_copied(args: tuple[Any, ...]) -> Tensor:
    target, source = cast("tuple[Tensor, Tensor]", args[:2])
    return source.to(target.dtype).expand_as(target)


def widened(leaf: Any, *, copy: bool = False) -> Any:
    """A tensor in float64 (complex128), on the CPU if its device has no float64; integers and anything else as they
    are.
    """
    if not isinstance(leaf, Tensor) or is_packed(leaf):
        return leaf
    wide = to_float64(leaf)
    return wide.clone() if copy and wide is leaf else wide


def _instead(leaf: Any) -> Any:
    """A dtype as the wider one; a device as the one that has float64."""
    if isinstance(leaf, torch.device):
        return float64_device(leaf)
    return wide_dtype(leaf) if isinstance(leaf, torch.dtype) else leaf


def _in_own_dtypes(function: Callable[..., object], args: Any, kwargs: Any, node: Node, known: Known) -> object:
    """Call the op in the program's own dtypes with exact inputs rounded to them, and copy back what it changes."""
    own = _arguments(node, {source: known[source].own for source in node.all_input_nodes})
    leaves: list[tuple[Tensor, Tensor]] = []
    kinds: list[tuple[torch.device, torch.dtype]] = []
    _map(own, lambda leaf: kinds.append((leaf.device, leaf.dtype)) if isinstance(leaf, Tensor) else None)
    remaining = iter(kinds)

    def narrowed(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        device, dtype = next(remaining)
        leaves.append((leaf, narrow := leaf.to(dtype).to(device)))
        return narrow

    narrow_args, narrow_kwargs = _map((args, kwargs), narrowed)
    result = without_undeclared_writes(function, narrow_args, narrow_kwargs)
    if comparing.changes_arguments(node.target):
        for leaf, narrow in leaves:
            leaf.copy_(on_float64_device(narrow))
    return _map(_returned(node, args, result), widened)


def _returned(node: Node, args: Any, result: object) -> object:
    """The result of the node; its first argument for an op that changes it and returns nothing (`_foreach_add_`)."""
    written = fx.written(node.target)
    return args[written[0]] if result is None and written and written[0] < len(args) else result
