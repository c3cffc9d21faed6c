"""Find the post-grad node of each extern call, in code that Inductor wrote without tracking provenance.

Above such a call stands "# Topologically Sorted Source Nodes: [view, linear], Original ATen: [aten.view, aten.addmm]".
The last name is the node that the call computes: of a backward in ATen's graph, else in Dynamo's.
"""

import re
from collections import defaultdict
from collections.abc import Sequence

from msgspec.structs import replace

from idbg.schema.code import Kernel, KernelCall, OutputCode
from idbg.schema.graphs import Graph, Node

_SOURCES = re.compile(r"\s*(?:#|//) Topologically Sorted Source Nodes: \[(.+?)\]")
_ABOVE = 3  # lines above the call within which its comment stands
_IN_CPP = re.compile(r"aoti_torch_[a-z0-9]+?_(\w+?)(?:_out)?$")


def with_extern_nodes(code: OutputCode, graph: Graph, dynamo: Graph | None) -> OutputCode:
    """The code of this post-grad graph, with the nodes of those extern calls that have none. Nothing is guessed: where
    a comment could mean several nodes, the call stays without.
    """
    open_calls = [(kernel, call) for kernel in code.kernels if kernel.language == "extern" for call in kernel.calls]
    if not open_calls or any(call.nodes for _, call in open_calls):
        return code
    lines = code.text.split("\n")
    by_op: defaultdict[str, list[tuple[KernelCall, str]]] = defaultdict(list)
    for kernel, call in open_calls:
        if source := _source_above(lines, call.line):
            by_op[_op(kernel.name)].append((call, source))
    found = {
        call.handle: node
        for op, calls in by_op.items()
        for call, node in _nodes(calls, _of_op(graph, op), dynamo if code.part != "backward" else None)
    }

    def completed(kernel: Kernel) -> Kernel:
        calls = [replace(call, nodes=(found[call.handle],)) if call.handle in found else call for call in kernel.calls]
        return replace(kernel, calls=tuple(calls))

    return replace(code, kernels=tuple(map(completed, code.kernels)))


def _nodes(
    calls: Sequence[tuple[KernelCall, str]], nodes: Sequence[Node], dynamo: Graph | None
) -> list[tuple[KernelCall, str]]:
    """The calls of one op with the nodes of that op. Nodes of Dynamo's graph and of this one are in the same order:
    each pair has to be of the same line, too.
    """
    if len(calls) == len(nodes) == 1:
        return [(calls[0][0], nodes[0].name)]
    sources = {source for _, source in calls}
    if dynamo is None:
        return list(calls) if len(sources) == len(calls) and sources <= {node.name for node in nodes} else []
    order = {node.name: at for at, node in enumerate(dynamo.nodes)}
    if len(calls) != len(nodes) or not sources <= order.keys():
        return []
    ordered = sorted(calls, key=lambda each: order[each[1]])
    above = (dynamo.by_name[source] for _, source in ordered)
    return [
        (call, node.name)
        for (call, _), node, source in zip(ordered, nodes, above, strict=True)
        if (node.file, node.line) == (source.file, source.line)
    ]


def _source_above(lines: Sequence[str], call: int) -> str:
    """The last name in the comment above the call at this line, which is 1-based; "" where there is none."""
    for line in reversed(lines[max(call - 1 - _ABOVE, 0) : call - 1]):
        if (found := _SOURCES.match(line)) is not None:
            return found[1].rpartition(",")[2].strip()
    return ""


def _op(kernel: str) -> str:
    """The op that an extern call is of: "addmm" of extern_kernels.addmm, and of aoti_torch_cpu_addmm_out."""
    if (in_cpp := _IN_CPP.match(kernel)) is not None:
        return in_cpp[1]
    return kernel.removeprefix("extern_kernels.").removeprefix("torch.ops.")


def _of_op(graph: Graph, op: str) -> list[Node]:
    """The nodes of the graph that call this op, in any overload: "aten.mm.default" and the like."""
    return [
        node
        for node in graph.nodes
        if node.op == "call_function" and (node.target == op or _packet(node.target) in (op, _packet(op)))
    ]


def _packet(target: str) -> str:
    """The op without its namespace and its overload."""
    parts = target.split(".")
    return parts[1] if len(parts) > 2 else parts[-1]
