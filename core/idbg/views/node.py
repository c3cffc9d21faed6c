"""Show all that is known of one node of a graph, and where each fact leads."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from idbg.analysis.liveness import MemoryProfile
from idbg.analysis.partition import HOST
from idbg.analysis.provenance import Provenance
from idbg.checking import costs
from idbg.checking.rule_costs import RuleCosts
from idbg.constraints import Findings
from idbg.format import file_names
from idbg.format.amounts import counted, few, figure, size
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS
from idbg.format.kernels import language_of
from idbg.schema.code import Kernel
from idbg.schema.decisions.inductor import FusionLog
from idbg.schema.diff import DiffReport
from idbg.schema.graphs import Graph, GraphId, Node, NodeId, Sym, TensorMeta
from idbg.schema.runs import Run
from idbg.schema.violations import SEVERITIES, problem
from idbg.views import fusion, kernel_times
from idbg.views.blame import made_by, stage_name
from idbg.views.cost_words import waste_words
from idbg.views.facts import Launch, dotted, error_words, fact, value_size
from idbg.views.tree import Place, Row, Section, Tone, words


class NodeContext(NamedTuple):
    """A node, and what is known around it. `stages` are the graphs of the same frame, `report` is a comparison of this
    run.
    """

    graph: Graph
    node: Node
    run: Run
    findings: Findings
    provenance: Provenance | None = None
    launches: Sequence[Launch] = ()
    stages: Sequence[GraphId] = ()
    costs: RuleCosts | None = None
    memory: MemoryProfile | None = None
    report: DiffReport | None = None

    @property
    def id(self) -> NodeId:
        """The node among all of the run."""
        return self.graph.node_id(self.node.name)


def view(about: NodeContext) -> Section:
    """What is needed most first."""
    known = facts(about)
    return Section("Node", "", len(known), body=known)


def facts(about: NodeContext) -> tuple[Row, ...]:
    """The rows of the section."""
    return (
        *_what(about),
        *_blame(about),
        *_violations(about),
        *_padding(about),
        *_side(about),
        *_memory(about),
        *_where(about.node),
        *_strip(about),
        *_neighbours(about.graph, "inputs", about.node.inputs),
        *_neighbours(about.graph, "users", about.graph.users.get(about.node.name, ())),
        *([fact("args", about.node.args)] if about.node.args else []),
        *_kernels(about),
        *_computed_repeatedly(about),
        *_in_other_graphs(about),
        *_symbols(about.node),
    )


def value_words(tensor: TensorMeta) -> str:
    """A tensor with its bytes, its stride in elements and its device: "f32[8,64]  2 KiB  stride 64,1  cpu"."""
    nbytes = tensor.nbytes
    symbolic = any(isinstance(dim, Sym) for dim in tensor.shape)
    known = "size not known" if nbytes is None else size(nbytes) + (" at the hints" if symbolic else "")
    stride = f"stride {','.join(map(str, tensor.stride))}" if tensor.stride else ""
    return "  ".join(part for part in (str(tensor), known, stride, tensor.device) if part)


def _what(about: NodeContext) -> Iterator[Row]:
    node = about.node
    role = [] if node.role == "intermediate" else [node.role]
    yield fact("op", dotted(node.target, node.op, *role, str(about.graph.id)), "strong")
    for index, tensor in enumerate(node.tensors):
        yield fact("value" if index == 0 else "", value_words(tensor))
    if node.unknown:
        text = "torch kept no value for it: no rule could judge all of its tensors"
        yield fact("" if node.tensors else "value", text, "unknown")
    elif not node.tensors:
        yield fact("value", "no tensor is known for it", "dim")


def _violations(about: NodeContext) -> Iterator[Row]:
    broken = about.findings.broken_by(about.node.name)
    for rule, finding in sorted(broken, key=lambda each: SEVERITIES.index(each[0].severity)):
        text = f"{rule.name}: {problem(finding.found, finding.wanted)}"
        yield fact(f"{SEVERITY_SIGNS[rule.severity]} {rule.severity}", text, rule.severity)
        if finding.advice:
            yield fact("", f"{MARKS['arrow']} {finding.advice}")
        if rule.source:
            yield fact("", f"source {rule.source}  {rule.version}".rstrip(), "dim", copied=rule.source)
        elif rule.version:
            yield fact("", f"as of {rule.version}", "dim")


def _padding(about: NodeContext) -> Iterator[Row]:
    """The shape that the hardware makes of each result, and what that wastes."""
    index = about.findings.facts.position[about.node.name]
    for number, each in enumerate(costs.padded(about.findings, index)):
        shape = str(TensorMeta(each.tensor.dtype, each.shape))
        text = shape if len(about.node.tensors) == 1 else f"{each.tensor} to {shape}"
        yield fact("" if number else "padded", text)
    waste = costs.waste_of(about.findings, index)
    if waste.wasted_bytes or waste.wasted_flops:
        yield fact("wastes", f"{waste_words(waste)} of this node")


def _side(about: NodeContext) -> Iterator[Row]:
    """Where the node runs if some of the graph falls back to the host, and what crosses to it and from it."""
    graph, node, known = about.graph, about.node, about.costs
    if known is None or known.partitions is None or node.name not in known.side_of:
        return
    sides, side = known.side_of, known.side_of[node.name]
    if side == HOST:
        yield fact("runs", f"on the host, beside {counted(known.partitions.count, 'partition')}", "fallback")
    else:
        names = known.partitions.parts[side]
        where = f"in partition {side + 1} of {known.partitions.count}"
        yield fact("runs", dotted(where, counted(len(names), "node"), f"{names[0]} to {names[-1]}"))
    crossing = [name for name in dict.fromkeys(node.inputs) if sides.get(name, side) != side]
    for number, name in enumerate(crossing):
        text = f"{name}  {value_size(graph.by_name[name])} from {_side_name(sides[name])}"
        yield fact("" if number else "crosses", text, node=graph.node_id(name))
    readers = dict.fromkeys(sides.get(user, side) for user in graph.users.get(node.name, ()))
    to = [_side_name(reader) for reader in readers if reader != side]
    if to:
        yield fact("" if crossing else "crosses", f"its value, {value_size(node)}, goes to {', '.join(to)}")


def _side_name(side: int) -> str:
    return "the host" if side == HOST else f"partition {side + 1}"


def _memory(about: NodeContext) -> Iterator[Row]:
    """What is in memory while it runs, weights counted, and how that compares with the graph's peak."""
    profile = about.memory
    if profile is None or about.node.op == "output":
        return
    live = profile.live_bytes[about.findings.facts.position[about.node.name]]
    if not live:
        return
    here = f"{'at least ' if profile.unsized else ''}{size(live)} live while it runs"
    if profile.peak_at == about.node.name:
        yield fact("memory", f"{here}: the peak (M lists what is alive)")
    else:
        peak = f"{here}; peak {size(profile.peak_bytes)} at {profile.peak_at}"
        yield fact("memory", peak, node=about.graph.node_id(profile.peak_at))


def _where(node: Node) -> Iterator[Row]:
    if node.file:
        yield fact("from", node.code.strip(), place=Place(node.file, node.line), placed=True)
    if node.module or node.module_class:
        yield fact("module", f"{node.module}  {node.module_class}".strip())


def _blame(about: NodeContext) -> Iterator[Row]:
    """That the numbers are wrong from here on, or from what stands for it in the next stage on, and what made that."""
    report, here = about.report, (about.graph.id, about.node.name)
    if report is None or report.verdict != "failed":
        return
    for stage in report.stages:
        maker, name = stage.made_by, stage_name(stage, report, whole=True)
        if stage.bad and (stage.graph, stage.node) == here:
            yield fact("wrong", f"since {name}; the graph's worst output is off by {figure(stage.added)}", "reject")
            if maker is not None:
                at = Place(maker.file, maker.line) if maker.file else None
                yield fact("", made_by(maker, _place), place=at)
        elif stage.bad and stage.graph is not None and (stage.above_graph, stage.above) == here:
            yield fact("wrong", f"in {name}: {stage.node} stands for it", node=NodeId(stage.graph, stage.node))


def _place(file: str, line: int) -> str:
    return file_names.place(file, line) if file else ""


def _neighbours(graph: Graph, label: str, names: Sequence[str]) -> Iterator[Row]:
    if not names:
        yield fact(label, "none", "dim")
    for index, name in enumerate(names):
        other = graph.by_name.get(name)
        value = str(other.tensor) if other and other.tensor else ""
        yield fact(label if index == 0 else "", f"{name}  {value}".rstrip(), node=graph.node_id(name))


def _kernels(about: NodeContext) -> Iterator[Row]:
    for number, launch in enumerate(about.launches):
        kernel = launch.kernel
        text = dotted(kernel.name, language_of(kernel), f"wrapper line {launch.call.line}")
        yield fact("" if number else "kernels", text, launch=launch)
        if launch.time is not None:
            yield fact("time", kernel_times.sentence(launch.time))
        if launch.error is not None:
            yield fact("error", error_words(launch.error), "reject" if launch.error.bad else "")


def _computed_repeatedly(about: NodeContext) -> Iterator[Row]:
    """Where it is computed more than once: several kernels do what one could."""
    if about.provenance is None or not about.run.decided.last(FusionLog):
        return
    for found in fusion.recorded(about.run):
        below = GraphId(found.frame, "post_grad", found.part)
        if found.frame != about.graph.id.frame or below not in about.run.graphs:
            continue
        there = [about.id] if about.graph.id == below else about.provenance.counterparts(about.id, below)
        repeated: Mapping[str, Sequence[object]] = found.recomputed()
        for name in {node.name for node in there} & repeated.keys():
            times = counted(len(repeated[name]), "time")
            yield fact("computed", f"{SEVERITY_SIGNS['fallback']} {times}: see 0 Why, fusion", "fallback")


def _strip(about: NodeContext) -> Iterator[Row]:
    """The same computation from stage to stage down to its kernel, in one line; it leads to the next stage."""
    of_stage = _of_stages(about)
    if not any(places for stage, places in of_stage if stage != about.graph.id):
        return
    here = [stage for stage, _ in of_stage].index(about.graph.id)
    arrow = f" {MARKS['arrow']} "
    parts: list[tuple[str, Tone]] = []
    for stage, places in of_stage:
        more = f" +{len(places) - 1}" if len(places) > 1 else ""
        alone = sum(other.stage == stage.stage for other, _ in of_stage) == 1
        text = f"{stage.stage if alone else _stage(stage)} {places[0].name + more if places else 'none'}"
        is_here = stage == about.graph.id
        parts += [(arrow if parts else "", "dim"), (f"[{text}]" if is_here else text, _strip_tone(is_here, places))]
    if about.launches:
        names = dict.fromkeys(_short_name(launch.kernel) for launch in about.launches)
        parts += [(arrow, "dim"), (few(names, 1, " +{:,}"), "")]
    elif about.run.codes:
        parts += [(arrow, "dim"), ("no kernel", "dim")]
    onward = [place for _, places in of_stage[here + 1 :] + of_stage[:here] for place in places]
    row = fact("stages", "", node=onward[0])
    copied = "".join(text for text, _ in parts)
    yield structs.replace(row, key="stages", words=(row.words[0], *words(*parts)), copied=copied)


def _short_name(kernel: Kernel) -> str:
    """ "kernel 3" of a generated one that ends in _3, and the name of an extern one."""
    number = kernel.name.rpartition("_")[2]
    return f"kernel {number}" if kernel.source and number.isdecimal() else kernel.name


def _strip_tone(is_here: bool, places: Sequence[NodeId]) -> Tone:
    return "strong" if is_here else "accent" if places else "dim"


def _of_stages(about: NodeContext) -> list[tuple[GraphId, list[NodeId]]]:
    """Each graph of the frame, with the nodes of it that are the same computation."""
    known = about.provenance
    if known is None:
        return []
    return [
        (each, [about.id] if each == about.graph.id else known.counterparts(about.id, each)) for each in about.stages
    ]


def _stage(graph: GraphId) -> str:
    return graph.stage + (f" ({graph.part})" if graph.part else "")


def _in_other_graphs(about: NodeContext) -> Iterator[Row]:
    """The same computation in the frame's other graphs."""
    places = [place for stage, places in _of_stages(about) if stage != about.graph.id for place in places]
    for number, place in enumerate(places):
        yield fact("" if number else "also", dotted(_stage(place.graph), place.name), node=place)


def _symbols(node: Node) -> Iterator[Row]:
    dims = dict.fromkeys(dim for tensor in node.tensors for dim in tensor.shape if isinstance(dim, Sym))
    for number, dim in enumerate(dims):
        hint = "no hint" if dim.hint is None else f"is {dim.hint} here"
        low = "" if dim.low is None else f"{dim.low} <= "
        high = "" if dim.high is None else f" <= {dim.high}"
        allowed = f"guards allow {low}{dim.expr}{high}" if low or high else "any size"
        yield fact("" if number else "sizes", dotted(dim.expr, hint, allowed))
