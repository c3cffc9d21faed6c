"""What is known about the selected node, whole, one fact a line?"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from idbg.records import Graph, Kernel, Node, NodeId, Sym, TensorMeta, Violation
from idbg_tui.sheets import language_of
from idbg_tui.signs import MARKS, SEVERITY_SIGNS
from idbg_tui.state import State


@dataclass(frozen=True)
class Fact:
    """One line: a label, a text, and what enter goes to (a node, a kernel, or a line of the user's file)."""

    label: str
    text: str
    style: str = ""
    node: NodeId | None = None
    kernel: Kernel | None = None
    file: str = ""
    line: int = 0


def facts(state: State) -> list[Fact]:
    """All of them, the most asked for first; none where no node is selected."""
    graph, node = state.graph, state.node
    if graph is None or node is None:
        return []
    return [
        *_what(graph, node),
        *_violations(state.violations_of(graph.node_id(node.name))),
        *_where(node),
        *_neighbours(graph, "inputs", node.inputs),
        *_neighbours(graph, "users", graph.users.get(node.name, ())),
        *([Fact("args", node.args)] if node.args else []),
        *_kernels(state),
        *_elsewhere(state, graph, node),
        *_symbols(node),
    ]


def value_of(tensor: TensorMeta) -> str:
    """f32[1,64,56,56]  784 KiB  stride 200704,3136,56,1  cpu"""
    size = tensor.nbytes
    symbolic = any(isinstance(dim, Sym) for dim in tensor.shape)
    words = "size not known" if size is None else _bytes(size) + (" at the hints" if symbolic else "")
    stride = f"stride {','.join(map(str, tensor.stride))}" if tensor.stride else ""
    return "  ".join(part for part in (str(tensor), words, stride, tensor.device) if part)


def _what(graph: Graph, node: Node) -> Iterator[Fact]:
    role = [] if node.role == "intermediate" else [node.role]
    yield Fact("op", _dotted(node.target, node.op, *role, str(graph.id)), "strong")
    for index, tensor in enumerate(node.tensors):
        yield Fact("value" if index == 0 else "", value_of(tensor))
    if not node.tensors:
        yield Fact("value", "no tensor is known for it", "dim")


def _violations(violations: list[Violation]) -> Iterator[Fact]:
    for broken in violations:
        words = f"{broken.rule}: {broken.found}; wanted {broken.wanted}"
        yield Fact(f"{SEVERITY_SIGNS[broken.severity]} {broken.severity}", words, broken.severity)
        if broken.fix:
            yield Fact("", f"{MARKS['arrow']} {broken.fix}")
        if broken.source:
            yield Fact("", f"source {broken.source}", "dim")


def _where(node: Node) -> Iterator[Fact]:
    if node.file:
        place = f"{Path(node.file).name}:{node.line}"
        yield Fact("from", f"{place}  {node.code.strip()}".rstrip(), file=node.file, line=node.line)
    if node.module or node.module_class:
        yield Fact("module", f"{node.module}  {node.module_class}".strip())


def _neighbours(graph: Graph, label: str, names: tuple[str, ...]) -> Iterator[Fact]:
    if not names:
        yield Fact(label, "none", "dim")
    for index, name in enumerate(names):
        other = graph.by_name.get(name)
        value = str(other.tensor) if other and other.tensor else ""
        yield Fact(label if index == 0 else "", f"{name}  {value}".rstrip(), node=graph.node_id(name))


def _kernels(state: State) -> Iterator[Fact]:
    label = "kernels"
    for kernel, call in state.kernels:
        yield Fact(label, _dotted(kernel.name, language_of(kernel), f"wrapper line {call.line}"), kernel=kernel)
        label = ""


def _elsewhere(state: State, graph: Graph, node: Node) -> Iterator[Fact]:
    """The same computation in the frame's other graphs."""
    provenance, label = state.provenance, "also"
    for other in state.stages if provenance else ():
        same = provenance.counterparts(graph.node_id(node.name), other) if provenance and other != graph.id else []
        for place in same:
            yield Fact(label, _dotted(other.stage + (f" ({other.part})" if other.part else ""), place.name), node=place)
            label = ""


def _symbols(node: Node) -> Iterator[Fact]:
    label, seen = "sizes", set()
    for dim in (dim for tensor in node.tensors for dim in tensor.shape):
        if not isinstance(dim, Sym) or dim in seen:
            continue
        seen.add(dim)
        hint = "no hint" if dim.hint is None else f"is {dim.hint} here"
        low = "" if dim.low is None else f"{dim.low} <= "
        high = "" if dim.high is None else f" <= {dim.high}"
        yield Fact(label, _dotted(dim.expr, hint, f"guards allow {low}{dim.expr}{high}" if low or high else "any size"))
        label = ""


def _dotted(*parts: str) -> str:
    return f" {MARKS['separator']} ".join(part for part in parts if part)


def _bytes(count: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} B"
