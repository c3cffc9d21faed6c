"""Show the partitions that fallbacks to the host cut a graph into, and what crosses between them."""

from collections.abc import Iterator, Sequence

from idbg.analysis.partition import HOST, Boundary, Partitions
from idbg.checking.rule_costs import RuleCosts
from idbg.constraints import Findings
from idbg.format.amounts import counted
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS
from idbg.schema.graphs import Graph
from idbg.views.cost_words import NO_CHANGE, change_words, partition_words
from idbg.views.frame_graphs import graph_words
from idbg.views.tree import Block, Cell, Column, Refs, Row, Section, Table, Words, words

_COLUMNS = (
    *(Column("nodes", "count", least=5), Column("values", "count", least=6), Column("crosses", "bytes", least=10)),
    Column("which", "names", least=24),
)
_EMPTY = Cell("")


def view(
    findings: Findings, costs: RuleCosts | None, level: Sequence[tuple[Findings, RuleCosts]] = (), selected: str = ""
) -> Section:
    """What would help most, each partition with what crosses into it and out of it, then the other graphs of a level;
    `costs` None are not counted yet.
    """
    if costs is None:
        return Section("Partitions", "not counted yet: this takes a moment for a graph of this size", None, "unknown")
    now, rejects = costs.partitions, findings.by_severity.get("reject", 0)
    rejected = f"{counted(rejects, 'violation')} of severity reject: the accelerator does not take this graph"
    body: list[Block] = []
    if rejects:
        body.append(Row("rejects", words((f"{SEVERITY_SIGNS['reject']} {rejected}", "reject"))))
    if now is None or not now.host:
        whole = "" if rejects else ": the graph is one partition"
        hint = 'what breaks a rule of severity "fallback" runs on the host; 8 Rules has the severities'
        summary = f"nothing falls back to the host here{whole}"
        body.append(Row("hint", words((hint, "dim"))))
    else:
        broken, host = findings.by_severity["fallback"], counted(len(now.host), "call")
        summary = f"{partition_words([now])}; {counted(broken, 'violation')}, {host} on the host"
        body += [*_changes(costs), Row("gap", ()), _table(findings.graph, costs, now, selected)]
    body += _others(findings, level)
    return Section("Partitions", summary, now.count if now else 1, "error" if rejects else "ok", tuple(body))


def _changes(costs: RuleCosts) -> Iterator[Row]:
    """What would leave the fewest partitions."""
    arrow = MARKS["arrow"]
    if not costs.complete:
        yield Row("change", words((f"{arrow} which change would help most is being counted", "dim")))
    elif not costs.best:
        yield Row("change", words((f"{arrow} {NO_CHANGE}", "dim")))
    for number, change in enumerate(costs.best):
        yield Row(("change", number), words((f"{arrow} {change_words(change)}", "accent")))


def _table(graph: Graph, costs: RuleCosts, now: Partitions, selected: str) -> Table:
    rows = []
    for side, names in [*enumerate(now.parts), (HOST, now.host)]:
        mine = costs.side_of.get(selected) == side
        ends = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        crossing = [each for each in now.boundaries if side in (each.source, each.to)]
        rows.append(
            Row(
                ("part", side),
                words(
                    (f"{MARKS['dot']} " if mine else "  ", "accent"),
                    (_name(side), "fallback" if side == HOST else "strong"),
                ),
                (Cell(len(names)), _EMPTY, Cell(sum(each.nbytes for each in crossing)), Cell(ends)),
                [_boundary(graph, each, side) for each in crossing] if side != HOST else (),
                "all",
                Refs(nodes=(graph.node_id(names[0]),)),
                "node",
            )
        )
    return Table(_COLUMNS, rows, "partition")


def _name(side: int) -> str:
    return "host" if side == HOST else f"p{side + 1}"


def _boundary(graph: Graph, boundary: Boundary, side: int) -> Row:
    """The values that cross between a partition and another one, or the host."""
    into = boundary.to == side
    shown: Words = words((f"  from {_name(boundary.source)}" if into else f"  to {_name(boundary.to)}", "dim"))
    unsized = f"  {boundary.unsized} of unknown size" if boundary.unsized else ""
    return Row(
        (side, boundary),
        (*shown, *words((unsized, "dim"))),
        (_EMPTY, Cell(len(boundary.nodes)), Cell(boundary.nbytes), Cell(", ".join(boundary.nodes), "dim")),
        refs=Refs(nodes=(graph.node_id(boundary.nodes[0]),)),
        opens="node",
    )


def _others(findings: Findings, level: Sequence[tuple[Findings, RuleCosts]]) -> Iterator[Row]:
    """The other graphs of the level that fallbacks cut, with how many partitions each has."""
    for other, costs in level:
        now = costs.partitions
        if other.graph is findings.graph or now is None or not now.host:
            continue
        id = other.graph.id
        where = f"{graph_words(id)} of frame {id.frame}: {partition_words([now])}; enter goes there"
        first = other.graph.node_id(now.host[0])
        yield Row(("other", id), words((where, "accent")), refs=Refs(nodes=(first,)), opens="node")
