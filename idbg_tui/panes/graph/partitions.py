"""List the partitions that fallbacks to the host cut the shown graph into, and what crosses between them."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from idbg.analysis.partition import HOST, Boundary, Partitions
from idbg.checking.rule_costs import RuleCosts
from idbg.constraints import Findings
from idbg.format.amounts import and_unsized, counted
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS
from idbg.schema.graphs import Graph
from idbg.views.cost_words import NO_CHANGE, change_words, partition_words
from idbg.views.frame_graphs import graph_words
from idbg_tui.panes.graph.title import list_title
from idbg_tui.state import queries
from idbg_tui.state.sentences import why_no_graph
from idbg_tui.state.state import State
from idbg_tui.widgets.lines import StyledRow, clip, cut, fit
from idbg_tui.widgets.section_rows import Look, Row, sentences

_SIDE = 6  # cells: "p12345"


def title(state: State) -> str:
    """The title of the list, with the stage of the graph that it is about."""
    return list_title("Partitions", state)


def rows(state: State, look: Look) -> list[Row]:
    """The summary, what would help most, each partition with what crosses into it and out of it, then other graphs."""
    graph = state.graph
    if graph is None:
        return list(sentences(why_no_graph(state), look, "dim"))
    findings = state.checks.findings(graph)
    rule_costs = state.costs.of_rules(findings)
    if rule_costs is None:
        return list(sentences("not counted yet: this takes a moment for a graph of this size", look, "dim"))
    lines = [*_summary(findings, rule_costs, look)]
    if rule_costs.partitions is not None and rule_costs.partitions.host:
        lines += [*sentences("", look), *_partitions(state, graph, rule_costs, rule_costs.partitions)]
    return [*lines, *_others(state, graph, look)]


def _summary(findings: Findings, rule_costs: RuleCosts, look: Look) -> Iterator[Row]:
    now, rejects = rule_costs.partitions, findings.by_severity.get("reject", 0)
    if now is None or not now.host:
        whole = "" if rejects else ": the graph is one partition"
        yield from sentences(f"nothing falls back to the host here{whole}", look)
        yield from _rejected(rejects, look)
        hint = 'what breaks a rule of severity "fallback" runs on the host; 8 Rules has the severities'
        yield from sentences(hint, look, "dim")
        return
    broken, host = findings.by_severity["fallback"], counted(len(now.host), "call")
    yield from sentences(f"{partition_words([now])}; {counted(broken, 'violation')}, {host} on the host", look)
    yield from _rejected(rejects, look)
    arrow = MARKS["arrow"]
    if not rule_costs.complete:
        yield from sentences(f"{arrow} which change would help most is being counted", look, "dim")
    elif not rule_costs.best:
        yield from sentences(f"{arrow} {NO_CHANGE}", look, "dim")
    for change in rule_costs.best:
        yield from sentences(f"{arrow} {change_words(change)}", look, "accent")


def _rejected(rejects: int, look: Look) -> Iterator[Row]:
    """A warning where nodes break rules of severity "reject": partitions do not make such a graph run."""
    if rejects:
        words = f"{counted(rejects, 'violation')} of severity reject: the accelerator does not take this graph"
        yield from sentences(f"{SEVERITY_SIGNS['reject']} {words}", look, "reject")


def _partitions(state: State, graph: Graph, rule_costs: RuleCosts, now: Partitions) -> Iterator[Row]:
    selected = state.selected.name if state.selected else ""
    sides: dict[int, list[Boundary]] = {}
    for boundary in now.boundaries:
        sides.setdefault(boundary.to, []).append(boundary)
        sides.setdefault(boundary.source, []).append(boundary)
    for side, names in [*enumerate(now.parts), (HOST, now.host)]:
        mine = rule_costs.side_of.get(selected) == side
        yield Row(("part", side), _part(side, names, selected=mine), nodes=(graph.node_id(names[0]),))
        for boundary in sides.get(side, ()) if side != HOST else ():
            drawn = _boundary(boundary, into=boundary.to == side)
            yield Row((side, boundary), drawn, nodes=(graph.node_id(boundary.nodes[0]),))


def _part(side: int, names: tuple[str, ...], *, selected: bool) -> Callable[[int], StyledRow]:
    def draw(width: int) -> StyledRow:
        start: StyledRow = [
            (f" {MARKS['dot'] if selected else ' '} ", "accent"),
            (fit("host" if side == HOST else f"p{side + 1}", _SIDE), "fallback" if side == HOST else "strong"),
            (f"{counted(len(names), 'node'):>14}  ", ""),
        ]
        ends = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        return [*start, (cut(ends, width - _width_of(start)), "")]

    return draw


def _boundary(boundary: Boundary, *, into: bool) -> Callable[[int], StyledRow]:
    other = boundary.source if into else boundary.to
    name = "host" if other == HOST else f"p{other + 1}"
    crosses = and_unsized(boundary.nbytes, boundary.unsized)

    def draw(width: int) -> StyledRow:
        start: StyledRow = [
            (f"     {fit(f'from {name}' if into else f'to {name}', _SIDE + 4)}", "dim"),
            (f"{counted(len(boundary.nodes), 'value'):>11}  {crosses:>10}  ", ""),
        ]
        return [*start, (clip(", ".join(boundary.nodes), width - _width_of(start)), "dim")]

    return draw


def _width_of(pieces: StyledRow) -> int:
    return sum(len(text) for text, _ in pieces)


def _others(state: State, graph: Graph, look: Look) -> Iterator[Row]:
    """The other graphs of the shown level that fallbacks cut, with how many partitions each has."""
    for findings, rule_costs in queries.rule_costs(state) or ():
        other, now = findings.graph, rule_costs.partitions
        if other is graph or now is None or not now.host:
            continue
        where = f"{graph_words(other.id)} of frame {other.id.frame}: {partition_words([now])}; enter goes there"
        first = other.node_id(now.host[0])
        yield from sentences("", look)
        yield from (replace(row, nodes=(first,)) for row in sentences(where, look, "accent"))
