"""Check a graph against rules; a graph of 100,000 nodes is checked again within one key press.

A check evaluates each rule once for each distinct signature; results are expanded to nodes when they are read.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from msgspec.structs import replace

from idbg.constraints.base import Constraint, Finding
from idbg.constraints.facts import GraphFacts, NodeSignature, Signatures
from idbg.schema.graphs import Graph, Node
from idbg.schema.violations import Severity, Violation, worst

Breach = tuple[Constraint, Finding]
Position = int  # the number of a signature; or, for what a graph breaks as a whole, one node's index, inverted (~index)
Found = tuple[tuple[Position, Finding], ...]
Result = tuple[Constraint, Found]


class Checker:
    """One graph and its index. Make it once; `check` it as often as the rules change."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.facts = GraphFacts(graph)
        self._last: list[Result] = []

    @cached_property
    def index(self) -> Signatures:
        """The graph's signatures, found when a rule first asks: without a rule nothing is indexed."""
        return Signatures(self.graph)

    def check(self, rules: Iterable[Constraint]) -> "Findings":
        """What the enabled rules find. A rule that is the same as in the last check is not evaluated again."""
        results = [(rule, self._found_by(rule)) for rule in rules if rule.enabled]
        self._last = results
        return Findings(self, results)

    def nodes_at(self, place: Position) -> list[int]:
        """Indices of the nodes that one finding is about."""
        return self.index.nodes_of[place] if place >= 0 else [~place]

    def places_of(self, index: int) -> tuple[Position, Position]:
        """Where findings about one node can stand."""
        return self.index.of_node[index], ~index

    def _found_by(self, rule: Constraint) -> Found:
        for known, findings in self._last:
            if known == rule:
                return findings
        if rule.stages and self.graph.id.stage not in rule.stages:
            return ()
        alike = [
            (number, _with_hint(finding, rule.fix))
            for number, signature in enumerate(self.index.signatures)
            if rule.concerns(signature)
            for finding in rule.check(signature)
        ]
        return (*alike, *[(~index, _with_hint(finding, rule.fix)) for index, finding in rule.check_whole(self.facts)])


class Group:
    """One finding of one rule, and the nodes that have it. Counting is cheap; `nodes` is expanded when it is read."""

    def __init__(self, rule: Constraint, finding: Finding, checker: Checker, places: list[Position]) -> None:
        self.rule = rule
        self.finding = finding
        self._checker = checker
        self._places = places

    @property
    def count(self) -> int:
        """The number of nodes."""
        return sum(len(self._checker.nodes_at(place)) for place in self._places)

    @cached_property
    def nodes(self) -> list[int]:
        """Indices into the graph's nodes, in graph order."""
        lists = [self._checker.nodes_at(place) for place in self._places]
        return lists[0] if len(lists) == 1 else sorted(index for nodes in lists for index in nodes)

    def violations(self) -> Iterator[Violation]:
        """One violation a node, in graph order."""
        graph = self._checker.graph
        return (_violation(graph, graph.nodes[index], self.rule, self.finding) for index in self.nodes)


class FindingsChange(NamedTuple):
    """What one re-check made appear, and what went."""

    appeared: list[Group]
    went: list[Group]


class Findings:
    """The result of one check. Counts and look-ups cost nothing; violations are made when they are read."""

    def __init__(self, checker: Checker, results: list[Result]) -> None:
        self.graph = checker.graph
        self._checker = checker
        self._results = results

    def __len__(self) -> int:
        """The number of violations."""
        return sum(self.by_rule.values())

    @cached_property
    def by_rule(self) -> dict[str, int]:
        """Rule name -> number of its violations, in the order of the rules; 0 for rules that nothing breaks."""
        nodes_at = self._checker.nodes_at
        counts: dict[str, int] = {}
        for rule, findings in self._results:
            counts[rule.name] = counts.get(rule.name, 0) + sum(len(nodes_at(place)) for place, _ in findings)
        return counts

    @cached_property
    def by_severity(self) -> dict[Severity, int]:
        """Severity -> number of violations; severities without any are not there."""
        nodes_at = self._checker.nodes_at
        counts: Counter[Severity] = Counter()
        for rule, findings in self._results:
            counts[rule.severity] += sum(len(nodes_at(place)) for place, _ in findings)
        return dict(+counts)

    @cached_property
    def groups(self) -> list[Group]:
        """The same finding of the same rule, together: in the order of the rules, then of their first nodes."""
        return self._group(self._results)

    def broken_by(self, name: str) -> tuple[Breach, ...]:
        """The (rule, finding) pairs of one node; nothing for a name that the graph does not have."""
        index = self._checker.facts.position.get(name)
        return () if index is None else self.broken_at(index)

    def broken_at(self, index: int) -> tuple[Breach, ...]:
        """The (rule, finding) pairs of one node, by its index in the graph."""
        if not self._broken:
            return ()
        alike, alone = self._checker.places_of(index)
        return self._broken.get(alike, ()) + self._broken.get(alone, ())

    def worst_at(self, index: int) -> Severity | None:
        """The severest rule that a node breaks, by its index in the graph; None where it breaks none."""
        return worst(rule.severity for rule, _ in self.broken_at(index))

    def violations_of(self, name: str) -> list[Violation]:
        """One node's violations, in the order of the rules."""
        return [_violation(self.graph, self.graph.by_name[name], *broken) for broken in self.broken_by(name)]

    def broken_nodes(self, severity: Severity | None = None) -> list[int]:
        """The indices of all nodes that break a rule (of this severity), in graph order."""
        places = {
            place
            for place, broken in self._broken.items()
            if severity is None or any(rule.severity == severity for rule, _ in broken)
        }
        return sorted({index for place in places for index in self._checker.nodes_at(place)})

    @property
    def rules(self) -> list[Constraint]:
        """The enabled rules."""
        return [rule for rule, _ in self._results]

    @property
    def facts(self) -> GraphFacts:
        """What is known of the graph as a whole, kept from one check to the next."""
        return self._checker.facts

    def signature_at(self, index: int) -> NodeSignature | None:
        """What rules see of one node; None of an output node."""
        number = self._checker.index.of_node[index]
        return self._checker.index.signatures[number] if number >= 0 else None

    def signatures(self) -> Iterator[tuple[NodeSignature, int, int]]:
        """Each distinct signature, how many of its nodes make memory of their own, and how many there are."""
        index = self._checker.index
        return (
            (signature, made, len(nodes))
            for signature, made, nodes in zip(index.signatures, index.made, index.nodes_of, strict=True)
        )

    def violations(self) -> Iterator[Violation]:
        """Every violation, in the order of the nodes, and for one node in the order of the rules."""
        for index in self.broken_nodes():
            for broken in self.broken_at(index):
                yield _violation(self.graph, self.graph.nodes[index], *broken)

    def since(self, before: "Findings") -> FindingsChange:
        """What appeared and what went since an earlier check by the same Checker.

        A violation stays the same one while its rule's name, its node and what was found are the same: a stricter
        `multiple` that the same sizes break makes nothing appear.
        """
        before_edit = {id(findings) for _, findings in before._results}
        now = [(rule, findings) for rule, findings in self._results if id(findings) not in before_edit]
        after_edit = {id(findings) for _, findings in self._results}
        then = [(rule, findings) for rule, findings in before._results if id(findings) not in after_edit]
        return FindingsChange(self._group(_without(now, _keys(then))), self._group(_without(then, _keys(now))))

    @cached_property
    def _broken(self) -> dict[int, tuple[Breach, ...]]:
        breaches: dict[Position, list[Breach]] = {}
        for rule, findings in self._results:
            for place, finding in findings:
                breaches.setdefault(place, []).append((rule, finding))
        return {place: tuple(broken) for place, broken in breaches.items()}

    def _group(self, results: list[Result]) -> list[Group]:
        groups: list[Group] = []
        for rule, findings in results:
            alike: dict[Finding, list[Position]] = {}
            for place, finding in findings:
                alike.setdefault(finding, []).append(place)
            groups += [Group(rule, finding, self._checker, places) for finding, places in alike.items()]
        return groups


def _with_hint(finding: Finding, hint: str) -> Finding:
    """The finding with its author's hint."""
    return replace(finding, hint=hint) if hint else finding


def _keys(results: list[Result]) -> set[tuple[str, int, str]]:
    return {(rule.name, place, finding.found) for rule, findings in results for place, finding in findings}


def _without(results: list[Result], keys: set[tuple[str, int, str]]) -> list[Result]:
    return [
        (rule, tuple(pair for pair in findings if (rule.name, pair[0], pair[1].found) not in keys))
        for rule, findings in results
    ]


def _violation(graph: Graph, node: Node, rule: Constraint, finding: Finding) -> Violation:
    return Violation(
        rule=rule.name,
        severity=rule.severity,
        node=graph.node_id(node.name),
        found=finding.found,
        wanted=finding.wanted,
        fix=finding.fix,
        adds=finding.adds,
        hint=finding.hint,
        source=rule.source,
        file=node.file,
        line=node.line,
    )
