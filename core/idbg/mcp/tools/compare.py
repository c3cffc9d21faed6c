"""Report what changed between two runs."""

from typing import Annotated

import msgspec

from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import AllowedSessions

ABOUT = (
    "Report what changed between two saved sessions, or between the last two runs of one: breaks, recompiles, "
    "violations, kernels and their code, time. Nothing is run."
)
RUNS = False


class Arguments(tools.Arguments, frozen=True, kw_only=True):
    """The two sessions."""

    session: tools.Session
    other: Annotated[str, msgspec.Meta(description="The second session; default: the last two runs of the first.")] = ""


def argv(arguments: Arguments, allowed: AllowedSessions) -> list[str]:
    """`idbg compare`."""
    return [
        "compare",
        allowed.session(arguments.session),
        *([allowed.session(arguments.other)] if arguments.other else []),
    ]


def summarize(arguments: Arguments, done: Done) -> tools.Result:
    """The differences; unchanged kernels are only counted."""
    report = done.report
    kernels = report.get("kernels") or []
    changed = [each for each in kernels if each.get("how") != "same"]
    facts = {
        name: value
        for name, value in report.items()
        if name not in ("schema", "summary", "kernels") and value not in (None, [])
    }
    facts |= {"kernels": changed, "kernels_unchanged": len(kernels) - len(changed)}
    return tools.Result(str(report.get("summary") or ""), facts)
