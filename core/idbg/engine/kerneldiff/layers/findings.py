"""The records of another compiler's layers and stages: what a search finds of one graph that the compiler was given."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from torch.fx import GraphModule

from idbg.engine.capture.fx import user_line
from idbg.engine.compat.origins import origin_of
from idbg.engine.kerneldiff.kernels.verdict import BufferVerdict
from idbg.schema.attribution import Maker, StageError, StageName
from idbg.schema.diff import KernelError, Unit
from idbg.schema.graphs import GraphId
from idbg.schema.remarks import Remark


@dataclass(frozen=True)
class LayerFindings:
    """The layers and the stages of the first graph that the compiler computes wrong."""

    layers: tuple[KernelError, ...]
    stages: tuple[StageError, ...]


@dataclass
class RunVerdicts:
    """The verdicts of nodes' values, and of the results, of one run."""

    verdicts: dict[str, BufferVerdict] = field(default_factory=dict)
    results: dict[str, BufferVerdict] = field(default_factory=dict)

    @property
    def is_wrong(self) -> bool:
        """Whether a result is wrong."""
        return any_wrong(self.results)


@dataclass(frozen=True)
class NodePlace:
    """Where a node of a backend's graph comes from: Dynamo's nodes in their frame, and the user's line."""

    frame: str = ""
    nodes: tuple[str, ...] = ()
    file: str = ""
    line: int = 0

    @property
    def node(self) -> str:
        """The last of Dynamo's nodes; "" where it is not known."""
        return self.nodes[-1] if self.nodes else ""

    @property
    def graph(self) -> GraphId | None:
        """Dynamo's graph."""
        return GraphId(self.frame, "dynamo") if self.frame and self.nodes else None


def place_of(gm: GraphModule, name: str) -> NodePlace:
    """Where the node of this name comes from."""
    node = next((each for each in gm.graph.nodes if each.name == name), None)
    origin = origin_of(node) if node is not None else None
    if origin is None:
        return NodePlace()
    file, line, _ = user_line(origin.stack_trace)
    return NodePlace(origin.frame, origin.nodes, file, line)


def stage_row(
    stage: StageName,
    gm: GraphModule,
    verdict: BufferVerdict | None,
    *,
    bad: str = "",
    added: float | None = None,
    made_by: Maker | None = None,
    reason: Iterable[Remark] = (),
) -> StageError:
    """The row of a stage, with the error of its worst result; `bad`: its first wrong node, if it is wrong."""
    error = verdict.error.rmse if verdict is not None else None
    place = place_of(gm, bad)
    return StageError(
        stage=stage,
        judged=verdict is not None,
        reason=tuple(reason),
        error=error,
        added=error if bad and added is None else added,
        bad=bool(bad),
        frame=place.frame or first_frame(gm),
        graph=place.graph,
        node=place.node or bad,
        file=place.file,
        line=place.line,
        made_by=made_by,
    )


def layer_row(
    unit: Unit,
    name: str,
    gm: GraphModule,
    computes: Iterable[str],
    holds: str,
    verdicts: Mapping[str, BufferVerdict],
    input_error: float,
    *,
    bad: bool = False,
    reason: Remark | str = "",
) -> KernelError:
    """The row of a layer, which `computes` these nodes of the graph and `holds` the value of one, if that is known."""
    verdict = verdicts.get(holds)
    place = place_of(gm, holds)
    nodes = dict.fromkeys(each for node in computes for each in place_of(gm, node).nodes)
    return KernelError(
        frame=place.frame or first_frame(gm),
        part="",
        name=name,
        graph=place.graph or _graph(gm, computes),
        nodes=tuple(nodes),
        file=place.file,
        line=place.line,
        observed=verdict is not None,
        reason=reason,
        error=verdict.error.rmse if verdict is not None else None,
        input_error=input_error if verdict is not None else None,
        eager_error=verdict.eager.rmse if verdict is not None else None,
        bad=bad,
        node=place.node,
        unit=unit,
    )


def worst(verdicts: Iterable[BufferVerdict]) -> BufferVerdict | None:
    """The one that is the farthest above what is allowed; None of none."""
    return max(verdicts, key=lambda verdict: (verdict.excess, verdict.error.rmse), default=None)


def any_wrong(verdicts: Mapping[str, BufferVerdict]) -> bool:
    return any(verdict.excess > 1 for verdict in verdicts.values())


def first_wrong(verdicts: Mapping[str, BufferVerdict], gm: GraphModule) -> str:
    """The first node, in the graph's order, with a wrong value; "" of none."""
    return next((n.name for n in gm.graph.nodes if n.name in verdicts and verdicts[n.name].excess > 1), "")


def _graph(gm: GraphModule, names: Iterable[str]) -> GraphId | None:
    return next((place.graph for name in names if (place := place_of(gm, name)).graph is not None), None)


def first_frame(gm: GraphModule) -> str:
    """The frame that the graph is of."""
    return next((origin.frame for node in gm.graph.nodes if (origin := origin_of(node)) is not None), "")
