"""Read graphs of torch.fx: targets, origins of nodes, tensors as records."""

import operator
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.fx import GraphModule, Node
from torch.multiprocessing.reductions import StorageWeakRef

if TYPE_CHECKING:
    from torch.fx.traceback import NodeSource

from idbg.engine.compat.names import find, instead_of, internals
from idbg.schema.graphs import DTYPES, Dim, Sym, TensorMeta, hint_of

_NO_BOUND = 1 << 62  # sympy's infinities and sys.maxsize are above this: no bound


def qualified_target(node: Node) -> str:
    """ "aten.convolution.default", "torch.conv2d", "operator.getitem"; a method's or module's own name."""
    return target_name(node.target)


def target_name(target: Any) -> str:
    """The same of a node's target alone."""
    if isinstance(target, str):
        return target
    if isinstance(target, internals._ops.OpOverload):
        return str(target)
    return _qualified(target).removeprefix("torch.ops.").replace("_operator.", "operator.") or str(target)


@instead_of("")
def _qualified(target: Any) -> str:
    return internals.fx.node._get_qualified_name(target)


def inner_graph(gm: GraphModule, node: Node) -> GraphModule | None:
    """The graph of a get_attr node, such as a branch of torch.cond; None for other nodes."""
    value = getattr(gm, str(node.target), None) if node.op == "get_attr" else None
    return value if isinstance(value, GraphModule) else None


def op_name(target: object) -> str:
    """The name of an op without its overload: "mm" (ATen), "my::op", "cond"; "" for another target."""
    if isinstance(target, internals._ops.HigherOrderOperator):
        return str(target.name())  # type: ignore[no-untyped-call]
    return target._schema.name.removeprefix("aten::") if isinstance(target, internals._ops.OpOverload) else ""


def is_computed(target: object) -> bool:
    """Whether an op creates new tensors; views, in-place ops and members of a tuple do not."""
    if isinstance(target, internals._ops.OpOverload):
        return all(result.alias_info is None for result in target._schema.returns)
    return isinstance(target, internals._ops.HigherOrderOperator)


def written(target: object) -> tuple[int, ...]:
    """The positions of the arguments that an op writes to."""
    if not isinstance(target, internals._ops.OpOverload):
        return ()
    arguments = enumerate(target._schema.arguments)
    return tuple(at for at, argument in arguments if argument.alias_info is not None and argument.alias_info.is_write)


def is_view(target: object) -> bool:
    """Whether an op's value shares the memory of its first argument, or is a member of it, and nothing is written."""
    return target is operator.getitem or (
        isinstance(target, internals._ops.OpOverload) and not is_computed(target) and not written(target)
    )


def results_for_program(output: Node) -> list[object]:
    """What an ATen graph returns to the program; None in place of what it saves for its backward, or may save."""
    returned = cast("Sequence[object]", output.args[0])
    purposes = output.meta.get("desc") or [None] * len(returned)
    kept = [each is None or type(each).__name__.startswith("Saved") for each in purposes]
    return [None if saved else value for saved, value in zip(kept, returned, strict=True)]


def returns_written(target: object) -> bool:
    """Whether an op's value is the argument that it writes to, as that of `add_` is; a custom op's is another."""
    returned = target._schema.returns[:1] if isinstance(target, internals._ops.OpOverload) else []
    return any(value.alias_info is not None and value.alias_info.is_write for value in returned)


def returns_nothing(target: object) -> bool:
    """Whether an op's schema has no result, as that of one that only prints; Dynamo calls all its overloads at once."""
    if isinstance(target, internals._ops.OpOverloadPacket):
        return all(returns_nothing(getattr(target, overload)) for overload in target.overloads())  # type: ignore[no-untyped-call]
    return isinstance(target, internals._ops.OpOverload) and not target._schema.returns


@dataclass(frozen=True)
class Argument:
    """The argument of a Dynamo placeholder. `is_number`: a Python number that torch passes as a tensor."""

    is_number: bool = False
    is_static: bool = False


def argument_of(node: Node) -> Argument:
    """The argument of a placeholder of Dynamo's, from its metadata."""
    graph_argument = node.meta.get("grapharg")
    static = node.meta.get("tensor_dict", {}).get("_dynamo_static_input_type") is not None
    return Argument(bool(getattr(graph_argument, "pass_arg_as_tensor", False)), static)


def real_inputs(gm: GraphModule) -> list[object]:
    """The values of a Dynamo graph's placeholders in this compile, in order; a backend itself gets fake tensors."""
    arguments = (node.meta.get("grapharg") for node in gm.graph.nodes if node.op == "placeholder")
    values = (argument.example if argument is not None else None for argument in arguments)
    return [concrete(value) for value in values]


def concrete(value: object) -> object:
    """The hint of a symbolic number; any other value unchanged."""
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return value.node.hint if value.node.has_hint() else None
    return value


@contextmanager
def transforms_undone() -> Iterator[None]:
    """End the function transforms (vmap, grad) that a part of a graph begins and does not end."""
    functorch = find("torch._C._functorch")
    depth = functorch.get_dynamic_layer_stack_depth()
    try:
        yield
    finally:
        while functorch.get_dynamic_layer_stack_depth() > depth:  # pop_..._to_depth raises on torch 2.11
            functorch.pop_dynamic_layer_stack()


def leaves_autocast(node: Node) -> bool:
    """Whether a node ends the autocast that its input began."""
    return node.target is internals.amp.autocast_mode._exit_autocast


def origins(node: Node) -> set[str]:
    """Names of the Dynamo nodes from which this ATen node was traced; empty without torch's record."""

    def roots(sources: "Iterable[NodeSource]") -> Iterator[str]:
        for source in sources:
            if deeper := set(roots(source.from_node or ())):
                yield from deeper
            elif source.name and not is_replacement(
                source
            ):  # that is of a later graph; one that a pass inserts has none
                yield str(source.name)

    return set(roots(node.meta.get("from_node") or []))


def replaced_by(node: Node, pass_name: str) -> tuple[str, ...]:
    """Names of the nodes that this node replaces in this pass, as torch's observer noted them."""
    sources = node.meta.get("from_node") or ()
    return tuple(str(each.name) for each in sources if each.pass_name == pass_name and is_replacement(each))


def is_replacement(source: object) -> bool:
    """Whether a node's source is a node that it replaces, and not one from which it was traced."""
    return any(action.name == "REPLACE" for action in getattr(source, "action", None) or ())


def tensor_meta(value: torch.Tensor) -> TensorMeta:
    """A tensor, also a fake one, as a record; symbolic sizes stay symbols, and only strided tensors have strides."""
    dtype = str(value.dtype).removeprefix("torch.")
    strided = value.layout == torch.strided
    stride = tuple(dim_of(size) for size in value.stride()) if strided else ()
    return TensorMeta(dtype, tuple(dim_of(size) for size in value.shape), stride, str(value.device))


def storage_of(value: torch.Tensor) -> tuple[int, int | None]:
    """One number for all tensors that share memory, as long as they live, and that memory's bytes at hints.

    A tensor without a storage (sparse, or one of vmap's) has memory of its own. The bytes are None without a hint.
    """
    try:
        storage = value.untyped_storage()
    except NotImplementedError:
        return id(value), tensor_meta(value).nbytes
    return storage._cdata, hint_of(dim_of(storage.nbytes()))


def storage_values(storage: torch.UntypedStorage, dtype: torch.dtype = torch.uint8) -> torch.Tensor:
    """A whole storage as a flat tensor that shares it. Not `set_(storage)`: a device of others may lack that form."""
    empty = torch.empty(0, dtype=dtype, device=storage.device)
    return empty.set_(storage, 0, (storage.nbytes() // dtype.itemsize,), (1,))


class WeakStorage:
    """A storage that others hold, and that may end; its number stays its own."""

    def __init__(self, storage: torch.UntypedStorage) -> None:
        self._weak = StorageWeakRef(storage)  # type: ignore[no-untyped-call]

    def storage(self) -> torch.UntypedStorage | None:
        """The storage; None once nothing holds it."""
        found: torch.UntypedStorage | None = internals.UntypedStorage._new_with_weak_ptr(self._weak.cdata)
        return found


def storage_copy(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    """A copy on the same device. Not `storage.clone()`, for the same reason."""
    return storage_values(storage).clone().untyped_storage()


def short_type(value: torch.Tensor) -> str:
    """ "f32[8,s0]": a tensor's type in short."""
    dtype = str(value.dtype).removeprefix("torch.")
    return f"{DTYPES.get(dtype, (dtype, 0))[0]}[{','.join(map(str, value.shape))}]"


def dim_of(size: int | torch.SymInt) -> Dim:
    """A size as a record; a symbol has its expression, hint and, if torch knows it, its range."""
    if isinstance(size, int):
        return size
    expression = size.node.expr
    if expression.is_number:
        return int(expression)
    low, high = _bounds(size)
    return Sym(str(expression), _hint(size), low, high)


def _hint(size: torch.SymInt) -> int | None:
    hint = size.node.hint if size.node.has_hint() else None
    return int(hint) if hint is not None and not isinstance(hint, torch.SymInt) else None


def _bounds(size: torch.SymInt) -> tuple[int | None, int | None]:
    if (environment := size.node.shape_env) is None:
        return None, None
    ranges = environment.bound_sympy(size.node.expr)
    if ranges is None:  # a nested tensor's ragged size has none
        return None, None
    low, high = (
        int(end) if end.is_Integer and abs(int(end)) < _NO_BOUND else None for end in (ranges.lower, ranges.upper)
    )
    return low, high
