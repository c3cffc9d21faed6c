"""Compile a graph into a library with AOTInductor, and call it."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast
from unittest import mock

import torch
from torch.fx import GraphModule, Node

from idbg.engine.compat.lowering import Compiler
from idbg.engine.compat.names import internals

Library = Callable[[list[torch.Tensor]], list[torch.Tensor]]
"""Runs a compiled graph: tensors in, tensors out."""


def holding(gm: GraphModule, constants: Mapping[str, torch.Tensor]) -> GraphModule:
    """A copy of Dynamo's graph with these arguments as attributes, and sizes taken from its tensors. Raises
    LookupError, with the argument's name, for a number that is no size of a tensor.
    """
    held = GraphModule(gm, _copied(gm))
    held.meta = dict(gm.meta)
    for name, value in constants.items():
        held.register_buffer(name, value.detach())
    graph = held.graph
    arguments = [node for node in graph.nodes if node.op == "placeholder"]
    tensors = [node for node in arguments if isinstance(value_of(node), torch.Tensor)]
    body = next(node for node in graph.nodes if node.op != "placeholder")
    for node in arguments:
        with graph.inserting_before(body):
            if node.name in constants:
                made = graph.get_attr(node.name)
            elif isinstance(value_of(node), torch.Tensor):
                continue
            elif not node.users:
                graph.erase_node(node)
                continue
            else:
                tensor, dim = _size_source(node, tensors)
                made = graph.call_function(torch.ops.aten.sym_size.int, (tensor, dim))
        made.meta = {key: value for key, value in node.meta.items() if key not in ("grapharg", "tensor_dict")}
        node.replace_all_uses_with(made)
        graph.erase_node(node)
    held.recompile()
    return held


def changed_constants(gm: GraphModule) -> list[str]:
    """The constants to which an ATen graph writes."""
    written = (node.args[0] for node in gm.graph.nodes if node.target is torch.ops.aten.copy_.default)
    return [str(node.target) for node in written if isinstance(node, Node) and node.op == "get_attr"]


def value_of(node: Node) -> object:
    """The fake value that Dynamo noted of a node."""
    return node.meta.get("example_value")


def _size_source(number: Node, tensors: Sequence[Node]) -> tuple[Node, int]:
    """A tensor with a size that is this number, and which of its sizes."""
    wanted = value_of(number)
    for tensor in tensors:
        for dim, size in enumerate(cast("torch.Tensor", value_of(tensor)).shape):
            if _expression(size) is not None and _expression(size) == _expression(wanted):
                return tensor, dim
    raise LookupError(number.name)


def _expression(size: object) -> object:
    """The expression of a symbolic size; None for a plain number."""
    return size.node.expr if isinstance(size, torch.SymInt) else None


def _copied(gm: GraphModule) -> torch.fx.Graph:
    graph = torch.fx.Graph()
    output = graph.graph_copy(gm.graph, {}, return_output_node=True)
    assert output is not None
    value, node = cast("tuple[object, Node]", output)
    graph.output(value).meta = dict(node.meta)  # type: ignore[arg-type]
    return graph


def compile_aot(gm: GraphModule, inputs: list[object], inner: Compiler, options: Mapping[str, object]) -> str:
    """Compile the graph to a library, with `inner` called on its ATen graph. `inputs` are fake."""
    with torch.no_grad(), _constants_allowed(inputs):
        made = cast("Callable[..., object]", internals._inductor.compile_fx.compile_fx_aot)(
            gm, inputs, inner_compile=inner, config_patches=dict(options)
        )
    files = [made] if isinstance(made, str) else cast("list[object]", made)
    return next(file for file in files if isinstance(file, str) and file.endswith((".so", ".pyd")))


@contextlib.contextmanager
def _constants_allowed(inputs: Sequence[object]) -> Iterator[None]:
    """While it lasts, real constants are allowed beside fake inputs, as with torch.export."""
    mode = internals._guards.detect_fake_mode(list(inputs))
    if mode is None:
        yield
        return
    with mock.patch.object(mode, "allow_non_fake_inputs", True):
        yield


def load(library: str, device: torch.device) -> Library:
    """The compiled graph, to be called with its tensors on that device."""
    aoti = internals._C._aoti
    if device.type == "cpu":
        return cast("Library", aoti.AOTIModelContainerRunnerCpu(library, 1).run)
    runner = getattr(aoti, f"AOTIModelContainerRunner{device.type.capitalize()}")
    return cast("Library", runner(library, 1, str(device)).run)
