"""What stands around a node, or in a module, of a session's graph?"""

from typing import Annotated, Any

import msgspec

from idbg.format.amounts import counted
from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import Where
from idbg.schema.errors import BadInput
from idbg.schema.graphs import Stage

ABOUT = (
    "Tell a part of a saved session's graph: a node with its neighbours up to `depth` steps, or a module. Each node "
    "with target, value, inputs, users, line of the program, kernels and broken rules. With neither: which graphs and "
    "modules there are. Nothing is run."
)
RUNS = False


class Arguments(tools.Arguments, frozen=True, kw_only=True):
    """Of which session which part."""

    session: tools.Session = "last"
    node: Annotated[str, msgspec.Meta(description="A node's name, as 'relu_1'.")] = ""
    depth: Annotated[int, msgspec.Meta(ge=0, le=20)] = 1
    module: Annotated[str, msgspec.Meta(description="A module of the program, as 'layer1.0'.")] = ""
    stage: Stage | None = None
    frame: Annotated[str, msgspec.Meta(description="A compiled frame, as '0/0'.")] = ""


def argv(asked: Arguments, where: Where) -> list[str]:
    """That part of the last run's graph."""
    if asked.node and asked.module:
        raise BadInput("a node and a module are named", hint="name one of them")
    line = ["graph", where.session(asked.session)]
    line += [tools.plain(asked.node), f"--depth={asked.depth}"] if asked.node else []
    line += [f"--module={asked.module}"] if asked.module else []
    line += [f"--stage={asked.stage}"] if asked.stage else []
    return line + ([f"--frame={asked.frame}"] if asked.frame else [])


def tell(asked: Arguments, done: Done) -> tools.Told:
    """The nodes without what is empty."""
    told = done.told
    if not (asked.node or asked.module):
        graphs = told.get("graphs") or []
        return tools.Told(counted(len(graphs), "graph"), {"graphs": graphs, "modules": told.get("modules")})
    nodes = [_known(node) for node in told.get("nodes") or []]
    graph = told.get("graph") or {}
    where = f"{graph.get('frame')} {graph.get('stage')}"
    said = f"{counted(len(nodes), 'node')} of {graph.get('nodes')} of the graph {where}"
    left = told.get("left_out") or 0
    more = "a smaller depth, or a module, is told whole" if asked.node else "a module inside of it is told whole"
    return tools.Told(said, {"graph": graph, "nodes": nodes, "nodes_left_out": left}, more)


def _known(node: dict[str, Any]) -> dict[str, Any]:
    """Without what is empty: a line is none without its file."""
    return {
        key: each for key, each in node.items() if each not in ("", [], None) and (key != "line" or node.get("file"))
    }
