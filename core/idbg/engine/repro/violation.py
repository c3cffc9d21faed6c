"""Write a repro of one violation: the violating node alone, or the graph that breaks a rule about graphs."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path

import torch
from msgspec.structs import replace
from torch.fx import GraphModule

from idbg import __version__
from idbg.accelerators.model import Accelerator
from idbg.accelerators.parse import parse, unparse
from idbg.constraints import Constraint, check
from idbg.constraints.base import TensorRule
from idbg.engine.capture.run import RunCapture
from idbg.engine.repro.definitions import Definitions, Needed, definitions_for, files_of
from idbg.engine.repro.draft import MARK, Breaks, Candidate, Draft, Heading, Input, Subject
from idbg.engine.repro.files import new_folder, write
from idbg.engine.repro.higher_order import GIVE_TUPLES
from idbg.engine.repro.script import render
from idbg.engine.repro.source import IDENTITY, NodeSource, commented, is_function, name_of
from idbg.engine.repro.values import arguments, recorder_of, requires_grad, sizes_of, values
from idbg.schema.errors import BadInput
from idbg.schema.graphs import Graph, Node, NodeId, Sym
from idbg.schema.repros import Signature
from idbg.schema.violations import Violation, problem

VERSIONS = f"idbg {__version__} and torch {torch.__version__}"


def violation_repro(capture: RunCapture, violation: Violation, *, rules: str, folder: Path) -> Path:
    """Write a repro of one violation below `folder` and return the script's path.

    Raises ValueError if the node cannot stand alone, OutputError if the folder cannot be written.
    """
    candidate = violation_candidate(capture, violation, rules)
    place = new_folder(folder, f"{violation.rule}-{violation.node.name}")
    return write(place, render(candidate.draft, candidate.heading), candidate.tensors())


def violation_candidate(capture: RunCapture, violation: Violation, rules: str) -> Candidate:
    """The script of one violation: the node alone, or the whole graph for a rule about graphs.

    Raises ValueError if the node cannot stand alone.
    """
    graph = graph_of_node(capture, violation.node)
    node = graph.by_name[violation.node.name]
    rule = next(rule for rule in parse(rules).rules if rule.name == violation.rule)
    held = capture.saved_graphs.get(graph.id)
    cut = SubgraphExtractor(graph, held.gm if held else None, sizes_of(capture, graph)).cut(node, rule)
    wanted = {each.name: cut.readers.get(each.name, "") for each in cut.inputs}
    known = values(capture, graph, wanted, recorder_of(capture, graph))
    tensors, inputs = arguments(cut.inputs, known, cut.trained)
    inputs = [_as_array(argument) if argument.name in cut.arrays else argument for argument in inputs]
    needed = Needed(frozenset(cut.ops), tuple(cut.objects))
    travels = definitions_for(needed, files_of(capture)) if cut.ops or cut.objects else Definitions()
    subject: Subject = "graph" if rule.is_about_graphs else "node" if node.op.startswith("call") else "input"
    draft = Draft(
        Breaks(rule.name, subject, node.target),
        tuple(inputs),
        tuple(cut.statements),
        cut.result,
        'backend="mock"',
        known.note,
        frozenset(cut.imports) | travels.imports,
        (*travels.sources, *cut.definitions),
        rules=_unscoped(rules, rule, graph, node),
    )
    note = f"It needs idbg ({__version__}): the rule is one of its mock backend's."
    heading = Heading(
        f"{violation.rule}: {violation.node.name} ({node.target}): {problem(violation.found, violation.wanted)}",
        VERSIONS,
        source=f"{violation.file}:{violation.line}" if violation.file else "",
        note=" ".join((note, *travels.notes)),
        signature=Signature("violation", type=rule.name, message=node.target),
    )
    return Candidate(draft, heading, lambda: tensors)


def _as_array(argument: Input) -> Input:
    return argument if argument.literal else dataclasses.replace(argument, is_array=True, dynamic=())


@dataclass(frozen=True)
class Subgraph:
    """The part of a graph that a repro holds. `readers`: the reader of each computed input; `trained`: the inputs that
    must require grad.
    """

    inputs: list[Node]
    statements: list[str]
    result: str
    arrays: set[str] = field(default_factory=set)
    imports: set[str] = field(default_factory=set)
    definitions: list[str] = field(default_factory=list)
    ops: set[str] = field(default_factory=set)
    objects: list[object] = field(default_factory=list)
    readers: dict[str, str] = field(default_factory=dict)
    trained: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class SubgraphExtractor:
    """Extracts from a graph what a repro needs; `arrays` are the arguments that are NumPy arrays."""

    graph: Graph
    module: GraphModule | None
    sizes: dict[str, Sym]
    arrays: set[str] = field(default_factory=set)

    def cut(self, node: Node, rule: Constraint) -> Subgraph:
        """The node alone, or the whole graph for a rule about graphs."""
        if rule.is_about_graphs:
            return self.whole()
        if not node.op.startswith("call"):
            return Subgraph([node], [f"result = {IDENTITY}({name_of(node.name)})"], "result")
        return self._alone(node, rule)

    def whole(self) -> Subgraph:
        """The graph from its inputs to its output, with the program's lines as comments."""
        source = NodeSource(self.module, set(map(name_of, self.arrays)))
        own = [node for node in self.graph.nodes if "." not in node.name]
        inputs = [node for node in own if node.op in ("placeholder", "get_attr") and not self.is_function(node)]
        inputs, lines = self.sized(inputs)
        last = ""
        for node in own:
            if node.op.startswith("call") or self.is_function(node):
                more, last = commented(node, source.statements(node), last)
                lines += more
        output = next((node for node in own if node.op == "output"), None)
        return Subgraph(inputs, lines, output.args if output else "None", set(), *source.needs)

    def _alone(self, node: Node, rule: Constraint) -> Subgraph:
        steps = self._steps(node)
        inside = {step.name for step in steps}
        readers = {name: step.name for step in reversed(steps) for name in step.inputs if name not in inside}
        names = dict.fromkeys(name for step in steps for name in step.inputs if name not in inside)
        inputs, lines = self.sized([self.graph.by_name[name] for name in names])
        source = NodeSource(self.module)
        if source.numpy(node):
            source.arrays |= (arrays := {name_of(each.name) for each in inputs})
        else:
            arrays = set()
        makes = {name for name in node.inputs if self._is_tuple(self.graph.by_name[name])}
        for step in steps:
            *before, last = source.statements(step) or [""]
            lines += [*before, last + (MARK if step is node or step.name in makes else "")] if last else []
        result = name_of(node.name)
        if not any(line.lstrip().startswith(f"{result} =") for line in lines):  # no result, as of `x[0] = y`
            result = f"({', '.join(map(name_of, node.inputs))},)"
        if node.role == "intermediate" and rule.roles and len(node.tensors) == 1:
            copy = "numpy.copy" if result in source.arrays else IDENTITY
            lines.append(f"result = {copy}({result})")  # the rule sees what the program returns as an output
            result = "result"
        applies_a_class = any(step.target.endswith("autograd_function_apply") for step in steps)
        trained = self._requiring_grad(inputs) if applies_a_class else set()
        return Subgraph(inputs, lines, result, arrays, *source.needs, readers, trained)

    def _requiring_grad(self, inputs: list[Node]) -> set[str]:
        """The inputs that require grad in the program: without a gradient, Dynamo inlines the autograd class."""
        live = self.module.graph.nodes if self.module is not None else ()
        names = {each.name for each in live if requires_grad(each)}
        return {node.name for node in inputs if node.name in names}

    def is_function(self, node: Node) -> bool:
        return is_function(self.graph, node, self.module)

    def _is_tuple(self, node: Node) -> bool:
        """Whether the node returns a tuple, also of one tensor."""
        if len(node.tensors) > 1 or node.target.removeprefix("torch.ops.") in GIVE_TUPLES:
            return True
        live = [each for each in self.module.graph.nodes if each.name == node.name] if self.module is not None else []
        value = live[0].meta.get("example_value", live[0].meta.get("val")) if live else None
        return isinstance(value, (tuple, list)) and not isinstance(value, torch.Size)

    def _steps(self, node: Node) -> list[Node]:
        """The node, after the nodes that no argument can replace: those that return tuples or sizes, and functions."""
        before: list[Node] = []
        for name in node.inputs:
            source = self.graph.by_name[name]
            makes_size = not source.tensors and not source.unknown
            computed = source.op.startswith("call") and (self._is_tuple(source) or makes_size)
            if computed or self.is_function(source):
                before += [step for step in self._steps(source) if step not in before]
        return [*before, node]

    def sized(self, inputs: list[Node]) -> tuple[list[Node], list[str]]:
        """The inputs without the sizes that their tensors have, and the lines that read these sizes from tensors."""
        homes: dict[str, str] = {}
        for node in inputs:
            for at, dim in enumerate(node.tensor.shape if node.tensor else ()):
                if isinstance(dim, Sym):
                    homes.setdefault(dim.expr, f"{name_of(node.name)}.shape[{at}]")
        lines = {
            node.name: f"{name_of(node.name)} = {homes[size.expr]}"
            for node in inputs
            if not node.tensors and (size := self.sizes.get(node.name)) is not None and size.expr in homes
        }
        return [node for node in inputs if node.name not in lines], list(lines.values())


def _unscoped(rules: str, rule: Constraint, graph: Graph, node: Node) -> str:
    """The accelerator with this rule alone, for all stages: in the script the node has no stage, and the nodes that it
    reads are arguments.
    """
    wider = replace(rule, stages=())
    if isinstance(rule, TensorRule) and rule.tensors != "results":
        computed = [name for name in node.inputs if self_made(graph.by_name[name])]
        wider = replace(wider, roles=()) if computed else wider
    whole = parse(rules)
    return unparse(Accelerator(whole.name, "", (wider,), whole.numerics))


def self_made(node: Node) -> bool:
    """Whether the graph computes the node, and not from weights alone."""
    return node.op.startswith("call") and node.role not in ("weight", "buffer")


def graph_of_node(capture: RunCapture, node: NodeId) -> Graph:
    """The captured graph that a node is in. Raises ValueError if this worker has none."""
    frame = capture.frames.get(node.graph.frame)
    graph = frame.graphs.get(node.graph) if frame else None
    if graph is None or node.name not in graph.by_name:
        raise ValueError(f"the worker holds no node {node.name} of graph {node.graph}: run the program again first")
    return graph


def violation_of(capture: RunCapture, node: NodeId, rule: str, rules: str) -> Violation:
    """Check a node again for its violation of a rule: a run does not check every rule on every graph.

    Raises BadInput if these rules have no such violation, ValueError if this worker has no such node.
    """
    graph = graph_of_node(capture, node)
    in_force = parse(rules)
    if not any(one.name == rule and one.enabled for one in in_force.rules):
        raise BadInput(f"there is no rule {rule} in force", hint="choose a violation of these")
    for violation in check(graph, in_force):
        if violation.node == node and violation.rule == rule:
            return violation
    raise BadInput(
        f"{node} of the {node.graph} graph does not break {rule} as the rules are now",
        hint="run it again under these rules, then choose a violation",
    )
