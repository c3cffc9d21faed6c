"""Convert a graph module to a record."""

import re
from collections.abc import Iterator
from typing import cast

import msgspec
import torch
from torch.fx import GraphModule
from torch.fx import Node as FxNode

from idbg.analysis.graph_text import code_lines, returns_no_tensor
from idbg.engine.compat import fx, stages
from idbg.engine.compat.torch_types import tree_leaves
from idbg.schema.decisions.backends import NativeCall, NativeReason
from idbg.schema.graphs import Graph, GraphId, Node, Opcode, Role
from idbg.traces.enrich import with_weights

_VALUES = {"example_value", "val"}  # the keys of a node's value in `meta`
_USER_LINE = re.compile(r'File "(.+?)", line (\d+), in .*\n\s*(.*)')
_SELF = re.compile(r"^L\['\w+'\]\.?|^L__self__\.?|^self\.?")
_GLOBAL = re.compile(r"^G\['(\w+)'\]")
_INDEX = re.compile(r"\.?_modules\['(\w+)'\]|\[(\d+)\]")


def graph_of(gm: GraphModule, graph: GraphId, text: str = "") -> Graph:
    """The graph module as a record. `text` is its printed form, if the caller has it."""
    text = text or gm.print_readable(print_output=False, include_stride=True, include_device=True)
    lines = code_lines(text)
    outputs = {source.name for node in gm.graph.nodes if node.op == "output" for source in node.all_input_nodes}
    nodes: list[Node] = []
    storages: dict[int, int] = {}
    for node in gm.graph.nodes:
        nodes += _inner_nodes(gm, node, "", storages)
        nodes.append(_node(gm, node, storages, lines.get(node.name, 0), node.name in outputs))
    return with_weights(Graph(graph, tuple(nodes), text))


def _inner_nodes(gm: GraphModule, node: FxNode, prefix: str, storages: dict[int, int]) -> Iterator[Node]:
    """The nodes of a graph inside of this node, such as a branch of torch.cond: "true_graph_0.sin"."""
    inner = fx.inner_graph(gm, node)
    if inner is None:
        return
    prefix = f"{prefix}{node.name}."
    for below in inner.graph.nodes:
        yield from _inner_nodes(inner, below, prefix, storages)
        if below.op != "output":
            record = _node(inner, below, storages, 0, False)
            inputs = tuple(prefix + name for name in record.inputs)
            role: Role = "intermediate" if record.role == "input" else record.role  # the graph around it computed it
            yield msgspec.structs.replace(record, name=prefix + record.name, inputs=inputs, role=role)


def _node(gm: GraphModule, node: FxNode, storages: dict[int, int], code_line: int, is_output: bool) -> Node:
    module, module_class = _module(node)
    file, line, code = user_line(node.meta.get("stack_trace") or "")
    tensors = _tensors(node)
    memories = [fx.storage_of(tensor) for tensor in tensors]
    keywords = [f"{name} = {value!r}" for name, value in node.kwargs.items()]
    return Node(
        name=node.name,
        op=cast("Opcode", node.op),
        target=fx.qualified_target(node),
        args="" if node.op == "placeholder" else ", ".join([*map(repr, node.args), *keywords]),
        inputs=tuple(source.name for source in node.all_input_nodes),
        tensors=tuple(map(fx.tensor_meta, tensors)),
        module=module,
        module_class=module_class,
        file=file,
        line=line,
        code=code,
        role=_role(node, is_output),
        code_line=code_line,
        storages=tuple(storages.setdefault(memory, len(storages)) for memory, _ in memories),
        storage_bytes=tuple(size for _, size in memories),
        unknown=_is_unknown(gm, node),
    )


def _is_unknown(gm: GraphModule, node: FxNode) -> bool:
    if node.op == "output" or node.meta.keys() & _VALUES or fx.inner_graph(gm, node) is not None:
        return False
    return not (fx.returns_nothing(node.target) or returns_no_tensor(fx.qualified_target(node)))


def _tensors(node: FxNode) -> list[torch.Tensor]:
    if node.op == "output" or fx.argument_of(node).is_number:
        return []
    value = node.meta.get("example_value", node.meta.get("val"))
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _role(node: FxNode, is_output: bool) -> Role:
    if node.op == "output" or (is_output and node.op != "placeholder"):
        return "output"
    if node.op != "placeholder":
        return "intermediate"
    if node.name.startswith("tangents_"):
        return "tangent"
    if isinstance(node.meta.get("example_value"), torch.nn.Parameter):
        return "weight"
    return "buffer" if fx.argument_of(node).is_static else "input"


def _module(node: FxNode) -> tuple[str, str]:
    """The innermost user module that the node belongs to ("layer1.0.conv1") and its class ("Conv2d")."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    entries = list(stack.values())
    if not entries:
        return "", ""
    path, kind = entries[-1]
    name = kind if isinstance(kind, str) else kind.__name__
    return module_path(path), name.rpartition(".")[2]


def module_path(path: str) -> str:
    """The dotted path of `L['self'].layer1[0].conv1` or `L['fn']._modules['layer1']`.

    A module that is held as a global goes by that name: `G['encoder'][0]` is encoder.0.
    """
    dotted = _INDEX.sub(lambda match: "." + (match[1] or match[2]), _GLOBAL.sub(r"\1", _SELF.sub("", path)))
    return dotted.strip(".")


def native_call(node: FxNode, why: NativeReason, detail: str = "") -> NativeCall:
    """The record of a call that a backend leaves to eager."""
    file, line, _ = user_line(node.meta.get("stack_trace") or "")
    return NativeCall(node.name, fx.qualified_target(node), why, detail, file, line)


def user_line(stack: str) -> tuple[str, int, str]:
    """File, line and text of the innermost frame outside of torch; of the innermost frame if all are torch's, and
    ("", 0, "") without frames.
    """
    frames = _USER_LINE.findall(stack)
    if not frames:
        return "", 0, ""
    file, line, code = next((each for each in reversed(frames) if not stages.is_torchs(each[0])), frames[-1])
    return file, int(line), code.strip()
