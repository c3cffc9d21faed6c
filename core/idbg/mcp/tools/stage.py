"""Show what another compiler made of a graph at one of its stages."""

from typing import Annotated

import msgspec

from idbg.format.amounts import counted
from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import AllowedSessions
from idbg.schema.errors import BadInput

ABOUT = (
    "Show a stage of another compiler in a saved session (IREE's phases, OpenVINO's models, what a backend logs), with "
    "the graph's nodes that its lines belong to. Without a name: which stages there are. Nothing is run."
)
RUNS = False
_MAX_CHARACTERS = 8000  # of a text, in whole lines
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
    """As many lines as fit. Raises BadInput where `first_line` is after the last."""
    stage = done.report.get("stage")
    if not isinstance(stage, dict):
        stages = done.report.get("stages") or []
        keys = ("compiler", "name", "frame", "part", "language", "size", "origin")
        rows = [{**{key: each.get(key) for key in keys}, "linked_lines": len(each.get("links"))} for each in stages]
        return tools.Result(counted(len(rows), "stage"), {"stages": rows})
    lines = str(stage.pop("text", "")).splitlines()
    links = {link["line"]: link["nodes"] for link in stage.pop("links", ())}
    if lines and arguments.first_line > len(lines):
        raise BadInput(
            f"{stage['name']} has no line {arguments.first_line:,}", hint=f"it has {counted(len(lines), 'line')}"
        )
    some: list[str] = []
    room = _MAX_CHARACTERS
    for number, line in enumerate(lines[arguments.first_line - 1 :], arguments.first_line):
        shown = line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]}…"
        shown += f"   ← {', '.join(links[number])}" if number in links else ""
        room -= len(shown) + 1
        if room < 0 and some:
            break
        some.append(shown)
    after = arguments.first_line + len(some)
    more = f"{len(lines):,} lines in all: first_line={after} has the next" if after <= len(lines) else ""
    what = f"lines {arguments.first_line} to {after - 1} of {len(lines)}" if lines else str(done.report.get("note"))
    return tools.Result(f"{stage['compiler']}: {stage['name']}: {what}", {**stage, "text": "\n".join(some)}, more)
