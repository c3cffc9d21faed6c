"""Show which accelerators take a program, and what is in the way of those that do not take it as it is."""

from collections.abc import Iterator

from idbg.checking.check import FIXABLE, AcceleratorResult, Check, Treatment
from idbg.format.amounts import counted, elapsed, few, size
from idbg.format.glyphs import SEVERITY_SIGNS, VERDICT_SIGNS
from idbg.schema.violations import SEVERITIES, Severity
from idbg.views.broken_rules import by_rule, rule_table
from idbg.views.cost_words import cost_lines
from idbg.views.tree import Block, Cell, Column, Place, Row, Section, Table, Tone, Verdict, words
from idbg.views.violations import notes

TITLE = "Check"
RULES_OF_MANY = 3  # shown of each accelerator in a list
LINES_OF_ONE = 5  # of the user's, shown of each rule where there is one accelerator
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


def view(check: Check) -> Section:
    """One table of accelerators; then, of each that does not take the program as it is, why, where and what helps."""
    if not check.graphs and check.failure is not None:
        hint = Row("hint", words((check.failure.hint, "dim")))
        return Section(TITLE, f"{VERDICT_SIGNS['failed']} {check.failure.message}", verdict="error", body=(hint,))
    alone = len(check.accelerators) == 1
    body: list[Block] = [*_facts(check), _table(check), *_unchecked(check)]
    for checked in check.accelerators:
        if checked.verdict != "accept" or (alone and checked.by_severity):
            body += _detail(checked, alone=alone)
    verdict: Verdict = "error" if not check.accepted else "ok" if check.run.failure is None else "warning"
    return Section(TITLE, _summary(check), len(check.accepted), verdict, tuple(body))


def _summary(check: Check) -> str:
    if check.run.failure is not None:
        return f"of the {counted(len(check.graphs), f'{check.level} graph')} captured before that:"
    if len(check.accelerators) == 1:
        answer = _answer(check.accelerators[0])
    else:
        taken = len(check.accepted)
        sign = VERDICT_SIGNS["clean" if taken else "failed"]
        verb = "takes" if taken < 2 else "take"
        answer = f"{sign} {taken or 'none'} of {len(check.accelerators)} accelerators {verb} it"
    return f"{answer}   {check.run.program.label}   {check.level} graphs   {elapsed(check.run.seconds)}"


def _answer(checked: AcceleratorResult) -> str:
    return f"{_sign(checked)} {checked.name} {_SAYS[checked.verdict]}"


def _sign(checked: AcceleratorResult) -> str:
    return VERDICT_SIGNS["clean"] if checked.verdict == "accept" else SEVERITY_SIGNS[checked.verdict]


def _facts(check: Check) -> Iterator[Row]:
    if check.run.failure is not None:
        return
    frames = len({graph.id.frame for graph in check.graphs})
    nodes = sum(len(graph.nodes) for graph in check.graphs)
    unsized = f" and {counted(check.unsized, 'tensor')} of unknown size" if check.unsized else ""
    known = f"{counted(len(check.graphs), 'graph')} of {counted(frames, 'frame')}, {counted(nodes, 'node')}"
    peak = f"peak memory {size(check.peak_bytes or 0)}{unsized}, with weights"
    yield Row("graphs", words(f"{known}, {counted(check.run.times_broken, 'graph break')}; {peak}"))
    for number, broken in enumerate(check.run.breaks[:LINES_OF_ONE]):
        at = Place(broken.file, broken.line) if broken.file else "an unknown line"
        reason = broken.reason.strip().partition("\n")[0]
        yield Row(("break", number), words("not checked: what runs in Python at ", at, f": {reason}"))


def _table(check: Check) -> Table:
    shown = [each for each in SEVERITIES if each in FIXABLE or any(of.by_severity[each] for of in check.accelerators)]
    counts = [Column(severity, "count", 3) for severity in shown]
    columns = (Column("verdict", rank=4), *counts, Column("waste", "share", 2), Column("parts", "count", 1))
    return Table(columns, [_row(each, shown) for each in check.accelerators], "accelerator", names=True)


def _row(checked: AcceleratorResult, shown: list[Severity]) -> Row:
    tone: Tone = "clean" if checked.verdict == "accept" else checked.verdict
    numbers = (*(checked.by_severity[each] for each in shown), checked.waste.bytes_percent / 100, checked.cost[0])
    named = words((f"{_sign(checked)} ", tone), checked.name)
    return Row(("accelerator", checked.name), named, (Cell(checked.verdict, tone), *map(Cell, numbers)))


def _unchecked(check: Check) -> Iterator[Row]:
    for checked in check.accelerators:
        for rule in checked.inapplicable_rules:
            about = f"a rule about {', '.join(rule.stages)} graphs only"
            yield Row(
                ("not checked", checked.name, rule.name), words(f"not checked: {checked.name}: {rule.name}, {about}")
            )


def _detail(checked: AcceleratorResult, *, alone: bool) -> Iterator[Block]:
    """Which rules one accelerator finds broken at which lines, at what cost, and what it would take."""
    graphs = {findings.graph.id: findings.graph for findings in checked.findings}
    found = by_rule(violation for findings in checked.findings for violation in findings.violations())
    broken = [rule for rule in found if alone or rule.severity in FIXABLE]
    if alone:  # the summary has the answer
        yield rule_table(broken, graphs, notes(checked), "broken rules", LINES_OF_ONE)
    else:
        yield rule_table(broken[:RULES_OF_MANY], graphs, title=_answer(checked), most=1)
    if not alone and len(broken) > RULES_OF_MANY:
        more = f"and {counted(len(broken) - RULES_OF_MANY, 'rule')} more (--accelerator {checked.name} alone lists all)"
        yield Row(("rules", checked.name), words((more, "dim")))
    for number, line in enumerate((*cost_lines(checked), *_needed(checked, alone=alone))):
        yield Row(("cost", checked.name, number), words(line.strip()))


def _needed(checked: AcceleratorResult, *, alone: bool) -> Iterator[str]:
    if checked.verdict == "accept":
        return
    changes = [f"{each.rule.name}: {each.words}" for each in checked.relaxations(checked.verdict)]
    shown = few(changes, len(changes) if alone else RULES_OF_MANY, "; and {:,} more", "; ")
    yield f"{_WITHOUT[checked.verdict]}: {shown}"
