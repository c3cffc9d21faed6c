"""Show the part of a graph around a node, or in a module."""

from collections.abc import Iterable

import msgspec
from msgspec import structs

from idbg.accelerators.parse import parse
from idbg.analysis.neighbours import distances
from idbg.analysis.outline import outline
from idbg.analysis.provenance import Provenance
from idbg.checking.check import rules_for_stage, unreadable
from idbg.constraints import Checker, Findings
from idbg.format.amounts import counted
from idbg.format.glyphs import MARKS
from idbg.format.spelling import did_you_mean
from idbg.schema.errors import BadInput
from idbg.schema.graphs import Graph, GraphId, Node, Part, Stage
from idbg.schema.runs import Run
from idbg.schema.strict_json import like
from idbg.schema.violations import SEVERITIES, Severity
from idbg.views import module as module_view
from idbg.views import node
from idbg.views.facts import Launch
from idbg.views.tree import Cell, Column, Place, Row, Section, Table, words

SCHEMA = "idbg.graph/1"
MOST_NODES = 200  # of a slice, the nearest first
_NODES = (
    *(Column("target", "code", 4, 12), Column("value", "code", 3), Column("line", "place", 2)),
    *(Column("kernels", "names", 0), Column("breaks", "names", 1)),
)
_GRAPHS = (Column("nodes", "count", 2), Column("violations", "count", 1))
_PREFERRED: tuple[Stage, ...] = ("inference", "forward", "dynamo")


class GraphLine(msgspec.Struct, frozen=True, kw_only=True):
    """One graph of the run, and how much is in it."""

    frame: str
    stage: Stage
    part: Part
    nodes: int
    violations: int


class BrokenRule(msgspec.Struct, frozen=True):
    """A rule that the node breaks."""

    rule: str
    severity: Severity
    found: str
    wanted: str


class NodeLine(msgspec.Struct, frozen=True, kw_only=True):
    """A node. `distance` is in edges from the requested node; null in a module. `outside` are neighbours of
    the slice that are not in it."""

    name: str
    op: str
    target: str
    value: str
    inputs: tuple[str, ...]
    users: list[str]
    module: str
    file: str
    line: int
    code: str
    distance: int | None
    kernels: list[str]
    violations: list[BrokenRule]


class GraphSlice(msgspec.Struct, frozen=True, kw_only=True):
    """`nodes` in the graph's order; `left_out` is how many more were requested; `about` is what is known of the node,
    or of the module, a fact a line. With neither node nor module named, `nodes` is empty, and `graphs` and `modules`
    say what can be named."""

    schema: str = SCHEMA
    run: int
    verdict: str
    graphs: list[GraphLine]
    graph: GraphLine | None = None
    modules: dict[str, int] = {}
    node: str = ""
    module: str = ""
    depth: int = 0
    about: list[str] = []
    nodes: list[NodeLine] = []
    left_out: int = 0


def overview(run: Run) -> GraphSlice:
    """Which graphs the run has, and which modules the most useful of them."""
    graph = _graph(run, None, "", "") if run.graphs else None
    modules: dict[str, int] = {}
    for each in graph.nodes if graph else ():
        if each.module:
            top = ".".join(each.module.split(".")[:2])
            modules[top] = modules.get(top, 0) + 1
    line = _line(run, graph) if graph else None
    return GraphSlice(run=run.number, verdict=run.verdict, graphs=_lines(run), graph=line, modules=modules)


def around(run: Run, name: str, depth: int, stage: Stage | None = None, frame: str = "") -> GraphSlice:
    """The node and what is up to `depth` edges from it, inputs and users alike. Raises BadInput for no such node."""
    graph = _graph(run, stage, frame, name)
    distance = distances(graph, name, depth)
    found = _slice(run, graph, list(distance), distance, node=name, depth=depth)
    return structs.replace(found, about=[row.text for row in node.facts(_context(run, graph, name))])


def _context(run: Run, graph: Graph, name: str) -> node.NodeContext:
    """The node with what the run's own rules find in its graph."""
    findings, provenance = _findings(run, graph), Provenance(run)
    return node.NodeContext(
        graph,
        graph.by_name[name],
        run,
        findings,
        provenance,
        launches=[Launch(*each, None, None) for each in provenance.kernels_of(graph.node_id(name))],
        stages=[other for other in run.graphs if other.frame == graph.id.frame],
        memory=findings.facts.profile(weights=True),
        report=run.diff,
    )


def _findings(run: Run, graph: Graph) -> Findings:
    rules = () if unreadable(run) else rules_for_stage(graph.id.stage, parse(run.target.rules).rules)
    return Checker(graph).check(rules)


def _totals(run: Run, graph: Graph, path: str) -> list[str]:
    """What a module's nodes come to; nothing where several stretches of the graph are of it, or none alone is."""
    headings = [each for each in outline(graph).headings if each.path == path and not each.is_group]
    if len(headings) != 1:
        return []
    findings = _findings(run, graph)
    memory = findings.facts.profile(weights=True)
    about = module_view.ModuleContext(graph, headings[0], findings, bool(run.codes), memory=memory, report=run.diff)
    launches = [Launch(*each, None, None) for each in about.calls(Provenance(run))]
    return [row.text for row in module_view.facts(about._replace(launches=launches))]


def within(run: Run, module: str, stage: Stage | None = None, frame: str = "") -> GraphSlice:
    """The nodes of a module of the user's ("layer1.0") and of those inside it. Raises BadInput for no such module."""
    graphs = [graph for graph in _candidates(run, stage, frame) if any(_is_in(node, module) for node in graph.nodes)]
    if not graphs:
        there = dict.fromkeys(node.module for graph in _candidates(run, stage, frame) for node in graph.nodes)
        raise BadInput(f"no graph has a module {module!r}", hint=_near(module, filter(None, there)))
    names = [node.name for node in graphs[0].nodes if _is_in(node, module)]
    found = _slice(run, graphs[0], names, {}, module=module)
    return structs.replace(found, about=_totals(run, graphs[0], module))


def view(part: GraphSlice) -> Section:
    """A row a node, and below the requested one what is known of it; or a row a graph."""
    if part.graph is None or not (part.node or part.module):
        return _overview(part)
    what = f"{counted(part.depth, 'step')} around {part.node}" if part.node else f"module {part.module}"
    shown = f"{len(part.nodes)} of {counted(part.graph.nodes, 'node')}"
    totals = [Row(("about", at), words(fact)) for at, fact in enumerate(part.about if part.module else ())]
    left = [Row("left out", words(f"and {part.left_out:,} more: ask for fewer steps, or for a module"))]
    return Section(
        "Graph",
        f"{_name(part.graph)}: {what}, {shown}",
        len(part.nodes),
        body=(
            Table(_NODES, [_node_row(each, part) for each in part.nodes], "node"),
            *totals,
            *(left if part.left_out else ()),
        ),
    )


def _overview(part: GraphSlice) -> Section:
    rows = [Row(_name(each), words(_name(each)), (Cell(each.nodes), Cell(each.violations))) for each in part.graphs]
    named = ", ".join(f"{name} ({count})" for name, count in part.modules.items())
    modules = [Row("modules", words(f"modules: {named}"))] if named else []
    summary = "" if rows else "this run has no graph"
    return Section("Graph", summary, len(rows), body=(Table(_GRAPHS, rows, "graph"), *modules))


def _node_row(line: NodeLine, part: GraphSlice) -> Row:
    chosen = line.name == part.node
    return Row(
        line.name,
        words(f"{MARKS['bar'] if chosen else ' '} {line.name}"),
        (
            *(Cell(line.target), Cell(line.value or None), Cell(Place(line.file, line.line) if line.file else "")),
            *(Cell(", ".join(line.kernels)), Cell(", ".join(each.rule for each in line.violations))),
        ),
        [Row((line.name, at), words(f"  {fact}")) for at, fact in enumerate(part.about if chosen else ())],
        open="all",
    )


def _name(graph: GraphLine) -> str:
    return " ".join(filter(None, (graph.frame, graph.stage, graph.part)))


def _slice(
    run: Run,
    graph: Graph,
    names: list[str],
    distance: dict[str, int],
    *,
    node: str = "",
    module: str = "",
    depth: int = 0,
) -> GraphSlice:
    kept = set(names[:MOST_NODES])
    provenance, broken = Provenance(run), _broken(run, graph.id)
    return GraphSlice(
        run=run.number,
        verdict=run.verdict,
        graphs=_lines(run),
        graph=_line(run, graph),
        node=node,
        module=module,
        depth=depth,
        nodes=[
            like(
                NodeLine,
                each,
                value=", ".join(map(str, each.tensors)),
                users=list(graph.users.get(each.name, ())),
                distance=distance.get(each.name),
                kernels=list(
                    dict.fromkeys(kernel.name for kernel, _ in provenance.kernels_of(graph.node_id(each.name)))
                ),
                violations=broken.get(each.name, []),
            )
            for each in graph.nodes
            if each.name in kept
        ],
        left_out=len(names) - len(kept),
    )


def _candidates(run: Run, stage: Stage | None, frame: str) -> list[Graph]:
    """The graphs that may be meant, the most useful first. Raises BadInput where there is none."""
    found = [graph for key, graph in run.graphs.items() if stage in (None, key.stage) and frame in ("", key.frame)]
    if not found:
        there = ", ".join(dict.fromkeys(f"{key.frame} {key.stage}" for key in run.graphs))
        raise BadInput("the run has no such graph", hint=f"it has {there}" if there else "no graph was captured in it")
    return sorted(
        found, key=lambda graph: _PREFERRED.index(graph.id.stage) if graph.id.stage in _PREFERRED else len(_PREFERRED)
    )


def _graph(run: Run, stage: Stage | None, frame: str, name: str) -> Graph:
    """The first of them that has the node."""
    found = _candidates(run, stage, frame)
    for graph in found:
        if not name or name in graph.by_name:
            return graph
    raise BadInput(
        f"no graph has a node {name!r}", hint=_near(name, (node.name for graph in found for node in graph.nodes))
    )


def _near(name: str, there: Iterable[str]) -> str:
    return did_you_mean(name, there, "without a name, its graphs and modules are listed", most=3, cutoff=0.4)


def _is_in(node: Node, module: str) -> bool:
    return node.module == module or node.module.startswith(f"{module}.")


def _broken(run: Run, graph: GraphId) -> dict[str, list[BrokenRule]]:
    """Node -> the rules that it breaks, the severest first."""
    found: dict[str, list[BrokenRule]] = {}
    mine = (violation for violation in run.violations if violation.node.graph == graph)
    for each in sorted(mine, key=lambda each: SEVERITIES.index(each.severity)):
        found.setdefault(each.node.name, []).append(like(BrokenRule, each))
    return found


def _lines(run: Run) -> list[GraphLine]:
    return [_line(run, graph) for graph in run.graphs.values()]


def _line(run: Run, graph: Graph) -> GraphLine:
    count = sum(violation.node.graph == graph.id for violation in run.violations)
    return like(GraphLine, graph.id, nodes=len(graph.nodes), violations=count)
