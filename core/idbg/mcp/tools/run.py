"""Compile and run a program once."""

from typing import Annotated

import msgspec

from idbg.format.amounts import counted
from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import AllowedSessions

ABOUT = (
    "Compile and run a program once under torch.compile, and report the result: verdict, broken hardware rules, "
    "graphs, kernels, breaks, recompiles, failure. It runs the user's code, and takes seconds to minutes. The other "
    "tools take the session that it names."
)
RUNS = True


class Arguments(tools.Compiled, frozen=True, kw_only=True):
    """The program, the target, and strict mode."""

    strict: Annotated[bool, msgspec.Meta(description="Whether a broken rule stops the compile.")] = False


def argv(arguments: Arguments, allowed: AllowedSessions) -> list[str]:
    """`idbg run`."""
    return ["run", *arguments.command_line(allowed), "--strict" if arguments.strict else "--warn"]


def summarize(arguments: Arguments, done: Done) -> tools.Result:
    """The verdict, and what is wrong."""
    report = done.report
    violations = report.get("violations") or []
    frames = [
        {
            **{key: frame.get(key) for key in ("id", "function", "file", "line")},
            "graphs": [
                f"{graph['stage']} {graph['part']}".strip() + f": {len(graph['nodes'])} nodes"
                for graph in frame["graphs"]
            ],
            "kernels": list(dict.fromkeys(kernel["name"] for kernel in frame["kernels"])),
        }
        for frame in report.get("frames") or []
    ]
    facts: dict[str, object] = {
        "verdict": report.get("verdict"),
        "said": report.get("said"),
        "numbers": report.get("numbers"),
        "session": done.session,
        "seconds": report.get("seconds"),
        "error": report.get("error"),
        "violations": tools.grouped(violations),
        "breaks": report.get("breaks"),
        "recompiles": report.get("recompiles"),
        "frames": frames,
    }
    summary = f"{report.get('said') or report.get('verdict')}: {counted(len(frames), 'frame')}"
    more = "the tools violations, graph, kernel and decisions have more of the session"
    if children := report.get("children"):
        facts["children"] = children
        more += "; the tool processes lists what its children compiled"
    return tools.Result(summary, facts, more)
