"""Report the hardware rules that a session breaks."""

from typing import Annotated

import msgspec

from idbg.format.amounts import counted
from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import AllowedSessions

ABOUT = (
    "Report the rules of the accelerator that a saved session breaks: one entry for each rule, line of the program and "
    "finding, with its nodes, what was found, what is required, and how to fix it. Nothing is run."
)
RUNS = False


class Arguments(tools.Arguments, frozen=True, kw_only=True):
    """The session, the rule and the page."""

    session: tools.Session = "last"
    rule: Annotated[str, msgspec.Meta(description="Only this rule.")] = ""
    limit: tools.Count = 20
    skip: tools.From = 0


def argv(arguments: Arguments, allowed: AllowedSessions) -> list[str]:
    """`idbg analyze`."""
    return ["analyze", allowed.session(arguments.session), "--type=constraints", "--type=summary"]


def summarize(arguments: Arguments, done: Done) -> tools.Result:
    """A page of the violations, those of most nodes first."""
    found = done.report.get("constraints") or {}
    checked = found.get("violations")
    known = [each for each in checked or () if not each.get("again")]
    if checked is None:
        why = found.get("not_asked") or "nothing was compiled"
        return tools.Result(f"no rule was checked: {why}", {"violations": None})
    violations = [each for each in known if arguments.rule in ("", each.get("rule"))]
    some, more = tools.page(tools.grouped(violations), arguments.skip, arguments.limit)
    rules = list(dict.fromkeys(str(each.get("rule")) for each in violations))
    of_rules = f" of {', '.join(rules)}" if rules else ""
    summary = f"{counted(len(violations), 'violation')}{of_rules} by the rules of {found.get('accelerator', '')}"
    if arguments.rule and not violations:  # it does not look as if nothing were broken
        broken = ", ".join(dict.fromkeys(str(each.get("rule")) for each in known))
        summary = f"no violation of {arguments.rule} by the rules of {found.get('accelerator', '')}"
        more = f"{counted(len(known), 'violation')} of other rules: {broken}" if known else ""
    verdict = (done.report.get("summary") or {}).get("verdict")
    if verdict in ("waiting", "failed", "empty"):  # what was not captured was not checked
        summary += f"; only what was captured was checked: the verdict of the run is {verdict!r}"
    return tools.Result(summary, {"violations": some}, more)
