"""Which rules of the accelerator does the program break, where, at what cost, and what would mend it?"""

from dataclasses import dataclass

from markupsafe import Markup

from idbg.checking.check import AcceleratorResult, of_run, unreadable
from idbg.format.amounts import counted
from idbg.render.html.links import spelt
from idbg.render.html.templating import fill
from idbg.reports.again import ask
from idbg.reports.broken_rules import BrokenLine, BrokenPart, BrokenRule, by_line, by_module, by_rule
from idbg.reports.cost_text import cost_lines, rule_cost
from idbg.reports.documents import Told
from idbg.schema.runs import Run
from idbg.schema.violations import SEVERITIES

TITLE = "Violations"
ANCHOR = "violations"
LINES = 200  # of one rule, and of a run, that are listed
MODULES = 200
MODULES_OPEN = 12  # so many are seen at once, more unfold
NODES = 12  # of one finding, that are named
FIXES = 20  # of one rule


@dataclass(frozen=True)
class RuleTold:
    """One broken rule: its address in the page, and what breaking it costs in the graphs that a backend lowers."""

    rule: BrokenRule
    id: str
    cost: str

    @property
    def lines(self) -> list[BrokenLine]:
        """Those that are listed, the user's own first."""
        return sorted(self.rule.lines, key=lambda line: not line.file)[:LINES]

    @property
    def lines_left(self) -> int:
        """How many are not."""
        return max(len(self.rule.lines) - LINES, 0)


@dataclass(frozen=True)
class RunTold:
    """The violations of one run, the severest rule first."""

    run: Run
    costs: list[str]
    rules: list[RuleTold]
    lines: list[BrokenPart]
    modules: list[BrokenPart]

    @property
    def costly(self) -> bool:
        """Whether breaking any of the rules costs what is counted."""
        return any(rule.cost for rule in self.rules)


def section(told: Told) -> Markup:
    """Each run that breaks rules: by rule, by the user's line, by the model's module; else that none is broken, or
    which command asks.
    """
    runs = list(told.history.runs.values())
    broken = [_run(run) for run in runs if run.violations]
    return fill(
        "violations.html",
        broken=broken,
        clean=[(run, unbroken(run)) for run in runs if not run.violations],
        ask=ask("check", told.history.last),
        runs=runs,
        lines_shown=LINES,
        modules_shown=MODULES,
        modules_open=MODULES_OPEN,
        nodes_shown=NODES,
        fixes_shown=FIXES,
    )


def _run(run: Run) -> RunTold:
    own = of_run(run)
    checked = own.accelerators[0] if own and own.accelerators else None
    rules = sorted(by_rule(run.violations), key=lambda rule: SEVERITIES.index(rule.severity))
    return RunTold(
        run,
        [line.strip() for line in cost_lines(checked)]
        if checked
        else [f"What it costs is not known: {unreadable(run)}."],
        [
            RuleTold(rule, f"rule:{run.number}:{spelt(rule.name)}:{rule.severity}", _cost(checked, rule))
            for rule in rules
        ],
        by_line(run),
        by_module(run),
    )


def _cost(checked: AcceleratorResult | None, rule: BrokenRule) -> str:
    return rule_cost(checked, rule.name) if checked else ""


def unbroken(run: Run) -> str:
    """What is known of the rules in a run that broke none."""
    if not run.asked_rules:
        own = f"; idbg analyze SESSION --type constraints asks {run.target.accelerator}"
        known = own if run.target.has_rules and run.graphs else ""
        return f"no rules were asked: {ask('check', run)} asks all accelerators{known}"
    if not run.graphs:
        return "no graph was captured, so no rule was asked"
    known = "so far no rule" if run.verdict == "waiting" else "no rule"
    return f"{known} of {run.target.accelerator} is broken in {counted(len(run.graphs), 'graph')}"
