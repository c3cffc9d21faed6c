"""Find the smallest script that reproduces a failure."""

from typing import Annotated

import msgspec

from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import AllowedSessions

ABOUT = (
    "Search for the smallest script that reproduces a program's failure: a failed compile, a broken rule, wrong "
    "numbers, a graph break. It runs the program many times: set a limit in seconds or tries. The script is written "
    "to the session, and returned."
)
RUNS = True


class Arguments(tools.Compiled, frozen=True, kw_only=True):
    """The failure, and the limits."""

    rule: Annotated[str, msgspec.Meta(description="The severest violation of this rule.")] = ""
    node: Annotated[str, msgspec.Meta(description="The violation at this node, or what feeds it.")] = ""
    wrong: Annotated[bool, msgspec.Meta(description="Wrong numbers, compared with eager.")] = False
    graph_break: Annotated[bool, msgspec.Meta(description="A graph break.")] = False
    seconds: Annotated[int, msgspec.Meta(ge=1, le=7200, description="At most so many in all.")] = 300
    tries: Annotated[int, msgspec.Meta(ge=1, le=10000)] = 300


def argv(arguments: Arguments, allowed: AllowedSessions) -> list[str]:
    """`idbg minify`."""
    limits = tools.flags(seconds=arguments.seconds, calls=arguments.tries)
    what = {"rule": arguments.rule, "node": arguments.node, "wrong": arguments.wrong, "break": arguments.graph_break}
    return ["minify", *arguments.command_line(allowed), *limits, *tools.flags(**what)]


def summarize(arguments: Arguments, done: Done) -> tools.Result:
    """The script, and whether it reproduced the failure."""
    facts: dict[str, object] = {name: value for name, value in done.report.items() if name != "schema"}
    ended = {0: "nothing fails", 1: "there is a script, and it reproduced the failure", 3: "no script reproduced it"}
    return tools.Result(ended.get(done.status, f"ended with status {done.status}"), {"session": done.session, **facts})
