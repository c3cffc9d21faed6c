"""Report a check of several accelerators as text.

One table first, then, of each accelerator that does not take the program as it is, why, where and what it would take.
"""

import textwrap
from collections.abc import Iterator

from idbg.checking.check import FIXABLE, AcceleratorResult, Check, Treatment
from idbg.checking.costs import growth
from idbg.format.amounts import counted, elapsed, size
from idbg.format.file_names import near_place
from idbg.format.glyphs import SEVERITY_SIGNS
from idbg.reports.text import run_report
from idbg.schema.violations import SEVERITIES, Severity, Violation
from idbg.views.broken_rules import BrokenRule, by_rule
from idbg.views.cost_words import cost_lines

WIDTH = 100
LEAST_NAME = 12  # characters of an accelerator's name, however wide the other columns are
RULES_OF_MANY = 3  # shown of each accelerator in a list
LINES_OF_ONE = 5  # of the user's, shown of each rule where there is one accelerator
FIXES_OF_ONE = 3
NODES_OF_A_LINE = 3

ANSWER_SIGNS: dict[Treatment, str] = {"accept": "✔", "pad": "◇", "fallback": "⚠", "reject": "✘"}
_SAYS: dict[Treatment, str] = {
    "accept": "takes it as it is",
    "pad": "takes it with padding",
    "fallback": "takes it with fallbacks to the host",
    "reject": "rejects it",
}
_WITHOUT: dict[Treatment, str] = {
    "accept": "",
    "pad": "to need no padding",
    "fallback": "to leave nothing on the host",
    "reject": "what it would take",
}


def check_report(check: Check) -> list[str]:
    """The lines of the report."""
    lines = [*_head(check)] if check.run.failure is None else []
    if check.accelerators:
        lines += ["", *_table(check), *_unchecked(check)]
    alone = len(check.accelerators) == 1
    for checked in check.accelerators:
        if checked.verdict != "accept" or (alone and checked.by_severity):
            lines += ["", *_detail(checked, alone=alone)]
    return [*_failure(check), *(piece for line in lines for piece in _wrapped(line))]


def _failure(check: Check) -> Iterator[str]:
    """What the program failed of, as `idbg run` reports it: tracebacks are not wrapped."""
    if check.run.failure is None:
        return
    yield from run_report(check.run)
    if check.graphs:
        yield ""
        yield f"of the {counted(len(check.graphs), f'{check.level} graph')} captured before that:"


def _head(check: Check) -> Iterator[str]:
    run, failure = check.run, check.failure
    if failure is not None:
        yield f"✘ {failure.message}"
        yield f"  {failure.hint}"
        return
    yield f"{_headline(check)}   {run.program.label}   {check.level} graphs   {elapsed(run.seconds)}"
    frames = len({graph.id.frame for graph in check.graphs})
    nodes = sum(len(graph.nodes) for graph in check.graphs)
    unsized = f" and {counted(check.unsized, 'tensor')} of unknown size" if check.unsized else ""
    peak = f"peak memory {size(check.peak_bytes or 0)}{unsized}, with weights"
    yield (
        f"  {counted(len(check.graphs), 'graph')} of {counted(frames, 'frame')}, {counted(nodes, 'node')}, "
        f"{counted(run.times_broken, 'graph break')}; {peak}"
    )
    for graph_break in run.breaks[:LINES_OF_ONE]:
        where = near_place(graph_break.file, graph_break.line) or "an unknown line"
        yield f"  not checked: what runs in Python at {where}: {graph_break.reason.strip().partition(chr(10))[0]}"


def _headline(check: Check) -> str:
    if len(check.accelerators) == 1:
        (only,) = check.accelerators
        return f"{ANSWER_SIGNS[only.verdict]} {only.name} {_SAYS[only.verdict]}"
    taken, all_of_them = len(check.accepted), len(check.accelerators)
    sign = "✔" if taken else "✘"
    return f"{sign} {taken or 'none'} of {all_of_them} accelerators {'takes' if taken < 2 else 'take'} it"


def _table(check: Check) -> Iterator[str]:
    shown = [
        severity
        for severity in SEVERITIES
        if severity in FIXABLE or any(checked.by_severity[severity] for checked in check.accelerators)
    ]
    head = ["verdict", *shown, "waste", "parts"]
    rows = [[checked.verdict, *_numbers(checked, shown)] for checked in check.accelerators]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    room = max(LEAST_NAME, WIDTH - 2 - sum(width + 2 for width in widths))
    names = [_shortened(checked.name, room) for checked in check.accelerators]
    left = max(map(len, ["accelerator", *names]))
    yield f"  {'accelerator':{left}}{_cells(head, widths)}"
    for checked, name, row in zip(check.accelerators, names, rows, strict=True):
        yield f"{ANSWER_SIGNS[checked.verdict]} {name:{left}}{_cells(row, widths)}"


def _unchecked(check: Check) -> Iterator[str]:
    for checked in check.accelerators:
        for rule in checked.inapplicable_rules:
            yield f"  not checked: {checked.name}: {rule.name}, a rule about {', '.join(rule.stages)} graphs only"


def _numbers(checked: AcceleratorResult, shown: list[Severity]) -> list[str]:
    waste = checked.waste
    return [
        *(f"{checked.by_severity[severity]:,}" for severity in shown),
        growth(waste.bytes_percent) if waste.wasted_bytes else "0",
        f"{checked.cost[0]:,}",
    ]


def _cells(texts: list[str], widths: list[int]) -> str:
    (verdict, *numbers), (first, *rest) = texts, widths
    return f"  {verdict:{first}}" + "".join(f"  {text:>{width}}" for text, width in zip(numbers, rest, strict=True))


def _detail(checked: AcceleratorResult, *, alone: bool) -> Iterator[str]:
    """The lines of one accelerator: which rules are broken at which lines, at what cost, and what it would take."""
    broken = _broken(checked, SEVERITIES if alone else FIXABLE)
    if not alone:  # else it is in the headline
        yield f"{ANSWER_SIGNS[checked.verdict]} {checked.name} {_SAYS[checked.verdict]}"
    shown = broken if alone else broken[:RULES_OF_MANY]
    for rule in shown:
        yield from _rule(rule, lines=LINES_OF_ONE if alone else 1, fixes=FIXES_OF_ONE if alone else 0)
    if len(broken) > len(shown):
        rules = counted(len(broken) - len(shown), "rule")
        yield f"  … and {rules} more (--accelerator {checked.name} alone lists all)"
    yield from cost_lines(checked)
    yield from _needed(checked, alone=alone)


def _broken(checked: AcceleratorResult, severities: tuple[Severity, ...]) -> list[BrokenRule]:
    """The broken rules of these severities, the severest first."""
    violations = (violation for findings in checked.findings for violation in findings.violations())
    rules = [rule for rule in by_rule(violations) if rule.severity in severities]
    return sorted(rules, key=lambda rule: SEVERITIES.index(rule.severity))


def _rule(rule: BrokenRule, *, lines: int, fixes: int) -> Iterator[str]:
    count = counted(len(rule.violations), "node")
    wish = f"   wanted: {rule.wanted}" if rule.wanted else ""
    yield f"  {SEVERITY_SIGNS[rule.severity]} {rule.name}   {count}   {rule.severity}{wish}"
    by_line: dict[tuple[str, int], list[Violation]] = {}
    for violation in rule.violations:
        by_line.setdefault((violation.file, violation.line), []).append(violation)
    known = sorted(by_line.items(), key=lambda item: not item[0][0])  # the user's lines first
    for (file, line), on_line in known[:lines]:
        yield f"      {near_place(file, line) or 'no line of yours'}: {_found(on_line, wish=not wish)}"
    if len(known) > lines:
        yield f"      … and {counted(len(known) - lines, 'other line')}"
    yield from (f"      → {fix}" for fix in rule.fixes[:fixes])


def _found(violations: list[Violation], *, wish: bool) -> str:
    """What was found on one line first, at which nodes, and how much else; with a `wish`, what was wanted too."""
    first = violations[0].found
    names = list(dict.fromkeys(each.node.name for each in violations if each.found == first))
    more = f", +{len(names) - NODES_OF_A_LINE}" if len(names) > NODES_OF_A_LINE else ""
    others = len({each.found for each in violations}) - 1
    also = f"; {counted(others, 'other finding')}" if others else ""
    wanted = f", wanted {violations[0].wanted}" if wish else ""
    return f"{first}{wanted} ({', '.join(names[:NODES_OF_A_LINE])}{more}){also}"


def _needed(checked: AcceleratorResult, *, alone: bool) -> Iterator[str]:
    if checked.verdict == "accept":
        return
    needed = checked.relaxations(checked.verdict)
    shown = needed if alone else needed[:RULES_OF_MANY]
    more = [counted(len(needed) - len(shown), "change") + " more"] if len(needed) > len(shown) else []
    changes = [f"{relaxation.rule.name}: {relaxation.words}" for relaxation in shown] + more
    yield f"  {_WITHOUT[checked.verdict]}: {'; '.join(changes)}"


def _wrapped(line: str) -> list[str]:
    """The line in pieces of at most WIDTH characters, each but the first indented further."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [""]


def _shortened(name: str, room: int) -> str:
    return name if len(name) <= room else f"…{name[1 - room :]}"
