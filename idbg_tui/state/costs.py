"""Memory of the shown graphs and what the rules cost them, computed once a check and never while a key waits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from idbg.analysis.liveness import MemoryProfile
from idbg.analysis.partition import HOST, Partitions
from idbg.checking import costs
from idbg.checking.costs import Better, Waste
from idbg.constraints import Constraint, Findings
from idbg.schema.graphs import Graph, GraphId

AT_ONCE = 1000
"""Nodes that are counted before the next paint, in about 10 ms; more are counted beside it."""


@dataclass(frozen=True)
class RuleCosts:
    """What the rules in force cost one graph. `partitions` is None where nothing breaks a rule of severity fallback.

    `waste` is by the name of each pad rule as if it were alone, `padding` that of all together. `best` comes last:
    read it once `complete` is true.
    """

    padding: Waste
    waste: Mapping[str, Waste]
    partitions: Partitions | None = None
    side_of: Mapping[str, int] = field(default_factory=dict)  # call -> the index of its partition, or HOST
    crossing: frozenset[str] = frozenset()  # the calls whose value goes to another side
    best: tuple[Better, ...] = ()
    complete: bool = False


@dataclass(frozen=True)
class CostQuestion:
    """Which check of a graph is to be priced?

    `alone` has, for each of its pad rules that something breaks, the graph with that rule only; `postponed` the rules
    that the check left out until the graph's memory is known.
    """

    findings: Findings
    alone: Mapping[str, Findings]
    postponed: Sequence[Constraint] = ()


def pads(findings: Findings) -> list[Constraint]:
    """The rules of severity pad that something breaks."""
    return [rule for rule in findings.rules if rule.severity == "pad" and findings.by_rule.get(rule.name)]


CostAnswer = MemoryProfile | RuleCosts


def cost_answers(question: CostQuestion) -> Iterator[CostAnswer]:
    """The graph's memory, then what the rules cost it, first without the best change, which takes longest.

    With rules that were left out it is the memory alone: after that, they are checked.
    """
    findings = question.findings
    profile = findings.facts.profile(weights=True)
    for rule in question.postponed:
        list(rule.check_whole(findings.facts))  # for what `GraphFacts` keeps of it
    yield profile
    if question.postponed:
        return
    alone = {name: costs.waste(only) for name, only in question.alone.items()}
    padding = next(iter(alone.values()), Waste()) if len(alone) < 2 else costs.waste(findings)
    if findings.by_severity.get("fallback"):
        partitions = costs.partitions(findings)
        crossing = frozenset(name for boundary in partitions.boundaries for name in boundary.nodes)
        rule_costs = RuleCosts(padding, alone, partitions, _sides(partitions), crossing)
        yield rule_costs
        yield replace(rule_costs, best=tuple(costs.best_changes([findings], [partitions])), complete=True)
    else:
        yield RuleCosts(padding, alone, complete=True)
    findings.facts.profile(weights=False)  # kept, so that a rule that counts no weights can be edited in at once


def _sides(partitions: Partitions) -> dict[str, int]:
    sides = dict.fromkeys(partitions.host, HOST)
    for index, names in enumerate(partitions.parts):
        sides.update(dict.fromkeys(names, index))
    return sides


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
