"""How is one failure shown again, in a script that stands alone?

A repro is a folder: `repro.py`, the values it needs in `tensors.safetensors`, and the rules in force in
`rules.toml`. For a violation it holds the violating node alone, with the node's inputs as arguments; for a failed
compile the whole Dynamo graph.
"""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.fx import Interpreter
from torch.fx import Node as FxNode

from idbg import __version__, accelerator
from idbg.constraints import Constraint
from idbg.engine import compat
from idbg.engine.capture.run import Held, RunCapture
from idbg.engine.repro_script import Input, render
from idbg.errors import OutputError
from idbg.records import Graph, GraphId, Node, NodeId, TensorMeta, Violation, hint_of

_IDENTITY = "torch.ops.aten.clone.default"


@dataclass(frozen=True)
class Values:
    """The values of a repro's inputs; `note` says where they are from."""

    of: Mapping[str, object]
    note: str


def violation_repro(capture: RunCapture, violation: Violation, *, rules: str, folder: Path) -> Path:
    """Write a repro of one violation below `folder` and return the script's path.

    Raises ValueError where the node cannot stand alone, OutputError where the folder cannot be written.
    """
    graph = _graph(capture, violation.node)
    node = graph.by_name[violation.node.name]
    cut = _cut(graph, node, next(rule for rule in accelerator.parse(rules).rules if rule.name == violation.rule))
    values = _values(capture, graph, cut.inputs)
    tensors, arguments = _arguments(cut.inputs, values)
    place = _new_folder(folder, f"{violation.rule}-{node.name}")
    script = render(
        title=f"{violation.rule}: {violation.node.name} ({node.target}): {violation.found}, wanted {violation.wanted}",
        source=f"{violation.file}:{violation.line}" if violation.file else "",
        versions=_versions(),
        values=values.note,
        arguments=arguments,
        statements=cut.statements,
        result=cut.result,
        rule=violation.rule,
    )
    return _write(place, script, tensors, rules)


def compile_repro(
    capture: RunCapture, *, error: str, message: str, backend: str, rules: str, strict: bool, folder: Path
) -> Path:
    """Write a repro of a compile that failed with the exception type `error`: the last Dynamo graph, compiled again.

    Raises ValueError where no graph was captured or it cannot be written as plain Python, OutputError.
    """
    graph = _last_dynamo(capture)
    if graph is None:
        raise ValueError("the compile failed before Dynamo had a graph: the program itself is the smallest repro")
    inputs = [node for node in graph.nodes if node.op in ("placeholder", "get_attr")]
    values = _values(capture, graph, inputs)
    place = _new_folder(folder, f"failed-{error}")
    tensors, arguments = _arguments(inputs, values, _trained(capture, graph))
    output = next((node for node in graph.nodes if node.op == "output"), None)
    script = render(
        title=f"{error}: {message.splitlines()[0] if message else ''}",
        source="",
        versions=_versions(),
        values=values.note,
        arguments=arguments,
        statements=[_statement(call) for call in _calls(graph)],
        result=output.args if output else "None",
        error=error,
        backend=backend,
        strict=strict,
    )
    return _write(place, script, tensors, rules)


@dataclass(frozen=True)
class _Cut:
    """What of a graph a repro holds."""

    inputs: list[Node]
    statements: list[str]
    result: str


def _cut(graph: Graph, node: Node, rule: Constraint) -> _Cut:
    """The node alone; the whole graph for a rule about whole graphs."""
    if rule.is_about_graphs:
        output = next((node for node in graph.nodes if node.op == "output"), None)
        inputs = [node for node in graph.nodes if node.op in ("placeholder", "get_attr")]
        return _Cut(inputs, [_statement(call) for call in _calls(graph)], output.args if output else "None")
    if not node.op.startswith("call"):
        return _Cut([node], [f"result = {_IDENTITY}({_name(node.name)})"], "result")
    steps = _steps(graph, node)
    inside = {step.name for step in steps}
    names = dict.fromkeys(name for step in steps for name in step.inputs if name not in inside)
    statements, result = [_statement(step) for step in steps], _name(node.name)
    if node.role == "intermediate" and rule.roles and len(node.tensors) == 1:
        statements.append(f"result = {_IDENTITY}({result})")  # what the program returns is an output to the rule
        result = "result"
    return _Cut([graph.by_name[name] for name in names], statements, result)


def _calls(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op.startswith("call")]


def _graph(capture: RunCapture, node: NodeId) -> Graph:
    frame = capture.frames.get(node.graph.frame)
    graph = frame.graphs.get(node.graph) if frame else None
    if graph is None or node.name not in graph.by_name:
        raise ValueError(f"the worker holds no node {node.name} of graph {node.graph}: run the program again first")
    return graph


def _steps(graph: Graph, node: Node) -> list[Node]:
    """The node, after those that make the tuples it takes from: a tuple is no argument that could be stored."""
    before: list[Node] = []
    for name in node.inputs:
        source = graph.by_name[name]
        if source.op.startswith("call") and len(source.tensors) > 1:
            before += [step for step in _steps(graph, source) if step not in before]
    return [*before, node]


def _last_dynamo(capture: RunCapture) -> Graph | None:
    graphs = [
        graph for frame in capture.frames.values() for graph in frame.graphs.values() if graph.id.stage == "dynamo"
    ]
    return graphs[-1] if graphs else None


# Python text


def _name(name: str) -> str:
    """A node's name as Python's; of a node inside of another ("true_graph_0.sin") its own part."""
    return re.sub(r"\W", "_", name.rpartition(".")[2])


def _statement(node: Node) -> str:
    """The node as one line of Python. Raises ValueError for what only a graph module can call."""
    if node.op == "call_method":
        owner, _, rest = node.args.partition(", ")
        return f"{_name(node.name)} = {owner}.{node.target}({rest})"
    if node.op == "call_module" or node.target.startswith(("torch.ops.higher_order", "higher_order")):
        raise ValueError(
            f"{node.name} calls {node.target}, which needs its graph module: it cannot stand alone in a script"
        )
    target = node.target if node.target.startswith(_ROOTS) else f"torch.ops.{node.target}"
    op = "::".join(node.target.removeprefix("torch.ops.").split(".")[:2])
    if op in compat.python_ops():
        raise ValueError(f"{node.name} calls {op}, a custom op of the program's own, which a script without it has not")
    args = re.sub(r"<built-in function (\w+)>", r"operator.\1", node.args)
    return f"{_name(node.name)} = {target}({args})"


_ROOTS = ("torch.", "operator.", "math.", "builtins.", "einops.", "numpy.")


# Values


def _values(capture: RunCapture, graph: Graph, inputs: Sequence[Node]) -> Values:
    """The program's own values of these nodes where the graph can be run again, else random ones of the same shapes."""
    held = capture.held.get(graph.id) or capture.held.get(GraphId(graph.id.frame, "dynamo"))
    wanted = [node.name for node in inputs]
    if held is None or held is not capture.held.get(graph.id) or not held.inputs:
        reason = f"the values of a {graph.id.stage} graph's inputs are not known"
        return Values(_random(inputs), f"random, seed 0: {reason}")
    try:
        found = _recomputed(held, wanted)
    except (RuntimeError, TypeError, ValueError, KeyError, AttributeError, NotImplementedError) as error:
        return Values(
            _random(inputs),
            f"random, seed 0: the program's own could not be computed again ({error})".replace("\n", " "),
        )
    return Values(found, "the program's own, computed again from its inputs and weights")


class _Ancestors(Interpreter):
    """Runs just the nodes that the wanted ones need."""

    def __init__(self, held: Held, wanted: Iterable[str]) -> None:
        super().__init__(held.gm, garbage_collect_values=False)
        by_name = {node.name: node for node in held.gm.graph.nodes}
        self.found: dict[str, object] = {}
        self.wanted = set(wanted)
        self.needed: set[FxNode] = set()
        stack = [by_name[name] for name in self.wanted]
        while stack:
            node = stack.pop()
            if node not in self.needed:
                self.needed.add(node)
                stack += node.all_input_nodes

    def run_node(self, n: FxNode) -> object:
        if n.op != "placeholder" and n not in self.needed:
            return None
        value = compat.concrete(super().run_node(n))
        if n.name in self.wanted:
            self.found[n.name] = (
                value.detach().clone() if isinstance(value, torch.Tensor) and _is_dense(value) else value
            )
        return value


def _is_dense(value: torch.Tensor) -> bool:
    return bool(torch.ops.aten.is_non_overlapping_and_dense(value))


def _recomputed(held: Held, wanted: Iterable[str]) -> dict[str, object]:
    runner = _Ancestors(held, wanted)
    inputs = [
        value.detach().clone() if isinstance(value, torch.Tensor) and _is_dense(value) else value
        for value in held.inputs
    ]
    with torch.no_grad(), torch.random.fork_rng():
        runner.run(*inputs)
    missing = set(wanted) - runner.found.keys()
    if missing:
        raise KeyError(", ".join(sorted(missing)))
    return runner.found


def _random(inputs: Iterable[Node]) -> dict[str, object]:
    generator = torch.Generator().manual_seed(0)
    found: dict[str, object] = {}
    for node in inputs:
        if node.tensor is None:
            raise ValueError(f"{node.name} is no tensor and its value is not known: run the program again first")
        found[node.name] = _random_tensor(node.tensor, generator)
    return found


def _random_tensor(meta: TensorMeta, generator: torch.Generator) -> torch.Tensor:
    shape, stride = ([hint_of(dim) or 0 for dim in dims] for dims in (meta.shape, meta.stride))
    if len(stride) != len(shape):
        raise ValueError(f"the strides of a {meta} were not recorded")
    dtype: torch.dtype = getattr(torch, meta.dtype)
    room = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True)) if all(shape) else 0
    flat = torch.randn(max(room, 1), generator=generator)
    if dtype == torch.bool:
        flat = flat > 0
    elif dtype.is_floating_point or dtype.is_complex:
        flat = flat.to(dtype)
    else:
        flat = torch.zeros_like(flat, dtype=dtype)  # 0 is an index into anything
    return flat.as_strided(shape, stride)


def _trained(capture: RunCapture, graph: Graph) -> set[str]:
    """Arguments that gradients are wanted of: with them, a repro compiles the backward too."""
    held = capture.held[graph.id]
    names = [node.name for node in graph.nodes if node.op == "placeholder"]
    pairs = zip(names, held.inputs, strict=False) if held.grad_enabled else ()
    return {name for name, value in pairs if isinstance(value, torch.Tensor) and value.requires_grad}


def _arguments(
    inputs: Sequence[Node], values: Values, trained: Container[str] = ()
) -> tuple[dict[str, torch.Tensor], list[Input]]:
    """What goes into the safetensors file (flat storage, so that strides, also overlapping ones, come back), and the
    arguments.
    """
    tensors: dict[str, torch.Tensor] = {}
    arguments: list[Input] = []
    for node in inputs:
        value = values.of[node.name]
        name = _name(node.name)
        if isinstance(value, torch.Tensor):
            tensors[name] = _flat(value)
            place = str(value.device)
            known = tuple(value.shape), tuple(value.stride()), place
            is_weight = node.role in ("weight", "buffer") and node.name not in trained
            arguments.append(Input(name, *known, requires_grad=node.name in trained, is_weight=is_weight))
        elif isinstance(value, (bool, int, float, str)) or value is None:
            arguments.append(Input(name, literal=repr(value)))
        else:
            raise ValueError(f"{node.name} is a {type(value).__name__}, which a repro cannot store")
    return tensors, arguments


def _flat(value: torch.Tensor) -> torch.Tensor:
    value = value.detach()
    room = (
        1 + sum((size - 1) * step for size, step in zip(value.shape, value.stride(), strict=True))
        if value.numel()
        else 0
    )
    return value.as_strided((room,), (1,)).clone().cpu()


# Files


def _versions() -> str:
    return f"idbg {__version__}, torch {torch.__version__}"


def _new_folder(parent: Path, name: str) -> Path:
    safe = re.sub(r"[^\w.-]", "_", name)[:80]
    try:
        for number in range(1, 10_000):
            folder = parent / (safe if number == 1 else f"{safe}-{number}")
            try:
                folder.mkdir(parents=True)
            except FileExistsError:
                continue
            return folder
    except OSError as error:
        raise OutputError(
            f"the repro folder {parent} cannot be written: {error.strerror}", hint="choose another with --output"
        ) from error
    raise OutputError(f"{parent} holds 10,000 repros of {name} already", hint="delete some")


def _write(folder: Path, script: str, tensors: Mapping[str, torch.Tensor], rules: str) -> Path:
    try:
        save_file(dict(tensors), folder / "tensors.safetensors")
        (folder / "rules.toml").write_text(rules, encoding="utf-8")
        path = folder / "repro.py"
        path.write_text(script, encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"the repro in {folder} cannot be written: {error.strerror}",
            hint="free some space, or choose another folder with --output",
        ) from error
    return path
