"""List broken rules, the severest first, each by the user's line: the same rows in every output."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from msgspec.structs import replace

from idbg.constraints import Finding
from idbg.format.amounts import counted
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS
from idbg.schema.graphs import Graph, GraphId, Node
from idbg.schema.repros import Sought
from idbg.schema.violations import SEVERITIES, Severity, Violation, count, problem
from idbg.views.tree import Cell, Column, Place, Refs, Row, Table, words

_NAMES = 24  # nodes of a line that are named
_LEAST = 64  # cells of a line's place and code, before names of nodes give way
_FIGURES = 100  # and of its place and finding, which has figures
_PARTS = ("found", "wanted", "fix", "hint")
_NODES, _ADDS = Column("which nodes", "names", 1, 13), Column("adds bytes", "share", 2, 10)
_EMPTY = Cell("")
_STAGES, _SEVERITY, _COUNT = Column("stage", "names"), Column("severity"), Column("count", "count", 3, 5)


@dataclass
class BrokenRule:
    """One rule of one severity, and all that break it or the first of them; `count` is of all.

    `new` is what was found first after the last edit of the rules, of `appeared` nodes.
    """

    name: str
    severity: Severity
    violations: list[Violation] = field(default_factory=list)
    count: int = 0
    new: set[str] = field(default_factory=set)
    appeared: int = 0
    key: tuple[str, ...] = ()
    """Identifies it among those of a run, also after an edit of its severity."""

    @cached_property
    def kinds(self) -> set[Finding]:
        """The different findings: read them once all violations are there."""
        return set(map(Finding.of, self.violations))

    @cached_property
    def shared(self) -> Finding:
        """What all findings have in common; "" for what differs."""
        return _shared(self.kinds)

    @property
    def heading(self) -> str:
        """What all findings share, and how many there are."""
        several = len(self.kinds) > 1
        return _sentence(
            replace(self.shared, found=f"{len(self.kinds)} different findings") if several else self.shared
        )

    @property
    def lines(self) -> dict[tuple[str, int], dict[Finding, list[Violation]]]:
        """What each of the user's lines has, in their order; what comes from no line at the end."""
        lines: dict[tuple[str, int], dict[Finding, list[Violation]]] = {}
        for violation in self.violations:
            findings = lines.setdefault((violation.file, violation.line), {})
            findings.setdefault(Finding.of(violation), []).append(violation)
        return dict(sorted(lines.items(), key=lambda each: (not each[0][0], each[0])))


def by_rule(violations: Iterable[Violation]) -> list[BrokenRule]:
    """The rules that are broken, the severest first."""
    rules: dict[tuple[str, Severity], BrokenRule] = {}
    for violation in violations:
        key = violation.rule, violation.severity
        rule = rules.setdefault(key, BrokenRule(*key))
        rule.violations.append(violation)
        rule.count += not violation.again
    return severest_first(rules.values())


def severest_first(rules: Iterable[BrokenRule]) -> list[BrokenRule]:
    """The order in which broken rules are listed."""
    ordered = sorted(rules, key=lambda rule: SEVERITIES.index(rule.severity))
    first = {rule.name: rule for rule in reversed(ordered)}
    for rule in ordered:
        rule.key = (rule.name,) if first[rule.name] is rule else (rule.name, rule.severity)
    return ordered


def rule_table(
    rules: Sequence[BrokenRule],
    graphs: Mapping[GraphId, Graph],
    notes: Callable[[BrokenRule], Iterable[Row]] = lambda rule: (),
    title: str = "",
    most: int | None = None,
) -> Table:
    """A row a rule, the `notes` on it below, then its lines, at most so many."""
    listed = [violation for rule in rules for violation in rule.violations]
    adds = any(violation.adds is not None for violation in listed)
    staged = len({violation.node.graph.stage for violation in listed}) > 1
    columns = (_NODES, *([_STAGES] if staged else []), *([_ADDS] if adds else []), _SEVERITY, _COUNT)
    rows = [_rule(rule, columns, graphs, notes, most) for rule in rules]
    return Table(
        columns, rows, "rule", title, least=_LEAST if all(len(rule.kinds) == 1 for rule in rules) else _FIGURES
    )


def _rule(
    rule: BrokenRule,
    columns: Sequence[Column],
    graphs: Mapping[GraphId, Graph],
    notes: Callable[[BrokenRule], Iterable[Row]],
    most: int | None,
) -> Row:
    lines = list(rule.lines.items())
    rows = [_line(rule, place, found, columns, graphs) for place, found in lines[:most]]
    if more := len(lines) - len(rows):
        rows.append(Row(("more", *rule.key), words((f"and {counted(more, 'other line')}", "dim"))))
    elif (left := rule.count - len(rule.violations)) > 0:
        more_nodes = words((f"and {left:,} more nodes: v walks through them", "dim"))
        rows.append(Row(("more", *rule.key), more_nodes))
    return Row(
        ("rule", *rule.key),
        words(
            (f"{SEVERITY_SIGNS[rule.severity]} ", rule.severity),
            (rule.name, "strong"),
            (f"  +{rule.appeared:,} new" if rule.appeared else "", "accent"),
            f"  {rule.heading}",
        ),
        (*(_EMPTY for _ in columns[2:]), Cell(rule.severity, rule.severity), Cell(rule.count)),
        rows=[*notes(rule), *rows],
        open="all",
        opens="node",
        repro=rows[0].repro,
    )


def _sentence(finding: Finding) -> str:
    fix = "; ".join(part for part in (finding.fix, finding.hint) if part)
    return problem(finding.found, finding.wanted) + (f" {MARKS['arrow']} {fix}" if fix else "")


def _shared(kinds: Collection[Finding]) -> Finding:
    parts = [{getattr(kind, part) for kind in kinds} for part in _PARTS]
    found, wanted, fix, hint = (next(iter(part)) if len(part) == 1 else "" for part in parts)
    return Finding(found, wanted, fix, hint=hint)


def _without(finding: Finding, known: Finding) -> Finding:
    """Only what is not known of it."""
    return replace(finding, **{part: "" for part in _PARTS if getattr(known, part)})


def _line(
    rule: BrokenRule,
    place: tuple[str, int],
    found: Mapping[Finding, list[Violation]],
    columns: Sequence[Column],
    graphs: Mapping[GraphId, Graph],
) -> Row:
    """One of the user's lines, with what most of its nodes have; below it, where they have several, each finding."""
    several = len(found) > 1
    by_count = sorted(found, key=lambda each: -len(found[each])) if several else list(found)
    violations = [each for alike in found.values() for each in alike]
    nodes = (graphs[each.node.graph].by_name.get(each.node.name) for each in violations if each.node.graph in graphs)
    at = Place(*place) if place[0] else "no line" if any(map(_is_computed, nodes)) else "inputs"
    own = shared = _without(by_count[0], rule.shared)
    if several:
        own, shared = replace(own, found=f"{own.found} +{len(found) - 1}"), _shared(found)
    text = _sentence(own) or next((node.code.strip() for node in nodes if node), "")
    key = ("line", *rule.key, *place)
    is_new = rule.new and any(each.found in rule.new for each in found)
    new = f"{MARKS['dot']} " if is_new else "  " if rule.new else ""
    return Row(
        key,
        words((new, "accent"), at, (f"  {text}", "dim")),
        _cells(by_count[0], violations, columns),
        [_finding((key, each), each, shared, found[each], columns) for each in by_count] if several else (),
        "text",
        _refs(violations),
        "node",
        repro=Sought("violation", node=violations[0].node, rule=rule.name),
    )


def _finding(
    key: Hashable, finding: Finding, shared: Finding, violations: Sequence[Violation], columns: Sequence[Column]
) -> Row:
    """One of several findings of a line."""
    own = words((_sentence(_without(finding, shared)), "dim"))
    return Row(key, own, _cells(finding, violations, columns), refs=_refs(violations), opens="node")


def _is_computed(node: Node | None) -> bool:
    return node is not None and node.op != "placeholder"


def _refs(violations: Sequence[Violation]) -> Refs:
    nodes = tuple(dict.fromkeys(each.node for each in violations))
    return Refs(nodes=nodes, file=violations[0].file, line=violations[0].line)


def _cells(finding: Finding, violations: Sequence[Violation], columns: Sequence[Column]) -> tuple[Cell, ...]:
    cells = []
    for column in columns:
        if column is _NODES:
            names = dict.fromkeys(each.node.name for each in violations)
            cells.append(Cell(", ".join(islice(names, _NAMES))))
        elif column is _STAGES:
            cells.append(Cell(", ".join(dict.fromkeys(each.node.graph.stage for each in violations))))
        elif column is _ADDS and finding.adds is not None:
            cells.append(Cell(finding.adds))
        else:
            number = count(violations) if column is _COUNT else 0  # none: an earlier stage's row has them
            cells.append(Cell(number) if number else _EMPTY)
    return tuple(cells)
