"""What is known of the memory of the shown graphs and of what the rules cost them, computed once a check."""

from idbg.analysis.liveness import MemoryProfile
from idbg.checking.rule_costs import CostAnswer, RuleCosts
from idbg.constraints import Findings
from idbg.schema.graphs import Graph, GraphId

AT_ONCE = 1000
"""Nodes that are counted before the next paint, in about 10 ms; more are counted beside it."""


class KnownCosts:
    """What is known of each graph so far: its memory, whatever the rules are, and what its last check costs."""

    def __init__(self) -> None:
        self._profiles: dict[GraphId, tuple[Graph, MemoryProfile]] = {}
        self._rule_costs: dict[GraphId, tuple[Findings, RuleCosts]] = {}

    def profile(self, graph: Graph) -> MemoryProfile | None:
        """The graph's memory over time, weights counted; None while it is not known."""
        of, profile = self._profiles.get(graph.id, (None, None))
        return profile if of is graph else None

    def peak_bytes(self, graph: Graph) -> int:
        """The most bytes that the graph needs at once; 0 while that is not known."""
        profile = self.profile(graph)
        return profile.peak_bytes if profile else 0

    def of_rules(self, findings: Findings) -> RuleCosts | None:
        """What these findings cost; None while it is not known."""
        of, rule_costs = self._rule_costs.get(findings.graph.id, (None, None))
        return rule_costs if of is findings else None

    def lacks(self, findings: Findings) -> bool:
        """Whether something of this check was not counted yet."""
        rule_costs = self.of_rules(findings)
        return self.profile(findings.graph) is None or rule_costs is None or not rule_costs.complete

    def take(self, findings: Findings, answer: CostAnswer) -> None:
        """Keep one answer about this check, or about its graph."""
        graph = findings.graph
        if isinstance(answer, RuleCosts):
            self._rule_costs[graph.id] = findings, answer
        else:
            self._profiles[graph.id] = graph, answer
