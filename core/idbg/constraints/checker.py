"""How is a graph of 100,000 nodes checked again within one keypress?

Most nodes of a big graph look alike: the same op on the same tensors. The index keeps each distinct look once (a
"signature"); a check asks each rule about each signature, and no result is expanded to nodes before somebody reads it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from idbg.constraints import ops
from idbg.constraints.base import Constraint, Finding
from idbg.records import Graph, Node, Severity, Violation, worst

Broken = tuple[Constraint, Finding]
Found = tuple[tuple[int, Finding], ...]  # (signature, finding), in the order of the signatures
Result = tuple[Constraint, Found]


class Checker:
    """One graph's index. Build it once; `check` it as often as the rules change."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.signatures: list[Node] = []
        self.nodes_of: list[list[int]] = []
        self.signature_of: list[int] = []
        self._last: list[Result] = []
        self._index()

    def check(self, rules: Iterable[Constraint]) -> "Findings":
        """What the enabled rules find. A rule that is the same as in the last check is not asked again."""
        results = [(rule, self._ask(rule)) for rule in rules if rule.enabled]
        self._last = results
        return Findings(self, results)

    @cached_property
    def position(self) -> dict[str, int]:
        """Node name -> index in `graph.nodes`."""
        return {node.name: index for index, node in enumerate(self.graph.nodes)}

    def _index(self) -> None:
        known: dict[tuple[object, ...], int] = {}
        for index, node in enumerate(self.graph.nodes):
            if node.op == "output":
                self.signature_of.append(-1)
                continue
            key = _look(node)
            signature = known.setdefault(key, len(self.signatures))
            if signature == len(self.signatures):
                self.signatures.append(_sample(node))
                self.nodes_of.append([])
            self.nodes_of[signature].append(index)
            self.signature_of.append(signature)

    def _ask(self, rule: Constraint) -> Found:
        for asked, findings in self._last:
            if asked == rule:
                return findings
        return tuple((number, finding) for number, node in enumerate(self.signatures) for finding in rule.check(node))


class Group:
    """One finding of one rule, and the nodes that have it. Counting is cheap; `nodes` is expanded when it is read."""

    def __init__(self, rule: Constraint, finding: Finding, checker: Checker, signatures: list[int]) -> None:
        self.rule = rule
        self.finding = finding
        self._checker = checker
        self._signatures = signatures

    @property
    def count(self) -> int:
        return sum(len(self._checker.nodes_of[signature]) for signature in self._signatures)

    @cached_property
    def nodes(self) -> list[int]:
        """Indices into the graph's nodes, in graph order."""
        lists = [self._checker.nodes_of[signature] for signature in self._signatures]
        return lists[0] if len(lists) == 1 else sorted(index for nodes in lists for index in nodes)

    def violations(self) -> Iterator[Violation]:
        graph = self._checker.graph
        return (_violation(graph, graph.nodes[index], self.rule, self.finding) for index in self.nodes)


class Change(NamedTuple):
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
        nodes_of = self._checker.nodes_of
        counts: dict[str, int] = {}
        for rule, found in self._results:
            counts[rule.name] = counts.get(rule.name, 0) + sum(len(nodes_of[signature]) for signature, _ in found)
        return counts

    @cached_property
    def by_severity(self) -> dict[Severity, int]:
        """Severity -> number of violations; severities without any are not there."""
        nodes_of = self._checker.nodes_of
        counts: Counter[Severity] = Counter()
        for rule, found in self._results:
            counts[rule.severity] += sum(len(nodes_of[signature]) for signature, _ in found)
        return dict(+counts)

    @cached_property
    def groups(self) -> list[Group]:
        """The same finding of the same rule, together: in the order of the rules, then of their first nodes."""
        return self._group(self._results)

    def broken_by(self, name: str) -> tuple[Broken, ...]:
        """The (rule, finding) pairs of one node; nothing for a name that the graph does not have."""
        index = self._checker.position.get(name)
        return () if index is None else self.broken_at(index)

    def broken_at(self, index: int) -> tuple[Broken, ...]:
        """The same, by the node's index in the graph."""
        return self._broken.get(self._checker.signature_of[index], ())

    def worst_at(self, index: int) -> Severity | None:
        return worst(rule.severity for rule, _ in self.broken_at(index))

    def violations_of(self, name: str) -> list[Violation]:
        """One node's violations, in the order of the rules."""
        return [_violation(self.graph, self.graph.by_name[name], *broken) for broken in self.broken_by(name)]

    def broken_nodes(self) -> list[int]:
        """The indices of all nodes that break a rule, in graph order."""
        return sorted(index for signature in self._broken for index in self._checker.nodes_of[signature])

    def violations(self) -> Iterator[Violation]:
        """Every violation, in the order of the nodes, and for one node in the order of the rules."""
        for index in self.broken_nodes():
            for broken in self.broken_at(index):
                yield _violation(self.graph, self.graph.nodes[index], *broken)

    def since(self, before: "Findings") -> Change:
        """What appeared and what went since an earlier check by the same Checker.

        A violation stays the same one while its rule's name, its node and what was found are the same: a stricter
        `multiple` that the same sizes break makes nothing appear.
        """
        before_edit = {id(found) for _, found in before._results}
        now = [(rule, found) for rule, found in self._results if id(found) not in before_edit]
        after_edit = {id(found) for _, found in self._results}
        then = [(rule, found) for rule, found in before._results if id(found) not in after_edit]
        return Change(self._group(_without(now, _keys(then))), self._group(_without(then, _keys(now))))

    @cached_property
    def _broken(self) -> dict[int, tuple[Broken, ...]]:
        found: dict[int, list[Broken]] = {}
        for rule, findings in self._results:
            for signature, finding in findings:
                found.setdefault(signature, []).append((rule, finding))
        return {signature: tuple(broken) for signature, broken in found.items()}

    def _group(self, results: list[Result]) -> list[Group]:
        groups: list[Group] = []
        for rule, findings in results:
            alike: dict[Finding, list[int]] = {}
            for signature, finding in findings:
                alike.setdefault(finding, []).append(signature)
            groups += [Group(rule, finding, self._checker, signatures) for finding, signatures in alike.items()]
        return groups


def _look(node: Node) -> tuple[object, ...]:
    """What rules see of a node, as a key. Fields that `_sample` blanks have no place in it."""
    if node.op == "call_function" or node.op == "call_method":
        return node.target, node.tensors, node.role, node.op, ops.flags(node)
    if node.op == "call_module":
        return node.target, node.tensors, node.role, node.op, node.module_class
    return node.op, node.tensors, node.role


def _sample(node: Node) -> Node:
    """The node with only what rules see, so that no rule can depend on what its like do not share."""
    called = node.op not in ("placeholder", "get_attr")
    return Node(
        name="",
        op=node.op,
        target=node.target if called else "",
        args=ops.flags(node) if called else "",
        tensors=node.tensors,
        role=node.role,
        module_class=node.module_class if node.op == "call_module" else "",
    )


def _keys(results: list[Result]) -> set[tuple[str, int, str]]:
    return {(rule.name, signature, finding.found) for rule, found in results for signature, finding in found}


def _without(results: list[Result], keys: set[tuple[str, int, str]]) -> list[Result]:
    return [
        (rule, tuple(pair for pair in found if (rule.name, pair[0], pair[1].found) not in keys))
        for rule, found in results
    ]


def _violation(graph: Graph, node: Node, rule: Constraint, finding: Finding) -> Violation:
    return Violation(
        rule=rule.name,
        severity=rule.severity,
        node=graph.node_id(node.name),
        found=finding.found,
        wanted=finding.wanted,
        fix=finding.fix,
        source=rule.source,
        file=node.file,
        line=node.line,
    )
