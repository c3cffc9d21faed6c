"""Group violations by rule, then by the user's line."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType

from idbg.constraints import Constraint, Finding, Findings, FindingsChange, Group
from idbg.format import file_names
from idbg.format.glyphs import MARKS
from idbg.schema.graphs import Graph, NodeId
from idbg.schema.violations import SEVERITIES
from idbg_tui.panes.violations.costs import Cost

MOST = 2000
"""Nodes of one rule that are sorted by line; a rule that breaks more text how many were left out."""


@dataclass(frozen=True)
class CodeLine:
    """The violations of one rule that come from one line of the user's program."""

    rule: Constraint
    file: str
    line: int
    nodes: tuple[NodeId, ...]
    code: str = ""  # the user's, at that line
    inputs: bool = False  # no line, because these are the graph's inputs
    text: str = ""  # what the rule's heading does not have
    new: bool = False


@dataclass(frozen=True)
class Gone:
    """What the last edit made go: how many violations of one rule, and where they were."""

    rule: Constraint
    count: int
    findings: tuple[str, ...]
    places: tuple[str, ...]
    all_places: bool = True  # or only those of the first nodes


@dataclass(frozen=True)
class Rest:
    """Nodes that are not listed because there are too many."""

    rule: Constraint
    count: int


@dataclass(frozen=True)
class RuleHeading:
    """One rule: how many violations, what is found most, how many appeared with the last edit."""

    rule: Constraint
    count: int
    new: int
    text: str


Item = RuleHeading | Cost | CodeLine | Gone | Rest


@dataclass
class _Rule:
    rule: Constraint
    groups: list[tuple[Findings, Group]] = field(default_factory=list)
    gone: list[tuple[Graph, Group]] = field(default_factory=list)
    new: set[str] = field(default_factory=set)
    appeared: int = 0


def violation_list(
    checked: Iterable[tuple[Findings, FindingsChange]], costs: Mapping[str, Sequence[Cost]] = MappingProxyType({})
) -> list[Item]:
    """The rows for several graphs: each rule, the severest first, with its costs and the user's lines that break it.

    What the last edit made go is at the end, one row for a rule.
    """
    rules: dict[str, _Rule] = {}
    for findings, change in checked:
        for group in findings.groups:
            rules.setdefault(group.rule.name, _Rule(group.rule)).groups.append((findings, group))
        for group in change.appeared:
            if group.rule.name in rules:
                rules[group.rule.name].new.add(group.finding.found)
                rules[group.rule.name].appeared += group.count
        for group in change.went:
            rules.setdefault(group.rule.name, _Rule(group.rule)).gone.append((findings.graph, group))
    ordered = sorted(rules.values(), key=lambda rule: SEVERITIES.index(rule.rule.severity))
    listed = [item for rule in ordered if rule.groups for item in _items(rule, costs.get(rule.rule.name, ()))]
    return [*listed, *(_gone(rule) for rule in ordered if rule.gone)]


def _gone(rule: _Rule) -> Gone:
    """What went of one rule. Its places are those of the first nodes only: of thousands nobody reads more."""
    gone = (graph.nodes[index] for graph, group in rule.gone for index in group.nodes)
    places = dict.fromkeys(file_names.place(node.file, node.line) for node in islice(gone, MOST) if node.file)
    words = dict.fromkeys(group.finding.found for _, group in rule.gone)
    count = sum(group.count for _, group in rule.gone)
    return Gone(rule.rule, count, tuple(words), tuple(places), all_places=count <= MOST)


def _items(rule: _Rule, costs: Sequence[Cost]) -> Sequence[Item]:
    count = sum(group.count for _, group in rule.groups)
    kinds = {group.finding for _, group in rule.groups}
    shared = Finding(*(_only({getattr(kind, part) for kind in kinds}) for part in ("found", "wanted", "fix")))
    heading = RuleHeading(rule.rule, count, rule.appeared, _heading(shared, len(kinds)))
    lines, left = _lines(rule, shared)
    return [heading, *costs, *lines, *([Rest(rule.rule, left)] if left else [])]


def _only(values: set[str]) -> str:
    return next(iter(values)) if len(values) == 1 else ""


def _heading(shared: Finding, kinds: int) -> str:
    if kinds == 1:
        return _sentence(shared)
    wanted = f", wanted {shared.wanted}" if shared.wanted else ""
    return f"{kinds} different findings{wanted}" + (f" {MARKS['arrow']} {shared.fix}" if shared.fix else "")


def _sentence(finding: Finding) -> str:
    wanted = f"wanted {finding.wanted}" if finding.wanted else ""
    words = ", ".join(part for part in (finding.found, wanted) if part)
    return words + (f" {MARKS['arrow']} {finding.fix}" if finding.fix else "")


def _besides(finding: Finding, shared: Finding, others: int) -> str:
    """What the heading leaves for the line."""
    own = Finding(
        "" if shared.found else finding.found,
        "" if shared.wanted else finding.wanted,
        "" if shared.fix else finding.fix,
    )
    return _sentence(own) + (f" (and {others} more)" if others else "")


def _lines(rule: _Rule, shared: Finding) -> tuple[list[CodeLine], int]:
    places: dict[tuple[str, int], dict[Finding, list[NodeId]]] = {}
    code: dict[tuple[str, int], str] = {}
    computed: set[tuple[str, int]] = set()
    room = MOST
    for findings, group in rule.groups:
        graph = findings.graph
        for index in group.nodes[:room]:
            node = graph.nodes[index]
            place = places.setdefault((node.file, node.line), {})
            place.setdefault(group.finding, []).append(graph.node_id(node.name))
            code[node.file, node.line] = node.code
            if node.op != "placeholder":
                computed.add((node.file, node.line))
        room -= min(room, group.count)
    left = sum(group.count for _, group in rule.groups) - (MOST - room)
    lines = []
    for (file, line), nodes_by_finding in sorted(places.items()):
        finding = max(nodes_by_finding, key=lambda one: len(nodes_by_finding[one]))
        nodes = tuple(dict.fromkeys(node for nodes in nodes_by_finding.values() for node in nodes))
        new = any(one.found in rule.new for one in nodes_by_finding)
        text = _besides(finding, shared, len(nodes_by_finding) - 1)
        inputs = (file, line) not in computed
        lines.append(
            CodeLine(rule.rule, file, line, nodes, code=code[file, line].strip(), inputs=inputs, text=text, new=new)
        )
    return lines, left
