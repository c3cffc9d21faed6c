"""What comes of compiling and running a program once?"""

from typing import Annotated

import msgspec

from idbg.format.amounts import counted
from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import Where

ABOUT = (
    "Compile and run a program once under torch.compile, and tell what came of it: verdict, broken hardware rules, "
    "graphs, kernels, breaks, recompiles, failure. It runs the user's code, and takes seconds to minutes. The session "
    "that it names can be given to the other tools."
)
RUNS = True


class Arguments(tools.Compiled, frozen=True, kw_only=True):
    """What is run, for what."""

    strict: Annotated[bool, msgspec.Meta(description="Whether a broken rule stops the compile.")] = False


def argv(asked: Arguments, where: Where) -> list[str]:
    """The run."""
    return ["run", *asked.flags(where), "--strict" if asked.strict else "--warn"]


def tell(asked: Arguments, done: Done) -> tools.Told:
    """The verdict, what is wrong, and where the rest is."""
    told = done.told
    violations = told.get("violations") or []
    frames = [
        {
            **{key: frame.get(key) for key in ("id", "function", "file", "line")},
            "graphs": [
                f"{graph['stage']} {graph['part']}".strip() + f": {len(graph['nodes'])} nodes"
                for graph in frame["graphs"]
            ],
            "kernels": list(dict.fromkeys(kernel["name"] for kernel in frame["kernels"])),
        }
        for frame in told.get("frames") or []
    ]
    facts: dict[str, object] = {
        "verdict": told.get("verdict"),
        "said": told.get("said"),
        "numbers": told.get("numbers"),
        "session": done.session,
        "seconds": told.get("seconds"),
        "error": told.get("error"),
        "violations": tools.grouped(violations),
        "breaks": told.get("breaks"),
        "recompiles": told.get("recompiles"),
        "frames": frames,
    }
    said = f"{told.get('said') or told.get('verdict')}: {counted(len(frames), 'frame')}"
    return tools.Told(said, facts, "the tools violations, graph, kernel and decisions tell more of the session")
