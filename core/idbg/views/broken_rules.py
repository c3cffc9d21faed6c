"""Group violations by rule, by the user's line and by the model's module."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from idbg.schema.graphs import NodeId
from idbg.schema.runs import Run
from idbg.schema.violations import SEVERITIES, Severity, Violation


@dataclass
class BrokenLine:
    """What comes from one line of the user's ("" and 0 of none): each finding, with the nodes that have it."""

    file: str
    line: int
    found: dict[str, list[NodeId]] = field(default_factory=dict)


@dataclass
class BrokenRule:
    """One rule of one severity. `wanted` is "" where not every violation wants the same; `fixes` has each once."""

    name: str
    severity: Severity
    violations: list[Violation]

    @property
    def wanted(self) -> str:
        """What all of them want, "" where that differs."""
        wishes = {violation.wanted for violation in self.violations}
        return wishes.pop() if len(wishes) == 1 else ""

    @property
    def fixes(self) -> list[str]:
        """What can be done, each once."""
        return list(dict.fromkeys(violation.fix for violation in self.violations if violation.fix))

    @property
    def sources(self) -> list[str]:
        """On what the rule rests, each once."""
        return list(dict.fromkeys(violation.source for violation in self.violations if violation.source))

    @property
    def lines(self) -> list[BrokenLine]:
        """The user's lines that break it, in their order."""
        by_line: dict[tuple[str, int], BrokenLine] = {}
        for violation in self.violations:
            place = violation.file, violation.line
            line = by_line.setdefault(place, BrokenLine(*place))
            line.found.setdefault(violation.found, []).append(violation.node)
        return [by_line[place] for place in sorted(by_line)]


def by_rule(violations: Iterable[Violation]) -> list[BrokenRule]:
    """The rules that are broken, as they were first met."""
    rules: dict[tuple[str, Severity], BrokenRule] = {}
    for violation in violations:
        key = violation.rule, violation.severity
        rules.setdefault(key, BrokenRule(*key, [])).violations.append(violation)
    return list(rules.values())


@dataclass
class BrokenPart:
    """A module of the model, or a line of the user's, and how often it breaks which rule; `what` is the module's class,
    or the line's code.
    """

    name: str
    what: str
    file: str = ""
    line: int = 0
    rules: Counter[tuple[str, Severity]] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        """Its violations."""
        return self.rules.total()

    @property
    def by_weight(self) -> list[tuple[str, Severity, int]]:
        """Rule, severity, how often: the severest first."""
        ordered = sorted(self.rules.items(), key=lambda each: (SEVERITIES.index(each[0][1]), -each[1]))
        return [(name, severity, count) for (name, severity), count in ordered]


def by_module(run: Run) -> list[BrokenPart]:
    """The modules whose nodes break rules, the worst first; those of no module under ""."""
    parts: dict[str, BrokenPart] = {}
    for violation in run.violations:
        graph = run.graphs.get(violation.node.graph)
        node = graph.by_name.get(violation.node.name) if graph else None
        name, kind = (node.module, node.module_class) if node else ("", "")
        part = parts.setdefault(name, BrokenPart(name, kind))
        part.what = part.what or kind
        part.rules[violation.rule, violation.severity] += 1
    return sorted(parts.values(), key=_weight)


def by_line(run: Run) -> list[BrokenPart]:
    """The user's lines that break rules, the worst first; what comes from no line under ""."""
    parts: dict[tuple[str, int], BrokenPart] = {}
    for violation in run.violations:
        place = violation.file, violation.line
        if place not in parts:
            graph = run.graphs.get(violation.node.graph)
            node = graph.by_name.get(violation.node.name) if graph else None
            parts[place] = BrokenPart("", node.code.strip() if node else "", *place)
        parts[place].rules[violation.rule, violation.severity] += 1
    return sorted(parts.values(), key=_weight)


def _weight(part: BrokenPart) -> tuple[int, int]:
    return min(SEVERITIES.index(severity) for _, severity in part.rules), -part.count
