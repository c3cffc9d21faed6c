"""What is the smallest script that shows a failure again?"""

from typing import Annotated

import msgspec

from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import Where

ABOUT = (
    "Search for the smallest script that shows a program's failure again: a failed compile, a broken rule, wrong "
    "numbers, a graph break. It runs the program many times: give it a bound in seconds or tries. The script is "
    "written to the session, and told."
)
RUNS = True


class Arguments(tools.Compiled, frozen=True, kw_only=True):
    """Of what, and for how long."""

    rule: Annotated[str, msgspec.Meta(description="The severest violation of this rule.")] = ""
    node: Annotated[str, msgspec.Meta(description="The violation at this node, or what feeds it.")] = ""
    wrong: Annotated[bool, msgspec.Meta(description="Wrong numbers, compared with eager.")] = False
    graph_break: Annotated[bool, msgspec.Meta(description="A graph break.")] = False
    seconds: Annotated[int, msgspec.Meta(ge=1, le=7200, description="At most so many in all.")] = 300
    tries: Annotated[int, msgspec.Meta(ge=1, le=10000)] = 300


def argv(asked: Arguments, where: Where) -> list[str]:
    """The search."""
    line = ["minify", *asked.flags(where), f"--seconds={asked.seconds}", f"--calls={asked.tries}"]
    line += [f"--rule={asked.rule}"] if asked.rule else []
    line += [f"--node={asked.node}"] if asked.node else []
    line += ["--wrong"] if asked.wrong else []
    return line + (["--break"] if asked.graph_break else [])


def tell(asked: Arguments, done: Done) -> tools.Told:
    """The script, and how sure it is."""
    facts: dict[str, object] = {name: value for name, value in done.told.items() if name != "schema"}
    ended = {0: "nothing fails", 1: "there is a script, and it failed so again", 3: "no script was seen to show it"}
    return tools.Told(ended.get(done.status, f"ended with status {done.status}"), {"session": done.session, **facts})
