"""List the sessions."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec

from idbg.format.amounts import counted
from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import AllowedSessions

ABOUT = "List the saved sessions, the newest first: program, target, verdict, counts. Nothing is run."
RUNS = False
_KEYS = (
    *("name", "program", "backend", "accelerator", "device", "started", "runs"),
    *("verdict", "said", "graphs", "kernels", "violations", "breaks", "processes", "damaged"),
)


class Arguments(tools.Arguments, frozen=True, kw_only=True):
    """The filter and the page."""

    find: Annotated[str, msgspec.Meta(description="Only those whose name, program or verdict has this text.")] = ""
    limit: tools.Count = 20
    skip: tools.From = 0


def argv(arguments: Arguments, allowed: AllowedSessions) -> list[str]:
    """`idbg list`."""
    return ["list", f"--output={allowed.output}"]


def _moment(seconds: object) -> str:
    """In ISO 8601; "" where it is not a time."""
    try:
        return datetime.fromtimestamp(float(str(seconds)), UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return ""


def summarize(arguments: Arguments, done: Done) -> tools.Result:
    """A page of the matching sessions, with a few facts of each."""
    known = done.report.get("sessions", [])
    found = [each for each in known if arguments.find.lower() in " ".join(map(str, each.values())).lower()]
    some, more = tools.page(found, arguments.skip, arguments.limit)
    rows = [{key: each.get(key) for key in _KEYS} for each in some]
    for row in rows:
        row["started"] = _moment(row["started"])
    summary = f"{counted(len(known), 'session')} in {done.report.get('output', '')}"
    if arguments.find:
        summary = f"{len(found):,} of {summary} with {arguments.find!r}"
    if not known:
        more = "there is none yet: the tool run makes one"
    return tools.Result(summary, {"sessions": rows}, more)
