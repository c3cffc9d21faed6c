"""Which sessions are there?"""

from datetime import UTC, datetime
from typing import Annotated

import msgspec

from idbg.format.amounts import counted
from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import Where

ABOUT = "List the sessions that idbg keeps, the newest first: program, target, verdict, counts. Nothing is run."
RUNS = False
_KEYS = (
    *("name", "program", "backend", "accelerator", "device", "started", "runs"),
    *("verdict", "said", "graphs", "kernels", "violations", "breaks", "damaged"),
)


class Arguments(tools.Arguments, frozen=True, kw_only=True):
    """Which of them."""

    find: Annotated[str, msgspec.Meta(description="Only those whose name, program or verdict has this text.")] = ""
    limit: tools.Count = 20
    skip: tools.From = 0


def argv(asked: Arguments, where: Where) -> list[str]:
    """All of the output folder."""
    return ["list", f"--output={where.output}"]


def _moment(seconds: object) -> str:
    """As ISO 8601 has it; "" of what is no time."""
    try:
        return datetime.fromtimestamp(float(str(seconds)), UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return ""


def tell(asked: Arguments, done: Done) -> tools.Told:
    """Those that were asked for, a few facts of each."""
    known = done.told.get("sessions", [])
    found = [each for each in known if asked.find.lower() in " ".join(map(str, each.values())).lower()]
    some, more = tools.page(found, asked.skip, asked.limit)
    rows = [{key: each.get(key) for key in _KEYS} for each in some]
    for row in rows:
        row["started"] = _moment(row["started"])
    said = f"{counted(len(known), 'session')} in {done.told.get('output', '')}"
    if asked.find:
        said = f"{len(found):,} of {said} with {asked.find!r}"
    if not known:
        more = "there is none yet: the tool run makes one"
    return tools.Told(said, {"sessions": rows}, more)
