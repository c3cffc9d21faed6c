"""Show a node with its neighbours, or a module, of a session's graph."""

from typing import Annotated, Any

import msgspec

from idbg.format.amounts import counted
from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import AllowedSessions
from idbg.schema.errors import BadInput
from idbg.schema.graphs import Stage

ABOUT = (
    "Show a part of a saved session's graph: a node with its neighbours up to `depth` steps, or a module. Each node "
    "with target, value, inputs, users, line of the program, kernels and broken rules. With neither: which graphs and "
    "modules there are. Nothing is run."
)
RUNS = False


class Arguments(tools.Arguments, frozen=True, kw_only=True):
    """The session and the part of its graph."""

    session: tools.Session = "last"
    node: Annotated[str, msgspec.Meta(description="A node's name, as 'relu_1'.")] = ""
    depth: Annotated[int, msgspec.Meta(ge=0, le=20)] = 1
    module: Annotated[str, msgspec.Meta(description="A module of the program, as 'layer1.0'.")] = ""
    stage: Stage | None = None
    frame: Annotated[str, msgspec.Meta(description="A compiled frame, as '0/0'.")] = ""


def argv(arguments: Arguments, allowed: AllowedSessions) -> list[str]:
    """`idbg graph`."""
    if arguments.node and arguments.module:
        raise BadInput("both a node and a module are named", hint="name one of them")
    node = [tools.plain(arguments.node), f"--depth={arguments.depth}"] if arguments.node else []
    where = tools.flags(module=arguments.module, stage=arguments.stage, frame=arguments.frame)
    return ["graph", allowed.session(arguments.session), *node, *where]


def summarize(arguments: Arguments, done: Done) -> tools.Result:
    """The nodes without empty fields."""
    report = done.report
    if not (arguments.node or arguments.module):
        graphs = report.get("graphs") or []
        return tools.Result(counted(len(graphs), "graph"), {"graphs": graphs, "modules": report.get("modules")})
    nodes = [_known(node) for node in report.get("nodes") or []]
    graph = report.get("graph") or {}
    where = f"{graph.get('frame')} {graph.get('stage')}"
    summary = f"{counted(len(nodes), 'node')} of {graph.get('nodes')} of the graph {where}"
    left = report.get("left_out") or 0
    more = "use a smaller depth, or a module" if arguments.node else "use a module inside of it"
    return tools.Result(
        summary, {"graph": graph, "about": report.get("about"), "nodes": nodes, "nodes_left_out": left}, more
    )


def _known(node: dict[str, Any]) -> dict[str, Any]:
    """The node without empty fields; a line is dropped without its file."""
    return {
        key: each for key, each in node.items() if each not in ("", [], None) and (key != "line" or node.get("file"))
    }
