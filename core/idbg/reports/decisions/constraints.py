"""Which rules of the accelerator does the program break, where?"""

from collections.abc import Iterable
from dataclasses import replace

from idbg.checking.check import asked_again, unreadable
from idbg.format.verdicts import violation_words
from idbg.reports.text import violation_lines
from idbg.schema.runs import Run
from idbg.schema.violations import Violation


def text(run: Run) -> Iterable[str]:
    """What is broken, by rule and by the user's line."""
    if not run.graphs:
        yield "nothing was compiled: no rule was asked"
    elif not run.target.has_rules:
        yield "no accelerator is chosen, so there are no rules to break (--accelerator NAME; idbg check asks all)"
    elif not run.checked and (why := unreadable(run)):
        yield f"no rules were asked while it compiled, and {why}"
    elif not run.checked:
        since = asked_since(run)
        yield f"{run.target.backend} asks no rules while it compiles; of its ATen graphs {run.target.accelerator} says:"
        yield from violation_lines(replace(run, violations=since)) if since else ["no rule is broken"]
    elif not run.violations:
        cut = {"waiting": "the run never ended", "failed": "the run failed"}.get(run.verdict, "")
        yield f"{run.target.accelerator}: no rule is broken{f' in what was captured: {cut}' if cut else ''}"
    else:
        yield f"{run.target.accelerator}: {violation_words(run.violations)}"
        yield from violation_lines(run)


def as_json(run: Run) -> object:
    """The violations as records; null where no rule was asked."""
    why = "" if run.target.has_rules else "no accelerator is chosen"
    why = why or ("" if run.checked else unreadable(run))
    asked = run.graphs and not why
    violations = (run.violations if run.checked else asked_since(run)) if asked else None
    told = {"accelerator": run.target.accelerator, "asked_while_compiling": run.asked_rules, "violations": violations}
    return told | ({"not_asked": why} if why else {})


def asked_since(run: Run) -> list[Violation]:
    """What the accelerator finds, as on the screen, in the ATen graphs of a run whose backend did not ask it."""
    return [
        violation
        for result in asked_again(run).accelerators
        for findings in result.findings
        for violation in findings.violations()
    ]
