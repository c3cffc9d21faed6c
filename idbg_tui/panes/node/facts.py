"""The facts of the selected node, one a line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from idbg.analysis.partition import HOST
from idbg.checking import costs
from idbg.constraints import Constraint, Finding, Findings
from idbg.format import file_names
from idbg.format.amounts import counted, figure, size
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS
from idbg.format.kernels import language_of
from idbg.schema.code import Kernel, KernelCall
from idbg.schema.diff import KernelError
from idbg.schema.graphs import Graph, GraphId, Node, NodeId, Sym, TensorMeta
from idbg.schema.violations import SEVERITIES
from idbg.views import kernel_times
from idbg.views.blame import made_by, stage_name
from idbg.views.cost_words import waste_words
from idbg_tui.panes.graph.tally import Tally
from idbg_tui.state import queries
from idbg_tui.state.state import State

_MOST = 5_000  # nodes of a module whose kernels are looked up: each key press waits for it


@dataclass(frozen=True)
class Fact:
    """One line: a label, a text, and what enter goes to (a node, a kernel, or a line of the user's file).

    `copied` is what `y` takes, if not the text.
    """

    label: str
    text: str
    style: str = ""
    node: NodeId | None = None
    kernel: Kernel | None = None
    call: KernelCall | None = None  # of that kernel
    file: str = ""
    line: int = 0
    copied: str = ""


def facts(state: State) -> list[Fact]:
    """All that is known of the selected node, what is needed most first; nothing where no node is selected."""
    graph, node = state.graph, state.node
    if graph is None or node is None:
        return []
    return [
        *_module(state, graph, node),
        *_what(graph, node),
        *_blame(state, graph, node),
        *_violations(state.checks.findings(graph).broken_by(node.name)),
        *_padding(state.checks.findings(graph), node),
        *_side(state, graph, node),
        *_memory(state, graph, node),
        *_where(state, node),
        *_neighbours(graph, "inputs", node.inputs),
        *_neighbours(graph, "users", graph.users.get(node.name, ())),
        *([Fact("args", node.args)] if node.args else []),
        *_kernels(state),
        *_computed_repeatedly(state),
        *_in_other_graphs(state, graph, node),
        *_symbols(node),
    ]


def _module(state: State, graph: Graph, node: Node) -> Iterator[Fact]:
    """Where the cursor is on a module: what its nodes come to. What follows is of one of them."""
    heading = state.heading
    if heading is None:
        return
    inside = graph.nodes[heading.first : heading.last]
    yield Fact("module", _dotted(heading.title, heading.kind, counted(len(inside), "node")), "strong")
    for severity, count in Tally(state.checks.findings(graph)).within(heading.first, heading.last).items():
        words = f"{counted(count, 'violation')} in the module"
        yield Fact(f"{SEVERITY_SIGNS[severity]} {severity}", words, severity)
    launches = {
        (kernel.frame, kernel.part, kernel.name, call.line): (kernel, call)
        for each in inside[:_MOST]
        for kernel, call in (state.provenance.kernels_of(graph.node_id(each.name)) if state.provenance else ())
    }
    if launches:
        names = {key[:3] for key in launches}
        times = [time for launch in launches.values() if (time := queries.time_of(state, *launch)) is not None]
        took = kernel_times.sum_words(times) if len(times) == len(launches) else ""
        yield Fact("kernels", _dotted(counted(len(names), "kernel"), counted(len(launches), "launch"), took))
    yield Fact("its node", f"{node.name}: what follows is of this node", "dim")


def value_of(tensor: TensorMeta) -> str:
    """A tensor with its bytes, its stride in elements and its device: "f32[8,64]  2 KiB  stride 64,1  cpu"."""
    nbytes = tensor.nbytes
    symbolic = any(isinstance(dim, Sym) for dim in tensor.shape)
    words = "size not known" if nbytes is None else size(nbytes) + (" at the hints" if symbolic else "")
    stride = f"stride {','.join(map(str, tensor.stride))}" if tensor.stride else ""
    return "  ".join(part for part in (str(tensor), words, stride, tensor.device) if part)


def _what(graph: Graph, node: Node) -> Iterator[Fact]:
    role = [] if node.role == "intermediate" else [node.role]
    yield Fact("op", _dotted(node.target, node.op, *role, str(graph.id)), "strong")
    for index, tensor in enumerate(node.tensors):
        yield Fact("value" if index == 0 else "", value_of(tensor))
    if node.unknown:
        words = "torch kept no value for it: no rule could judge all of its tensors"
        yield Fact("" if node.tensors else "value", words, "unknown")
    elif not node.tensors:
        yield Fact("value", "no tensor is known for it", "dim")


def _violations(broken: Sequence[tuple[Constraint, Finding]]) -> Iterator[Fact]:
    for rule, finding in sorted(broken, key=lambda one: SEVERITIES.index(one[0].severity)):
        words = f"{rule.name}: {finding.found}; wanted {finding.wanted}"
        yield Fact(f"{SEVERITY_SIGNS[rule.severity]} {rule.severity}", words, rule.severity)
        if finding.fix:
            yield Fact("", f"{MARKS['arrow']} {finding.fix}")
        if rule.source:
            yield Fact("", f"source {rule.source}  {rule.version}".rstrip(), "dim", copied=rule.source)
        elif rule.version:
            yield Fact("", f"as of {rule.version}", "dim")


def _padding(findings: Findings, node: Node) -> Iterator[Fact]:
    """The shape that the hardware makes of each result, and what that wastes."""
    index = findings.facts.position[node.name]
    for number, one in enumerate(costs.padded(findings, index)):
        shape = str(TensorMeta(one.tensor.dtype, one.shape))
        yield Fact("" if number else "padded", shape if len(node.tensors) == 1 else f"{one.tensor} to {shape}")
    waste = costs.waste_of(findings, index)
    if waste.wasted_bytes or waste.wasted_flops:
        yield Fact("wastes", f"{waste_words(waste)} of this node")


def _side(state: State, graph: Graph, node: Node) -> Iterator[Fact]:
    """Where the node runs if some of the graph falls back to the host, and what crosses to it and from it."""
    rule_costs = state.costs.of_rules(state.checks.findings(graph))
    if rule_costs is None or rule_costs.partitions is None or node.name not in rule_costs.side_of:
        return
    sides, side = rule_costs.side_of, rule_costs.side_of[node.name]
    if side == HOST:
        yield Fact("runs", f"on the host, beside {counted(rule_costs.partitions.count, 'partition')}", "fallback")
    else:
        names = rule_costs.partitions.parts[side]
        where = f"in partition {side + 1} of {rule_costs.partitions.count}"
        yield Fact("runs", _dotted(where, counted(len(names), "node"), f"{names[0]} to {names[-1]}"))
    label = "crosses"
    for name in dict.fromkeys(node.inputs):
        if sides.get(name, side) != side:
            words = f"{name}  {_value_size(graph.by_name[name])} from {side_name(sides[name])}"
            yield Fact(label, words, node=graph.node_id(name))
            label = ""
    readers = dict.fromkeys(sides.get(user, side) for user in graph.users.get(node.name, ()))
    to = [side_name(reader) for reader in readers if reader != side]
    if to:
        yield Fact(label, f"its value, {_value_size(node)}, goes to {', '.join(to)}")


def side_name(side: int) -> str:
    """Where a node runs, of the index of its partition or HOST: "the host", "partition 3"."""
    return "the host" if side == HOST else f"partition {side + 1}"


def _value_size(node: Node) -> str:
    sizes = [tensor.nbytes for tensor in node.tensors]
    return "of unknown size" if node.unknown or None in sizes else size(sum(nbytes or 0 for nbytes in sizes))


def _memory(state: State, graph: Graph, node: Node) -> Iterator[Fact]:
    """What is in memory while it runs, weights counted, and how that compares with the graph's peak."""
    profile = state.costs.profile(graph)
    if profile is None or node.op == "output":
        return
    live = profile.live_bytes[state.checks.findings(graph).facts.position[node.name]]
    if not live:
        return
    here = f"{'at least ' if profile.unsized else ''}{size(live)} live while it runs"
    if profile.peak_at == node.name:
        yield Fact("memory", f"{here}: the peak (M lists what is alive)")
    else:
        peak = f"{here}; peak {size(profile.peak_bytes)} at {profile.peak_at}"
        yield Fact("memory", peak, node=graph.node_id(profile.peak_at))


def _where(state: State, node: Node) -> Iterator[Fact]:
    if node.file:
        place = file_names.place(node.file, node.line, queries.source_files(state))
        yield Fact("from", f"{place}  {node.code.strip()}".rstrip(), file=node.file, line=node.line)
    if node.module or node.module_class:
        yield Fact("module", f"{node.module}  {node.module_class}".strip())


def _blame(state: State, graph: Graph, node: Node) -> Iterator[Fact]:
    """That the numbers are wrong from here on, or from what stands for it in the next stage on, and what made that."""
    compared = queries.compared_run(state)
    report = compared.diff if compared is not None and compared is state.shown else None
    if report is None or report.verdict != "failed":
        return
    for stage in report.stages:
        maker, name = stage.made_by, stage_name(stage, report, whole=True)
        if stage.bad and (stage.graph, stage.node) == (graph.id, node.name):
            yield Fact("wrong", f"since {name}; the graph's worst output is off by {figure(stage.added)}", "reject")
            if maker is not None:
                yield Fact("", made_by(maker, _place), file=maker.file, line=maker.line)
        elif stage.bad and stage.graph is not None and (stage.above_graph, stage.above) == (graph.id, node.name):
            yield Fact("wrong", f"in {name}: {stage.node} stands for it", node=NodeId(stage.graph, stage.node))


def _place(file: str, line: int) -> str:
    return file_names.place(file, line) if file else ""


def _neighbours(graph: Graph, label: str, names: tuple[str, ...]) -> Iterator[Fact]:
    if not names:
        yield Fact(label, "none", "dim")
    for index, name in enumerate(names):
        other = graph.by_name.get(name)
        value = str(other.tensor) if other and other.tensor else ""
        yield Fact(label if index == 0 else "", f"{name}  {value}".rstrip(), node=graph.node_id(name))


def _kernels(state: State) -> Iterator[Fact]:
    label = "kernels"
    for kernel, call in queries.launches_of_node(state):
        yield Fact(
            label, _dotted(kernel.name, language_of(kernel), f"wrapper line {call.line}"), kernel=kernel, call=call
        )
        if (time := queries.time_of(state, kernel, call)) is not None:
            yield Fact("time", kernel_times.sentence(time))
        if (error := queries.error_of(state, kernel, call)) is not None:
            yield Fact("error", _error(error), "reject" if error.bad else "")
        label = ""


def _computed_repeatedly(state: State) -> Iterator[Fact]:
    """Where it is computed more than once: several kernels do what one could."""
    run, provenance, selected = state.shown, state.provenance, state.selected
    if run is None or provenance is None or selected is None or not run.decided.fusion:
        return
    from idbg.views.fusion import recorded

    for found in recorded(run):
        below = GraphId(found.frame, "post_grad", found.part)
        if found.frame != selected.graph.frame or below not in run.graphs:
            continue
        names = (
            {selected.name} if selected.graph == below else {n.name for n in provenance.counterparts(selected, below)}
        )
        for name in names & found.recomputed().keys():
            number = counted(len(found.recomputed()[name]), "time")
            yield Fact("computed", f"{SEVERITY_SIGNS['fallback']} {number}: see 0 Why, fusion", "fallback")


def _in_other_graphs(state: State, graph: Graph, node: Node) -> Iterator[Fact]:
    """The same computation in the frame's other graphs."""
    provenance, label = state.provenance, "also"
    for other in queries.stages_of_frame(state) if provenance else ():
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


def _error(one: KernelError) -> str:
    """How far the kernel's worst output is off by itself and with what came before, and how far what it read was."""
    if not one.observed:
        return f"not observed: {one.reason}"
    alone = "" if one.isolated is None else f"{figure(one.isolated)} of its RMS alone; so far "
    error = f"{figure(one.error)}{'' if alone else ' of its RMS'}"
    return f"{alone}{error}; its inputs {figure(one.input_error)}, eager {figure(one.eager_error)}"
