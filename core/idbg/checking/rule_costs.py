"""Count what the rules in force cost one graph: its memory, what padding adds, what falls back to the host."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from idbg.analysis.liveness import MemoryProfile
from idbg.analysis.partition import HOST, Partitions
from idbg.checking import costs
from idbg.checking.costs import Better, Waste
from idbg.constraints import Constraint, Findings


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
