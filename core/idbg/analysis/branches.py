"""Find the nodes of a kernel that is called in a subgraph: a branch of torch.cond, the body of a loop.

Torch names a kernel's nodes by their bare names ("sin"), whatever graph they are in. In a branch it also lists those
of the graph around it: the op that holds the branch, and what that op is given. The function of the output code in
which a kernel is called tells the branch.
"""

import ast
from collections import defaultdict
from collections.abc import Mapping

from msgspec.structs import replace

from idbg.schema.code import Kernel, KernelCall, OutputCode
from idbg.schema.graphs import Graph, Node

_Prefixes = Mapping[str, list[str]]  # a function of the code -> the prefixes of the nodes that it computes


def resolved(code: OutputCode, graph: Graph) -> OutputCode:
    """The code of this post-grad graph, with its kernels' nodes named as the graph names them."""
    prefixes = _prefixes(graph)
    scopes = _scopes(code.text) if prefixes else []

    def call(each: KernelCall) -> KernelCall:
        function = next((name for first, last, name in scopes if first <= each.line <= last), "")
        if function not in prefixes:
            return replace(each, nodes=tuple(name for name in each.nodes if name in graph.by_name))
        names = [name for prefix in prefixes[function] for name in _computed(each.nodes, prefix, graph)]
        return replace(each, nodes=tuple(dict.fromkeys(names)))

    def kernel(each: Kernel) -> Kernel:
        return replace(each, calls=tuple(map(call, each.calls)))

    return replace(code, kernels=tuple(map(kernel, code.kernels)))


def _prefixes(graph: Graph) -> _Prefixes:
    """Inductor calls a graph's function by the attributes that lead to it: `true_graph_0_false_graph_0`.

    Nodes that hold the same graph share its function.
    """
    holders = {node.name.rpartition(".")[0] for node in graph.nodes} - {""}
    prefixes: defaultdict[str, list[str]] = defaultdict(list)
    for holder in sorted(holders):
        above = holder.split(".")
        targets = [graph.by_name[".".join(above[: depth + 1])].target for depth in range(len(above))]
        prefixes["_".join(targets)].append(f"{holder}.")
    return prefixes


def _scopes(text: str) -> list[tuple[int, int, str]]:
    """(first line, last line, name) of each function of the code."""
    return [
        (statement.lineno, statement.end_lineno or statement.lineno, statement.name)
        for statement in ast.parse(text).body
        if isinstance(statement, ast.FunctionDef)
    ]


def _computed(names: tuple[str, ...], prefix: str, graph: Graph) -> list[str]:
    """The nodes below `prefix` that these names stand for, and the op that holds them.

    A name that is also one of the op's own operands is listed for every kernel of the branch: it counts where the
    kernel computes a neighbour of that node, or nothing else.
    """
    outer = prefix[:-1].rpartition(".")[0]
    holders = [node for node in graph.nodes if prefix[:-1] in node.inputs]
    listed = {source for holder in holders for source in (holder.name, *holder.inputs)}
    inside = [node for name in names if (node := graph.by_name.get(prefix + name)) and _is_computed(node)]
    sure = {node.name for node in inside if _bare(node.name, prefix, outer) not in listed}

    def counts(node: Node) -> bool:
        users = (graph.by_name[name] for name in sure)
        return (
            not sure
            or node.name in sure
            or bool(sure & set(node.inputs))
            or any(node.name in user.inputs for user in users)
        )

    return [*(node.name for node in inside if counts(node)), *(holder.name for holder in holders)]


def _bare(name: str, prefix: str, outer: str) -> str:
    """What a node of the graph around would be called that has this node's own name."""
    own = name.removeprefix(prefix)
    return f"{outer}.{own}" if outer else own


def _is_computed(node: Node) -> bool:
    return node.op.startswith("call") and not node.target.startswith("higher_order.")
