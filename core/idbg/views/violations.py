"""Show which rules of the accelerator the program breaks: by rule, by the user's line, by the model's module."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Literal

from idbg.checking.check import AcceleratorResult, check_own_rules, of_run, unreadable
from idbg.format.amounts import counted
from idbg.format.glyphs import SEVERITY_SIGNS
from idbg.format.verdicts import violation_words
from idbg.schema.runs import Run
from idbg.schema.violations import SEVERITIES, Severity, Violation, marked
from idbg.schema.violations import count as counted_once
from idbg.views.broken_rules import BrokenRule, by_rule, rule_table
from idbg.views.cost_words import cost_lines, rule_cost
from idbg.views.tree import NO_OPTIONS, NO_REFS, Block, Cell, Column, Options, Place, Refs, Row, Section, Table, words

TITLE = "Violations"
_COUNT = Column("count", "count", 2)


def view(run: Run, options: Options = NO_OPTIONS) -> Section:
    """By rule, the severest first: what it wants, what fixes it, the lines; then by line, and by module."""
    rules = by_rule_only(run)
    if not run.violations:
        return rules
    modules = _parts(run, "module")
    named = any(row.key != ("module", "") for row in modules.rows)
    body: tuple[Block, ...] = (*rules.body, _parts(run, "line"), *([modules] if named else []))
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
    table = rule_table(rules, run.graphs, notes(checked))
    since = f", checked after the compile: {run.backend} checks none" if not run.checked else ""
    stopped = ", which stopped the compile" if run.stopped else ""
    of = f"{counted(len(rules), 'rule')} of {run.target.accelerator}"
    summary = f"{violation_words(broken)} of {of}{stopped}{since}"
    body: tuple[Block, ...] = (table, *_costs(run, checked))
    rejects = any(rule.severity == "reject" for rule in rules)
    return Section(TITLE, summary, counted_once(broken), "error" if rejects else "warning", body)


def count(run: Run) -> int | None:
    """Nodes that break a rule, once for each rule; None where no rule was checked."""
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


def notes(checked: AcceleratorResult | None) -> Callable[[BrokenRule], Iterator[Row]]:
    """What breaking a rule costs, as if it were the only one, and what the rule rests on."""

    def of_rule(rule: BrokenRule) -> Iterator[Row]:
        if checked and (cost := rule_cost(checked, rule.name)):
            yield Row(("cost", *rule.key), words(cost))
        for source in dict.fromkeys(violation.source for violation in rule.violations if violation.source):
            yield Row(("source", *rule.key, source), words((source, "dim")))

    return of_rule


def _parts(run: Run, kind: Literal["line", "module"]) -> Table:
    """The user's lines, or the model's modules, and how often each breaks which rules, the worst first."""
    broken: dict[tuple[str, int] | str, Counter[tuple[Severity, str]]] = {}
    texts: dict[tuple[str, int] | str, str] = {}
    for violation in (each for each in run.violations if not each.again):
        graph = run.graphs.get(violation.node.graph)
        node = graph.by_name.get(violation.node.name) if graph else None
        by_line, by_module = (violation.file, violation.line), node.module if node else ""
        part = by_line if kind == "line" else by_module
        broken.setdefault(part, Counter())[violation.severity, violation.rule] += 1
        if node and not texts.get(part):
            texts[part] = node.code.strip() if kind == "line" else node.module_class

    def weight(part: tuple[str, int] | str) -> tuple[int, int]:
        return min(SEVERITIES.index(severity) for severity, _ in broken[part]), -broken[part].total()

    rows = [_part(kind, part, broken[part], texts.get(part, "")) for part in sorted(broken, key=weight)]
    return Table((_COUNT,), rows, kind)


def _part(kind: str, part: tuple[str, int] | str, broken: Counter[tuple[Severity, str]], text: str) -> Row:
    place = Place(*part) if isinstance(part, tuple) and part[0] else None
    name = part if isinstance(part, str) else ""
    nowhere = "no line" if kind == "line" else "no module"
    by_weight = sorted(broken.items(), key=lambda each: (SEVERITIES.index(each[0][0]), -each[1]))
    rules = [
        words((f"{SEVERITY_SIGNS[severity]} {rule}", severity), (f" x{times:,}" if times > 1 else "", "dim"), "  ")
        for (severity, rule), times in by_weight
    ]
    shown = (*words(place or name or (nowhere, "dim"), "  "), *chain.from_iterable(rules), *words((text, "dim")))
    refs = Refs(file=place.file, line=place.line) if place else NO_REFS
    return Row((kind, part), shown, (Cell(broken.total()),), refs=refs, opens="edit")


def _costs(run: Run, checked: AcceleratorResult | None) -> Iterator[Row]:
    """What all violations cost that do not reject, in the graphs that a backend lowers."""
    why = unreadable(run)
    known = cost_lines(checked) if checked else [f"the cost is unknown: {why}"] if why else []
    for number, line in enumerate(known):
        yield Row(("cost", number), words(line.strip()))


def violations_after(run: Run) -> list[Violation]:
    """What the accelerator finds in the ATen graphs of a run whose backend checked no rules while it compiled."""
    findings = [findings for result in check_own_rules(run).accelerators for findings in result.findings]
    return marked([violation for each in findings for violation in each.violations()], run.links)


def as_json(run: Run) -> object:
    """The violations as records; null where no rule was checked."""
    why = "" if run.target.has_rules else "no accelerator is chosen"
    why = why or ("" if run.checked else unreadable(run))
    known = (run.violations if run.checked else violations_after(run)) if run.graphs and not why else None
    record = {"accelerator": run.target.accelerator, "asked_while_compiling": run.checked_rules, "violations": known}
    return record | ({"not_asked": why} if why else {})
