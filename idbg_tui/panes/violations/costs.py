"""What each broken rule costs over the shown graphs, in words."""

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Literal

from idbg.checking.costs import Waste
from idbg.constraints import Constraint
from idbg.format.amounts import counted
from idbg.format.glyphs import MARKS
from idbg.schema.graphs import Graph, NodeId
from idbg.views.cost_words import NO_CHANGE, change_words, host_words, pad_words, waste_words
from idbg_tui.state import queries, stages
from idbg_tui.state.costs import pads
from idbg_tui.state.state import State


@dataclass(frozen=True)
class Cost:
    """What one rule costs, in a sentence. `view` names the list with more, `node` is where the cost arises."""

    rule: Constraint
    text: str
    view: Literal["", "memory", "partitions"] = ""
    node: NodeId | None = None
    place: int = 0  # among the sentences about this rule


def costs_by_rule(state: State) -> dict[str, list[Cost]]:
    """Rule name -> its costs, of the rules that the shown level breaks and whose cost is known."""
    by_rule: dict[str, list[Cost]] = {}
    checks = [state.checks.findings(graph) for graph in queries.level(state)]
    broken = {group.rule.name: group.rule for check in checks for group in check.groups}
    for rule in broken.values():
        first = not any(costs[0].rule.severity == rule.severity for costs in by_rule.values())
        if costs := _costs(state, rule, first=first):
            by_rule[rule.name] = costs
    return by_rule


def _costs(state: State, rule: Constraint, *, first: bool) -> list[Cost]:
    """The costs of one broken rule. What rules of one severity cost together is listed below the `first` only."""
    if rule.kind == "peak_memory":
        return [_peak(state, rule)]
    if rule.severity == "pad":
        return [Cost(rule, words, place=place) for place, words in enumerate(_pads(state, rule, first=first))]
    if rule.severity == "fallback":
        falls = _falls(state) if first else ["runs on the host too: counted above"]
        return [Cost(rule, words, "partitions", place=place) for place, words in enumerate(falls)]
    return []


def _pads(state: State, rule: Constraint, *, first: bool) -> list[str]:
    names = {other.name for graph in queries.level(state) for other in pads(state.checks.findings(graph))}
    shared = first and len(names) > 1
    rule_costs = queries.rule_costs(state)
    if rule_costs is None:
        counting = f"counting what padding adds {MARKS['ellipsis']}"
        return [counting] * (2 if shared else 1)
    waste = reduce(add, (one.waste.get(rule.name, Waste()) for _, one in rule_costs))
    together = reduce(add, (one.padding for _, one in rule_costs))
    words = [text for text in (pad_words(waste),) if text]
    if shared and (together.wasted_bytes or together.wasted_flops):
        words.append(f"all {len(names)} pad rules together: {waste_words(together)}")
    return words


def _falls(state: State) -> list[str]:
    """What falling back costs. While that is counted it is as many sentences, so that the list does not move."""
    helps = f"counting which change would help most {MARKS['ellipsis']}"
    rule_costs = queries.rule_costs(state)
    if rule_costs is None:
        return [f"runs on the host: counting the partitions {MARKS['ellipsis']}", helps]
    parted = [(check.graph, one, one.partitions) for check, one in rule_costs if one.partitions is not None]
    words = host_words([partitions for _, _, partitions in parted])
    if not any(now.host for _, _, now in parted):
        return [words]
    best = [(graph, one.best, now) for graph, one, now in parted if one.best]
    if not all(one.complete for _, one, _ in parted):
        return [words, helps]
    if not best:
        return [words, NO_CHANGE]
    graph, changes, _ = max(best, key=lambda one: one[2].count - one[1][-1].count)
    where = _where(graph) if len(queries.level(state)) > 1 else ""
    return [words, "; ".join(map(change_words, changes)) + where]


def _peak(state: State, rule: Constraint) -> Cost:
    broken = [check for graph in queries.level(state) if (check := state.checks.findings(graph)).by_rule.get(rule.name)]
    findings = max(broken, key=lambda check: state.costs.peak_bytes(check.graph))
    graph = findings.graph
    index = next(group.nodes[0] for group in findings.groups if group.rule.name == rule.name)
    name = graph.nodes[index].name
    profile = state.costs.profile(graph)
    alive = f": {counted(len(profile.alive), 'tensor')} alive" if profile and profile.peak_at == name else ""
    words = f"the peak is at {name}{_where(graph)}{alive}; M lists them"
    return Cost(rule, words if alive else words.replace("them", "what is alive"), "memory", graph.node_id(name))


def _where(graph: Graph) -> str:
    return f" in {stages.name_of(graph.id)}"
