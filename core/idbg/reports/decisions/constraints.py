"""Which rules of the accelerator does the program break, where?"""

from collections.abc import Iterable

from idbg.format.amounts import counted
from idbg.reports.text import violation_lines
from idbg.schema.runs import Run


def text(run: Run) -> Iterable[str]:
    """What is broken, by rule and by the user's line."""
    if not run.checked:
        yield f"{run.target.backend} asks no rules: --backend aot does"
    elif not run.graphs:
        yield "nothing was compiled: no rule was asked"
    elif not run.violations:
        yield f"{run.target.accelerator}: no rule is broken"
    else:
        yield f"{run.target.accelerator}: {counted(len(run.violations), 'violation')}"
        yield from violation_lines(run)


def as_json(run: Run) -> object:
    """The violations as records; null where no rule was asked."""
    asked = run.checked and bool(run.graphs)
    return {"accelerator": run.target.accelerator, "violations": run.violations if asked else None}
