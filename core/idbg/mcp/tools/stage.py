"""Show what another compiler made of a graph at one of its stages."""

from typing import Annotated

import msgspec

from idbg.format.amounts import counted
from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import AllowedSessions

ABOUT = (
    "Show a stage of another compiler in a saved session (IREE's phases, OpenVINO's models, what a backend logs), with "
    "the graph's nodes that its lines belong to. Without a name: which stages there are. Nothing is run."
)
RUNS = False
_MAX_LINE = 400  # characters of a line


class Arguments(tools.Arguments, frozen=True, kw_only=True):
    """The session, the stage, and the first line."""

    session: tools.Session = "last"
    name: Annotated[str, msgspec.Meta(description="Its name, or a unique part of it.")] = ""
    first_line: Annotated[int, msgspec.Meta(ge=1, description="The first line, for the next page.")] = 1


def argv(arguments: Arguments, allowed: AllowedSessions) -> list[str]:
    """`idbg stage`."""
    return ["stage", allowed.session(arguments.session), *([tools.plain(arguments.name)] if arguments.name else [])]


def summarize(arguments: Arguments, done: Done) -> tools.Result:
    """As many lines as fit."""
    stage = done.report.get("stage")
    if not isinstance(stage, dict):
        stages = done.report.get("stages") or []
        keys = ("compiler", "name", "frame", "part", "language", "size", "origin")
        rows = [{**{key: each.get(key) for key in keys}, "linked_lines": len(each.get("links"))} for each in stages]
        return tools.Result(counted(len(rows), "stage"), {"stages": rows})
    lines = str(stage.pop("text", "")).splitlines()
    links = {link["line"]: link["nodes"] for link in stage.pop("links", ())}

    def shown(number: int, line: str) -> str:
        cut = line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]}…"
        return cut + (f"   ← {', '.join(links[number])}" if number in links else "")

    text, which, more = tools.lines_page(stage["name"], lines, arguments.first_line, shown)
    what = which or str(done.report.get("note"))
    return tools.Result(f"{stage['compiler']}: {stage['name']}: {what}", {**stage, "text": text}, more)
