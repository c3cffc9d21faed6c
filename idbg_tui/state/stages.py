"""Order and name the stages of a run's graphs."""

from collections.abc import Iterable, Iterator

from idbg.format.verdicts import STAGE_NAMES
from idbg.schema.graphs import Graph, GraphId, Stage
from idbg.schema.runs import Run
from idbg.views.frame_graphs import representative

LEVELS: tuple[tuple[Stage, ...], ...] = (("dynamo",), ("joint",), ("forward", "backward", "inference"), ("post_grad",))
"""Stages that show the program once each: the counts of one level do not count a node twice."""
_ORDER = [stage for stages in LEVELS for stage in stages]


def level(run: Run, graph: GraphId) -> list[Graph]:
    """The run's graphs at this graph's level, over all its frames."""
    stages = next(stages for stages in LEVELS if graph.stage in stages)
    return [other for other in run.graphs.values() if other.id.stage in stages]


def of_frame(run: Run, frame: str) -> list[GraphId]:
    """The graphs of one frame, in the order of the stages."""
    mine = [graph for graph in run.graphs if graph.frame == frame]
    return sorted(mine, key=lambda graph: (_ORDER.index(graph.stage), graph.part == "backward"))


def frames(run: Run) -> list[str]:
    """Ids of the frames that have a graph, in the order in which they were compiled."""
    return list(dict.fromkeys(graph.frame for graph in run.graphs))


def most_telling(run: Run, frame: str = "") -> GraphId:
    """The forward or inference graph if it is there, else the Dynamo graph, else whatever was captured first."""
    return representative(graph for graph in run.graphs if frame in ("", graph.frame))


def nearest(run: Run, graph: GraphId) -> Iterator[Graph]:
    """Every other graph: first those of the same level, the next frames before the earlier ones, then other stages."""
    ids = list(run.graphs)
    here = ids.index(graph)
    others = [run.graphs[other] for other in (*ids[here + 1 :], *ids[:here])]
    same = {other.id for other in level(run, graph)}
    yield from (other for other in others if other.id in same)
    yield from (other for other in others if other.id not in same and other.id.frame == graph.frame)
    yield from (other for other in others if other.id not in same and other.id.frame != graph.frame)


def names_of(graphs: Iterable[Graph]) -> str:
    """The stages of a level, each once: "forward + backward"."""
    stages = {graph.id.stage for graph in graphs}
    return " + ".join(name for stage, name in STAGE_NAMES.items() if stage in stages)
