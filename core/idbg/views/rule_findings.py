"""Show what the rules in force find in the graphs of one level: each rule, its cost, the lines that break it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import islice
from operator import add
from typing import NamedTuple

from msgspec.structs import replace

from idbg.analysis.liveness import MemoryProfile
from idbg.checking.costs import Waste
from idbg.checking.rule_costs import RuleCosts, pads
from idbg.constraints import Constraint, Finding, Findings, FindingsChange, Group
from idbg.format import file_names
from idbg.format.amounts import counted
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS
from idbg.schema.graphs import Graph, NodeId
from idbg.schema.repros import Sought
from idbg.schema.violations import SEVERITIES
from idbg.views.cost_words import NO_CHANGE, change_words, host_words, pad_words, waste_words
from idbg.views.frame_graphs import graph_words
from idbg.views.tree import Cell, Column, Opens, Place, Refs, Row, Section, Table, words

MOST = 2000
"""Nodes of one rule that are listed by line; of a rule that more nodes break a row says how many were left out."""
_NAMES = 24  # nodes of a line that are named
_PLACES = 3  # lines that are named of what an edit fixed
_LEAST = 64  # cells of a line's place and code, before names of nodes give way
_PARTS = ("found", "wanted", "fix", "hint")
_FIGURES = 100  # and of its place and finding, which has figures
_NODES, _ADDS = Column("which nodes", "names", 1, 13), Column("adds bytes", "share", 2, 10)
_COUNT = Column("count", "count", 3, 5)


class Checked(NamedTuple):
    """One graph: what the rules find, what the last edit of them changed, and costs; None until those are counted."""

    findings: Findings
    change: FindingsChange
    costs: RuleCosts | None = None
    memory: MemoryProfile | None = None

    @property
    def graph(self) -> Graph:
        """The graph that was checked."""
        return self.findings.graph


@dataclass
class _Broken:
    """One rule, with the findings of all graphs; `new` is what was found first after the last edit."""

    rule: Constraint
    groups: list[tuple[Graph, Group]] = field(default_factory=list)
    new: set[str] = field(default_factory=set)
    appeared: int = 0

    @property
    def count(self) -> int:
        return sum(group.count for _, group in self.groups)


@dataclass
class _Line:
    """What comes from one line of the user's: each finding, with the nodes that have it."""

    code: str = ""
    computed: bool = False
    nodes: dict[Finding, list[NodeId]] = field(default_factory=dict)


def view(checks: Sequence[Checked], *, fixed: bool = True) -> Section:
    """A row a rule, the severest first, with its costs and lines below; at the end, if `fixed`, what the last edit of
    the rules fixed.
    """
    rules: dict[str, _Broken] = {}
    for check in checks:
        for group in check.findings.groups:
            rules.setdefault(group.rule.name, _Broken(group.rule)).groups.append((check.graph, group))
        for group in check.change.appeared:
            if group.rule.name in rules:
                rules[group.rule.name].new.add(group.finding.found)
                rules[group.rule.name].appeared += group.count
    broken = sorted(rules.values(), key=lambda each: SEVERITIES.index(each.rule.severity))
    adds = any(group.finding.adds is not None for each in broken for _, group in each.groups)
    least = _FIGURES if any(len({group.finding for _, group in each.groups}) > 1 for each in broken) else _LEAST
    columns = (_NODES, *((_ADDS,) if adds else ()), _COUNT)
    of_severity: set[str] = set()
    rows = []
    for each in broken:
        rows.append(_rule(each, checks, adds=adds, first=each.rule.severity not in of_severity))
        if each.rule.severity in ("pad", "fallback"):
            of_severity.add(each.rule.severity)
    count = sum(len(check.findings) for check in checks)
    summary = f"{counted(count, 'violation')} of {counted(len(rows), 'rule')}" if rows else "no rule is broken"
    worst = broken[0].rule.severity if broken else None
    return Section(
        "Violations",
        summary,
        count,
        "ok" if worst is None else "error" if worst == "reject" else "warning",
        (*([Table(columns, rows, "rule", least=least)] if rows else ()), *(_fixed(checks) if fixed else ())),
    )


def _rule(broken: _Broken, checks: Sequence[Checked], *, adds: bool, first: bool) -> Row:
    rule, kinds = broken.rule, {group.finding for _, group in broken.groups}
    found, wanted, fix, hint = (_only({getattr(kind, part) for kind in kinds}) for part in _PARTS)
    shared = Finding(found, wanted, fix, hint=hint)
    lines = list(_lines(broken, shared, adds=adds))
    new = f"  +{broken.appeared:,} new" if broken.appeared else ""
    return Row(
        ("rule", rule.name),
        words(
            (f"{SEVERITY_SIGNS[rule.severity]} ", rule.severity),
            (rule.name, "strong"),
            (new, "accent"),
            f"  {_heading(shared, len(kinds))}",
        ),
        (Cell(""), *([Cell("")] if adds else []), Cell(broken.count)),
        rows=[*_costs(rule, checks, first=first), *lines],
        open="all",
        opens="node",
        repro=lines[0].repro,
    )


def _only(values: set[str]) -> str:
    return next(iter(values)) if len(values) == 1 else ""


def _heading(shared: Finding, kinds: int) -> str:
    """What all findings of a rule share."""
    found = shared.found if kinds == 1 else f"{kinds} different findings"
    return _sentence(replace(shared, found=found))


def _sentence(finding: Finding) -> str:
    wanted = f"wanted {finding.wanted}" if finding.wanted else ""
    text = ", ".join(part for part in (finding.found, wanted) if part)
    fix = "; ".join(part for part in (finding.fix, finding.hint) if part)
    return text + (f" {MARKS['arrow']} {fix}" if fix else "")


# ---------------------------------------------------------------- lines


def _lines(broken: _Broken, shared: Finding, *, adds: bool) -> Iterator[Row]:
    """A row a line of the user's; of the nodes only the first, and how many more there are."""
    lines: dict[tuple[str, int], _Line] = {}
    room = MOST
    for graph, group in broken.groups:
        for index in group.nodes[:room]:
            node = graph.nodes[index]
            line = lines.setdefault((node.file, node.line), _Line())
            line.code = node.code.strip()
            line.computed = line.computed or node.op != "placeholder"
            line.nodes.setdefault(group.finding, []).append(graph.node_id(node.name))
        room -= min(room, group.count)
    for (file, number), line in sorted(lines.items()):
        yield _line(broken, shared, file, number, line, adds=adds)
    if left := broken.count - (MOST - room):
        yield Row(("more", broken.rule.name), words((f"and {left:,} more nodes: v walks through them", "dim")))


def _line(broken: _Broken, shared: Finding, file: str, number: int, line: _Line, *, adds: bool) -> Row:
    finding = max(line.nodes, key=lambda each: len(line.nodes[each]))
    nodes = tuple(dict.fromkeys(node for nodes in line.nodes.values() for node in nodes))
    own = replace(finding, **{part: "" for part in _PARTS if getattr(shared, part)})
    others = f" +{len(line.nodes) - 1}" if len(line.nodes) > 1 else ""
    is_new = any(each.found in broken.new for each in line.nodes)
    place = Place(file, number) if file else ("no line" if line.computed else "inputs", "")
    return Row(
        ("line", broken.rule.name, file, number),
        words(
            (f"{MARKS['dot']} " if is_new else "  " if broken.new else "", "accent"),
            place if isinstance(place, Place) else place[0],
            (f"  {_sentence(own) or line.code}{others}", "dim"),
        ),
        (
            Cell(", ".join(node.name for node in nodes[:_NAMES])),
            *([Cell("" if finding.adds is None else finding.adds)] if adds else []),
            Cell(sum(map(len, line.nodes.values()))),
        ),
        refs=Refs(nodes=nodes, file=file, line=number),
        opens="node",
        repro=Sought("violation", node=nodes[0], rule=broken.rule.name),
    )


def _fixed(checks: Sequence[Checked]) -> Iterator[Row]:
    """What the last edit fixed, a row a rule: how many violations, and the first lines where they were."""
    rules: dict[str, list[tuple[Graph, Group]]] = {}
    for check in checks:
        for group in check.change.went:
            rules.setdefault(group.rule.name, []).append((check.graph, group))
    for name, groups in rules.items():
        first = islice((graph.nodes[index] for graph, group in groups for index in group.nodes), MOST)
        places = list(dict.fromkeys(file_names.place(node.file, node.line) for node in first if node.file))
        found = list(dict.fromkeys(group.finding.found for _, group in groups))
        count = sum(group.count for _, group in groups)
        more = f" +{len(places) - _PLACES}" if len(places) > _PLACES else ""
        others = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        text = f"{MARKS['gone']} gone: {count:,} {name}  {found[0]}{others}  {', '.join(places[:_PLACES])}"
        yield Row(("gone", name), words((text + (more if count <= MOST else " and others"), "dim")))


# ---------------------------------------------------------------- costs


def _costs(rule: Constraint, checks: Sequence[Checked], *, first: bool) -> Iterator[Row]:
    """What one broken rule costs. What rules of one severity cost together is below the `first` only."""
    opens: Opens = ""
    refs = Refs()
    if rule.kind == "peak_memory":
        sentence, node = _peak(rule, checks)
        sentences, refs, opens = [sentence], Refs(nodes=(node,)), "node"
    elif rule.severity == "pad":
        sentences = list(_pads(rule, checks, first=first))
    elif rule.severity == "fallback":
        sentences, opens = _falls(checks) if first else ["runs on the host too: counted above"], "partitions"
    else:
        sentences = []
    for number, text in enumerate(sentences):
        shown = words((f"{MARKS['arrow']} {text}", rule.severity))
        yield Row(("cost", rule.name, number), shown, refs=refs, opens=opens)


def _counted(checks: Iterable[Checked]) -> list[tuple[Graph, RuleCosts]] | None:
    known = [(check.graph, check.costs) for check in checks]
    return [(graph, costs) for graph, costs in known if costs] if all(costs for _, costs in known) else None


def _pads(rule: Constraint, checks: Sequence[Checked], *, first: bool) -> Iterator[str]:
    names = {other.name for check in checks for other in pads(check.findings)}
    known = _counted(checks)
    if known is None:
        yield from [f"counting what padding adds {MARKS['ellipsis']}"] * (2 if first and len(names) > 1 else 1)
        return
    if text := pad_words(reduce(add, (costs.waste.get(rule.name, Waste()) for _, costs in known))):
        yield text
    together = reduce(add, (costs.padding for _, costs in known))
    if first and len(names) > 1 and (together.wasted_bytes or together.wasted_flops):
        yield f"all {len(names)} pad rules together: {waste_words(together)}"


def _falls(checks: Sequence[Checked]) -> list[str]:
    """What falling back costs. While that is counted it is as many sentences, so that the list does not move."""
    helps = f"counting which change would help most {MARKS['ellipsis']}"
    known = _counted(checks)
    if known is None:
        return [f"runs on the host: counting the partitions {MARKS['ellipsis']}", helps]
    parted = [(graph, costs, costs.partitions) for graph, costs in known if costs.partitions is not None]
    sentence = host_words([partitions for _, _, partitions in parted])
    if not any(partitions.host for _, _, partitions in parted):
        return [sentence]
    best = [(graph, costs.best, now) for graph, costs, now in parted if costs.best]
    if not all(costs.complete for _, costs, _ in parted):
        return [sentence, helps]
    if not best:
        return [sentence, NO_CHANGE]
    graph, changes, _ = max(best, key=lambda each: each[2].count - each[1][-1].count)
    where = f" in {graph_words(graph.id)}" if len(checks) > 1 else ""
    return [sentence, "; ".join(map(change_words, changes)) + where]


def _peak(rule: Constraint, checks: Sequence[Checked]) -> tuple[str, NodeId]:
    """Where the largest of the peaks that break the rule is."""
    broken = [check for check in checks if check.findings.by_rule.get(rule.name)]
    check = max(broken, key=lambda check: check.memory.peak_bytes if check.memory else 0)
    index = next(group.nodes[0] for group in check.findings.groups if group.rule.name == rule.name)
    name = check.graph.nodes[index].name
    memory = check.memory
    at = f"the peak is at {name} in {graph_words(check.graph.id)}"
    known = memory is not None and memory.peak_at == name
    alive = f": {counted(len(memory.alive), 'tensor')} alive; M lists them" if known and memory else ""
    return at + (alive or "; M lists what is alive"), check.graph.node_id(name)
