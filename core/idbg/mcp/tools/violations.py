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
    """What the session's rules found."""
    return ["analyze", where.session(asked.session), "--type=constraints"]


def tell(asked: Arguments, done: Done) -> tools.Told:
    """Those that were asked for, most nodes first."""
    found = done.told.get("constraints") or {}
    if found.get("violations") is None:
        return tools.Told("no rule was asked: nothing was compiled", {"violations": None})
    violations = [each for each in found["violations"] if asked.rule in ("", each.get("rule"))]
    some, more = tools.page(tools.grouped(violations), asked.skip, asked.limit)
    rules = list(dict.fromkeys(str(each.get("rule")) for each in violations))
    of_rules = f" of {', '.join(rules)}" if rules else ""
    said = f"{counted(len(violations), 'violation')}{of_rules} by the rules of {found.get('accelerator', '')}"
    return tools.Told(said, {"violations": some}, more)
