"""Which rules of the hardware does a session break, and where?"""

from typing import Annotated

import msgspec

from idbg.format.amounts import counted
from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import Where

ABOUT = (
    "Tell which rules of the accelerator a saved session breaks: one entry for each rule, line of the program and "
    "finding, with its nodes, what was found, what was wanted, and how to mend it. Nothing is run."
)
RUNS = False


class Arguments(tools.Arguments, frozen=True, kw_only=True):
    """Of which session which of them."""

    session: tools.Session = "last"
    rule: Annotated[str, msgspec.Meta(description="Only this rule's.")] = ""
    limit: tools.Count = 20
    skip: tools.From = 0


def argv(asked: Arguments, where: Where) -> list[str]:
    """What the session's rules found, and whether the run came to its end."""
    return ["analyze", where.session(asked.session), "--type=constraints", "--type=summary"]


def tell(asked: Arguments, done: Done) -> tools.Told:
    """Those that were asked for, most nodes first."""
    found = done.told.get("constraints") or {}
    known = found.get("violations")
    if known is None:
        why = found.get("not_asked") or "nothing was compiled"
        return tools.Told(f"no rule was asked: {why}", {"violations": None})
    violations = [each for each in known if asked.rule in ("", each.get("rule"))]
    some, more = tools.page(tools.grouped(violations), asked.skip, asked.limit)
    rules = list(dict.fromkeys(str(each.get("rule")) for each in violations))
    of_rules = f" of {', '.join(rules)}" if rules else ""
    said = f"{counted(len(violations), 'violation')}{of_rules} by the rules of {found.get('accelerator', '')}"
    if asked.rule and not violations:  # never as if nothing were broken
        broken = ", ".join(dict.fromkeys(str(each.get("rule")) for each in known))
        said = f"no violation of {asked.rule} by the rules of {found.get('accelerator', '')}"
        more = f"{counted(len(known), 'violation')} of other rules: {broken}" if known else ""
    verdict = (done.told.get("summary") or {}).get("verdict")
    if verdict in ("waiting", "failed", "empty"):  # what was not captured could not be asked
        said += f"; of what was captured alone, as the verdict of the run is {verdict!r}"
    return tools.Told(said, {"violations": some}, more)
