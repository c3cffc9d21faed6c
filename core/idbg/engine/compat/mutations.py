"""Find the nodes whose memory an op writes to: custom ops that mutate arguments, Triton kernels of users."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from torch.fx import Node
from torch.fx.node import map_arg

if TYPE_CHECKING:
    from torch._inductor.ir import Buffer, Operation

from idbg.engine.compat.fx import is_computed, op_name
from idbg.engine.compat.names import find, instead_of, internals

TRITON = "triton_kernel_wrapper_mutation"
"""The op of a graph that launches a Triton kernel of the user's own."""


def changed_by(operation: "Operation") -> Iterator[tuple[str, Node]]:
    """Each buffer that an extern op writes to, and the node whose value it holds before.

    Inductor may copy the argument to another layout for the op; it notes no node of such a buffer.
    """
    node: Node | None = getattr(operation, "fx_node", None)
    mutations = cast("list[Buffer]", getattr(operation, "mutation_outputs", []))
    if node is None or not mutations:
        return
    names = [name for mutation in mutations for name in mutation.get_mutation_names()]
    kwargs = node.kwargs.get("kwargs")
    if isinstance(kwargs, Mapping):  # a Triton kernel's arguments, by the kernel's own names
        own = cast("Mapping[str, Any]", getattr(operation, "kwargs", {}))
        places = {_name_of(own.get(key)): value for key, value in kwargs.items() if isinstance(value, Node)}
        yield from ((name, _base(places[name])) for name in names if name in places)
        return
    written = list(written_nodes(node))
    if len(written) == len(names):
        yield from ((name, _base(argument)) for name, argument in zip(names, written, strict=True))


def written_nodes(node: Node) -> Iterator[Node]:
    """The arguments that an op or a Triton kernel writes to, in the order of its schema; those of a list one by one."""
    if op_name(node.target) == TRITON:
        yield from _written_by_triton(node)
    if not isinstance(node.target, internals._ops.OpOverload):
        return
    for at, argument in enumerate(node.target._schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        found: list[Node] = []
        map_arg(node.args[at] if at < len(node.args) else node.kwargs.get(argument.name), found.append)
        yield from found


@instead_of(None)
def triton_kernel(node: Node) -> object | None:
    """The user's kernel that a node launches, without its autotuner and heuristics; None of any other node."""
    if op_name(node.target) != TRITON:
        return None
    return jit_function(
        internals._higher_order_ops.triton_kernel_wrap.kernel_side_table.get_kernel(
            cast("int", node.kwargs["kernel_idx"])
        )
    )


def jit_function(kernel: object) -> object | None:
    """The Triton function without its decorators (autotune, heuristics); None for other objects."""
    while kernel is not None and type(kernel).__name__ != "JITFunction":
        kernel = getattr(kernel, "fn", None)
    return kernel


def triton_arguments(node: Node, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """All arguments of a Triton kernel by its own names: these tensors and numbers, and its constants."""
    constants = internals._higher_order_ops.triton_kernel_wrap.kernel_side_table.get_constant_args(
        cast("int", node.kwargs["constant_args_idx"])
    )
    return {**constants, **kwargs}


def name_of_op(op: object) -> str:
    """The name of an op, of its packet, or of a `torch.library.custom_op` ("my::op"); "" for others."""
    if isinstance(op, internals._ops.OpOverloadPacket):
        return str(op._qualified_op_name).removeprefix("aten::")
    return op_name(op._opoverload if isinstance(op, internals._library.custom_ops.CustomOpDef) else op)


def kernels_of_triton_op(name: str) -> tuple[str, ...] | None:
    """The names of the Triton kernels in an op that `torch.library.triton_op` made ("my::op"), as far as torch finds
    them in its source; None of any other op.
    """
    held = find("torch._library.triton.triton_ops_to_kernels", {}).get(name)
    return None if held is None else tuple(str(getattr(jit_function(each), "__name__", each)) for each in held)


def _written_by_triton(node: Node) -> Iterator[Node]:
    kwargs = cast("Mapping[str, Any]", node.kwargs["kwargs"])
    fakes = {key: value.meta.get("val") if isinstance(value, Node) else value for key, value in kwargs.items()}
    index, constants = (cast("int", node.kwargs[key]) for key in ("kernel_idx", "constant_args_idx"))
    metadata = cast("Any", node.kwargs.get("tma_descriptor_metadata") or {})
    for name in internals._higher_order_ops.triton_kernel_wrap.get_mutated_tensors(index, constants, fakes, metadata):
        yield kwargs[name]


def _base(node: Node) -> Node:
    """The node that a view is of."""
    while node.op == "call_function" and node.all_input_nodes and not is_computed(node.target):
        node = node.all_input_nodes[0]
    return node


def _name_of(value: Any) -> str:
    """The name of a buffer, also of a boxed one; "" for others."""
    name = getattr(value, "get_name", None)
    return str(name()) if name is not None else ""
