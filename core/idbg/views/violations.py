"""Show which rules of the accelerator the program breaks: by rule, by the user's line, by the model's module."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from idbg.checking.check import AcceleratorResult, check_own_rules, of_run, unreadable
from idbg.format.amounts import counted, few
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS
from idbg.format.verdicts import violation_words
from idbg.schema.graphs import NodeId
from idbg.schema.runs import Run
from idbg.schema.violations import SEVERITIES, Violation
from idbg.views.broken_rules import BrokenPart, BrokenRule, by_line, by_module, by_rule
from idbg.views.cost_words import cost_lines, rule_cost
from idbg.views.tree import NO_OPTIONS, Block, Cell, Column, Options, Place, Refs, Row, Section, Table, Words, words

TITLE = "Violations"
NAMES = 3
"""Nodes of a finding that are named in its row."""
_FIXES = 3
_COUNT = Column("count", "count", 2)


def view(run: Run, options: Options = NO_OPTIONS) -> Section:
    """By rule, the severest first: what it wants, what fixes it, the lines; then by line, and by module."""
    rules = by_rule_only(run)
    if not run.violations:
        return rules
    lines = Table((_COUNT,), [_part(part, "line") for part in by_line(run)], "line")
    modules = by_module(run)
    body: tuple[Block, ...] = (*rules.body, lines)
    if len(modules) > 1 or modules[0].name:
        body = (*body, Table((_COUNT,), [_part(part, "module") for part in modules], "module"))
    return Section(rules.title, rules.summary, rules.count, rules.verdict, body)


def by_rule_only(run: Run) -> Section:
    """The broken rules, as a run's report has them."""
    broken, without = _known(run)
    if not broken:
        return Section(TITLE, without, count(run), "unknown" if _is_unknown(run) else "ok")
    shown = replace(run, violations=broken)
    own = of_run(shown)
    checked = own.accelerators[0] if own and own.accelerators else None
    rules = by_rule(broken)
    table = rule_table(rules, checked)
    since = f", checked after the compile: {run.backend} checks none" if not run.checked else ""
    stopped = ", which stopped the compile" if run.stopped else ""
    of = f"{counted(len(rules), 'rule')} of {run.target.accelerator}"
    summary = f"{violation_words(broken)} of {of}{stopped}{since}"
    body: tuple[Block, ...] = (table, *_costs(run, checked))
    rejects = any(rule.severity == "reject" for rule in rules)
    return Section(TITLE, summary, len(broken), "error" if rejects else "warning", body)


def rule_table(
    broken: Iterable[BrokenRule],
    checked: AcceleratorResult | None,
    title: str = "",
    lines: int | None = None,
    most: int | None = None,
) -> Table:
    """The broken rules, the severest first, at most so many, and so many lines of each; of one line no fixes."""
    rules = sorted(broken, key=lambda rule: SEVERITIES.index(rule.severity))[:most]
    return Table((_COUNT,), [_rule(rule, checked, lines) for rule in rules], "rule", title)


def count(run: Run) -> int | None:
    """Nodes that break a rule, once for each rule and graph; None where no rule was checked."""
    return run.violation_count


def _known(run: Run) -> tuple[list[Violation], str]:
    """The violations, also those in the ATen graphs of a run whose backend checks no rules; where there are none, a
    sentence that says what that means.
    """
    if run.violations:
        return run.violations, ""
    if not run.graphs:
        return [], "no graph was captured, so no rule was checked"
    if not run.target.has_rules:
        return [], "no accelerator is chosen, so no rule was checked (--accelerator NAME; idbg check tries all)"
    if not run.checked and (why := unreadable(run)):
        return [], f"no rule was checked: {why}"
    broken = [] if run.checked else violations_after(run)
    cut = {"waiting": ", the run has not ended", "failed": ", the run failed"}.get(run.verdict, "")
    return broken, f"no rule of {run.target.accelerator} is broken in {counted(len(run.graphs), 'graph')}{cut}"


def _is_unknown(run: Run) -> bool:
    return not (run.graphs and run.target.has_rules) or run.verdict in ("waiting", "failed")


def _rule(rule: BrokenRule, checked: AcceleratorResult | None, most: int | None) -> Row:
    wanted = f"  wanted: {rule.wanted}" if rule.wanted else ""
    return Row(
        key := ("rule", rule.name, rule.severity),
        words(
            (f"{SEVERITY_SIGNS[rule.severity]} ", rule.severity),
            (rule.name, "strong"),
            (f"  {rule.severity}", "dim"),
            wanted,
        ),
        (Cell(len(rule.violations)),),
        rows=lambda: [*(() if most == 1 else _facts(rule, checked, key)), *_lines(rule, key, most)],
        open="text",
        opens="fold",
    )


def _facts(rule: BrokenRule, checked: AcceleratorResult | None, key: object) -> Iterator[Row]:
    """What to do, what it costs as if it were the only rule, what the rule rests on."""
    for number, fix in enumerate(rule.fixes[:_FIXES]):
        yield Row((key, "fix", number), words((f"{MARKS['arrow']} {fix}", "strong")))
    if len(rule.fixes) > _FIXES:
        yield Row((key, "fixes"), words((f"{counted(len(rule.fixes) - _FIXES, 'other fix')}", "dim")))
    if checked and (cost := rule_cost(checked, rule.name)):
        yield Row((key, "cost"), words(cost))
    for number, source in enumerate(rule.sources):
        yield Row((key, "source", number), words((source, "dim")))


def _lines(rule: BrokenRule, key: object, most: int | None) -> Iterator[Row]:
    """A row a line and finding, the user's own lines first."""
    lines = sorted(rule.lines, key=lambda line: not line.file)
    for line in lines[:most]:
        for found, nodes in line.found.items():
            at = (Place(line.file, line.line), "  ") if line.file else (("from no line of yours  ", "dim"),)
            yield Row(
                (key, line.file, line.line, found),
                words(*at, found, (f"  {node_names(nodes)}", "dim")),
                (Cell(len(nodes)),),
                refs=Refs(nodes=tuple(nodes), file=line.file, line=line.line),
                opens="node",
            )
    if more := len(lines) - len(lines[:most]):
        yield Row((key, "more"), words((f"and {counted(more, 'other line')}", "dim")))


def node_names(nodes: Sequence[NodeId]) -> str:
    """The first few, how many more there are, and of which stages: "add, mul, relu, +4 (dynamo)"."""
    stages = dict.fromkeys(node.graph.stage for node in nodes)
    return f"{few(dict.fromkeys(node.name for node in nodes), NAMES)} ({', '.join(stages)})"


def _part(part: BrokenPart, kind: str) -> Row:
    """A line of the user's or a module of the model, and how often it breaks which rules."""
    name: Words = words(part.name or f"of no {kind}")
    if kind == "line":
        name = words(Place(part.file, part.line)) if part.file else words(("from no line of yours", "dim"))
    rules = [
        words((f"{SEVERITY_SIGNS[severity]} {rule}", severity), (f" x{times:,}" if times > 1 else "", "dim"), "  ")
        for rule, severity, times in part.by_weight
    ]
    shown = (*name, *words("  "), *(piece for rule in rules for piece in rule), *words((part.what, "dim")))
    refs = Refs(file=part.file, line=part.line)
    return Row((kind, part.name, part.file, part.line), shown, (Cell(part.count),), refs=refs, opens="edit")


def _costs(run: Run, checked: AcceleratorResult | None) -> Iterator[Row]:
    """What all violations cost that do not reject, in the graphs that a backend lowers."""
    why = unreadable(run)
    known = cost_lines(checked) if checked else [f"the cost is unknown: {why}"] if why else []
    for number, line in enumerate(known):
        yield Row(("cost", number), words(line.strip()))


def violations_after(run: Run) -> list[Violation]:
    """What the accelerator finds in the ATen graphs of a run whose backend checked no rules while it compiled."""
    findings = [findings for result in check_own_rules(run).accelerators for findings in result.findings]
    return [violation for each in findings for violation in each.violations()]


def as_json(run: Run) -> object:
    """The violations as records; null where no rule was checked."""
    why = "" if run.target.has_rules else "no accelerator is chosen"
    why = why or ("" if run.checked else unreadable(run))
    known = (run.violations if run.checked else violations_after(run)) if run.graphs and not why else None
    record = {"accelerator": run.target.accelerator, "asked_while_compiling": run.checked_rules, "violations": known}
    return record | ({"not_asked": why} if why else {})
