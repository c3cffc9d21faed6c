"""Check the shown graphs with the rules in force, and compare with the rules before the last edit."""

from collections.abc import Sequence

from idbg.constraints import Checker, Constraint, Findings, FindingsChange
from idbg.schema.graphs import Graph, GraphId
from idbg.schema.violations import SEVERITIES, Severity
from idbg_tui.state.costs import AT_ONCE

NO_CHANGE = FindingsChange(appeared=[], went=[])


class RuleChecks:
    """One index for each graph, and what the rules found in it; graphs are checked when somebody asks.

    Of a large graph, rules about the whole of it are left out until what they look at was counted: see
    `include_graph_rules`.
    """

    def __init__(self) -> None:
        self.rules: tuple[Constraint, ...] = ()
        self._before: tuple[Constraint, ...] | None = None
        self._checkers: dict[GraphId, Checker] = {}
        self._findings: dict[GraphId, Findings] = {}
        self._changes: dict[GraphId, FindingsChange] = {}
        self._counted: dict[GraphId, Graph] = {}

    def postponed(self, graph: Graph) -> list[Constraint]:
        """The rules in force that are left out of this graph's check until what they look at was counted."""
        return [rule for rule in self.rules if rule.is_about_graphs and rule.enabled] if self._waits(graph) else []

    def include_graph_rules(self, graph: Graph) -> bool:
        """Check this graph with the rules about whole graphs too, now that its memory is known. False if none is."""
        postponed = self.postponed(graph)
        self._counted[graph.id] = graph
        if postponed:
            self._findings.pop(graph.id, None)
            self._changes.pop(graph.id, None)
        return bool(postponed)

    def _waits(self, graph: Graph) -> bool:
        return len(graph.nodes) > AT_ONCE and self._counted.get(graph.id) is not graph

    def _included(self, graph: Graph, rules: tuple[Constraint, ...]) -> list[Constraint]:
        waits = self._waits(graph)
        return [rule for rule in rules if not (waits and rule.is_about_graphs)]

    def findings(self, graph: Graph) -> Findings:
        """What the rules in force find in this graph."""
        checker = self._checkers.get(graph.id)
        if checker is None or checker.graph is not graph:
            checker = self._checkers[graph.id] = Checker(graph)
            self._findings.pop(graph.id, None)
            self._changes.pop(graph.id, None)
        if graph.id not in self._findings:
            self._findings[graph.id] = checker.check(self._included(graph, self.rules))
        return self._findings[graph.id]

    def change(self, graph: Graph) -> FindingsChange:
        """What appeared and went with the last edit of the rules; the same for the graph that a recompile brings."""
        if self._before is None:
            return NO_CHANGE
        findings = self.findings(graph)
        if graph.id not in self._changes:
            before = self._checkers[graph.id].check(self._included(graph, self._before))
            self._changes[graph.id] = findings.since(before)
        return self._changes[graph.id]

    def with_only(self, graph: Graph, rule: Constraint) -> Findings:
        """A check of this graph with one rule, that found nothing: what the rule costs by itself is counted from it."""
        self.findings(graph)
        return Findings(self._checkers[graph.id], [(rule, ())])

    def set_rules(self, rules: tuple[Constraint, ...], *, again: bool = False) -> None:
        """Put other rules in force. With `again` this edit belongs to the one before: 8 to 16 to 32 is one change.

        What changes no rule (a comment, saving the text) keeps the last change.
        """
        if rules == self.rules:
            return
        if not again or self._before is None:
            self._before = self.rules or None
        self.rules = rules
        self._findings.clear()
        self._changes.clear()


def first_broken(graph: Graph, findings: Findings) -> str:
    """The first node that breaks a rule, one that computes before one that does not; "" if none does."""
    broken = findings.broken_nodes()
    calls = (index for index in broken if graph.nodes[index].op.startswith("call"))
    index = next(calls, broken[0] if broken else None)
    return "" if index is None else graph.nodes[index].name


def totals(findings: Sequence[Findings]) -> dict[Severity, int]:
    """Severity -> violations over several graphs, the severest first; those with none are not there."""
    counts = {severity: sum(check.by_severity.get(severity, 0) for check in findings) for severity in SEVERITIES}
    return {severity: count for severity, count in counts.items() if count}
