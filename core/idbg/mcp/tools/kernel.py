"""Show the generated source of a kernel."""

from typing import Annotated

import msgspec

from idbg.format.amounts import counted
from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import AllowedSessions

ABOUT = (
    "Show the generated source of a kernel of a saved session, C++ or Triton, with the nodes that it computes and "
    "the edited versions that were tried in its place (`idbg kernel SESSION NAME --edit FILE`). Without "
    "a name: which kernels there are. Nothing is run."
)
RUNS = False
_VERSIONS = 5  # edited ones, the last


class Arguments(tools.Arguments, frozen=True, kw_only=True):
    """The session, the kernel, and the first line."""

    session: tools.Session = "last"
    name: Annotated[str, msgspec.Meta(description="Its name, a unique part of it, or a launch's handle.")] = ""
    first_line: Annotated[int, msgspec.Meta(ge=1, description="The first line, for the next page.")] = 1


def argv(arguments: Arguments, allowed: AllowedSessions) -> list[str]:
    """`idbg kernel`."""
    return ["kernel", allowed.session(arguments.session), *([tools.plain(arguments.name)] if arguments.name else [])]


def summarize(arguments: Arguments, done: Done) -> tools.Result:
    """As many lines as fit."""
    kernel = done.report.get("kernel")
    if not isinstance(kernel, dict):
        kernels = done.report.get("kernels") or []
        rows = [{key: each.get(key) for key in ("name", "language", "frame", "part", "nodes")} for each in kernels]
        return tools.Result(counted(len(rows), "kernel"), {"kernels": rows})
    lines = str(done.report.get("source", "")).splitlines()
    text, which, more = tools.lines_page(kernel["name"], lines, arguments.first_line, lambda _, line: line)
    what = which or "an extern op: it has no source"
    tried = done.report.get("versions") or []
    versions = [{key: each.get(key) for key in ("version", "verdict", "words")} for each in tried[-_VERSIONS:]]
    found = {**kernel, "source": text, **({"versions": versions} if versions else {})}
    return tools.Result(f"{kernel['name']}, {kernel['language']}: {what}", found, more)
