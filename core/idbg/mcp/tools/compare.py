"""What changed between two runs?"""

from typing import Annotated

import msgspec

from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import Where

ABOUT = (
    "Tell what changed between two saved sessions, or between the last two runs of one: breaks, recompiles, "
    "violations, kernels and their code, time. Nothing is run."
)
RUNS = False


class Arguments(tools.Arguments, frozen=True, kw_only=True):
    """Which two."""

    session: tools.Session
    other: Annotated[
        str, msgspec.Meta(description="The second session; without it, the first one's last two runs.")
    ] = ""


def argv(asked: Arguments, where: Where) -> list[str]:
    """The two."""
    return ["compare", where.session(asked.session), *([where.session(asked.other)] if asked.other else [])]


def tell(asked: Arguments, done: Done) -> tools.Told:
    """What differs; kernels that are the same are counted alone."""
    told = done.told
    kernels = told.get("kernels") or []
    changed = [each for each in kernels if each.get("how") != "same"]
    facts = {
        name: value
        for name, value in told.items()
        if name not in ("schema", "summary", "kernels") and value not in (None, [])
    }
    facts |= {"kernels": changed, "kernels_unchanged": len(kernels) - len(changed)}
    return tools.Told(str(told.get("summary") or ""), facts)
