"""Show what the rules in force find in the graphs of one level: each rule, its cost, the lines that break it."""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import islice
from operator import add
from typing import NamedTuple

from idbg.analysis.liveness import MemoryProfile
from idbg.checking.costs import Waste
from idbg.checking.rule_costs import RuleCosts, pads
from idbg.constraints import Constraint, Findings, FindingsChange, Group
from idbg.format import file_names
from idbg.format.amounts import counted
from idbg.format.glyphs import MARKS
from idbg.schema.graphs import Graph, NodeId
from idbg.schema.violations import Severity
from idbg.views.broken_rules import BrokenRule, rule_table, severest_first
from idbg.views.cost_words import NO_CHANGE, change_words, host_words, pad_words, waste_words
from idbg.views.frame_graphs import graph_words
from idbg.views.tree import Opens, Refs, Row, Section, words

MOST = 2000
"""Nodes of one rule that are listed by line; of a rule that more nodes break a row says how many were left out."""
_PLACES = 3  # lines that are named of what an edit fixed


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


def view(checks: Sequence[Checked], *, fixed: bool = True) -> Section:
    """A row a rule, the severest first, with its costs and lines below; at the end, if `fixed`, what the last edit of
    the rules fixed.
    """
    rules = {(rule.name, rule.severity): rule for check in checks for rule in check.findings.rules}
    broken = _broken(checks)
    graphs = {check.graph.id: check.graph for check in checks}
    first = {rule.severity: rule for rule in reversed(broken)}

    def costs(rule: BrokenRule) -> Iterable[Row]:
        return _costs(rules[rule.name, rule.severity], checks, first=first[rule.severity] is rule)

    count = sum(len(check.findings) for check in checks)
    where = ", ".join(dict.fromkeys(graph_words(each.graph.id) for each in checks))
    summary = f"{counted(count, 'violation')} of {counted(len(broken), 'rule')}" if broken else "no rule is broken"
    return Section(
        "Violations",
        f"{summary} ({where})" if where else summary,
        count,
        "ok" if not broken else "error" if broken[0].severity == "reject" else "warning",
        (*([rule_table(broken, graphs, costs)] if broken else ()), *(_fixed(checks) if fixed else ())),
    )


def _broken(checks: Sequence[Checked]) -> list[BrokenRule]:
    """The rules that are broken, the severest first, each with the first of its violations."""
    rules: dict[tuple[str, Severity], BrokenRule] = {}
    for check in checks:
        for group in check.findings.groups:
            key = group.rule.name, group.rule.severity
            rule = rules.setdefault(key, BrokenRule(*key))
            rule.violations += islice(group.violations(), MOST - len(rule.violations))
            rule.count += group.count
        for group in check.change.appeared:
            if (changed := rules.get((group.rule.name, group.rule.severity))) is not None:
                changed.new.add(group.finding.found)
                changed.appeared += group.count
    return severest_first(rules.values())


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
