"""The records of what a search finds in one graph that a compiler was given: its layers and stages."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace
from torch.fx import GraphModule

from idbg.engine.capture.fx import user_line
from idbg.engine.compat.origins import origin_of
from idbg.engine.kerneldiff.kernels.verdict import BufferVerdict
from idbg.engine.kerneldiff.tensors.allowance import Size
from idbg.schema.attribution import Maker, StageError, StageName
from idbg.schema.diff import KernelError, Unit
from idbg.schema.graphs import GraphId, Stage
from idbg.schema.remarks import Remark

RIGHT = BufferVerdict(Size(), Size(), 0.0)


@dataclass(frozen=True)
class LayerFindings:
    """The layers and the stages of the first graph that the compiler computes wrong."""

    layers: tuple[KernelError, ...]
    stages: tuple[StageError, ...]

    @property
    def is_located(self) -> bool:
        """Whether the first bad stage is wrong at a known node."""
        return all(row.node for row in self.stages if row.bad)

    def located_at(self, node: KernelError) -> "LayerFindings":
        """The same, with the bad stage wrong at this node."""
        place = {"graph": node.graph, "node": node.node, "file": node.file, "line": node.line}
        return LayerFindings(self.layers, tuple(replace(row, **place) if row.bad else row for row in self.stages))


@dataclass(frozen=True)
class NodePlace:
    """Where a node comes from: nodes of a graph of its frame (of Dynamo's, unless `stage` is another), and the user's
    line.
    """

    frame: str
    nodes: tuple[str, ...] = ()
    file: str = ""
    line: int = 0
    stage: Stage = "dynamo"

    @property
    def node(self) -> str:
        """The last of the nodes; "" where it is not known."""
        return self.nodes[-1] if self.nodes else ""

    @property
    def graph(self) -> GraphId | None:
        """The graph of the nodes."""
        return GraphId(self.frame, self.stage) if self.frame and self.nodes else None


def place_of(gm: GraphModule, name: str) -> NodePlace:
    """Where the node of this name comes from; of no node, the graph's frame alone."""
    origins = {node.name: origin for node in gm.graph.nodes if (origin := origin_of(node)) is not None}
    if (origin := origins.get(name)) is None:
        return NodePlace(next((each.frame for each in origins.values()), ""))
    file, line, _ = user_line(origin.stack_trace)
    return NodePlace(origin.frame, origin.nodes, file, line)


def stage_row(
    stage: StageName,
    place: NodePlace,
    verdict: BufferVerdict | None,
    *,
    bad: str = "",
    output: str = "",
    made_by: Maker | None = None,
    reason: Iterable[Remark] = (),
) -> StageError:
    """The row of a stage, with the error of its worst result. If it is wrong, `bad` is its first wrong node, or
    `output` its first wrong result where no node is known.
    """
    error = verdict.error.rmse if verdict is not None else None
    return StageError(
        stage=stage,
        judged=verdict is not None,
        reason=tuple(reason),
        error=error,
        added=error if bad or output else None,
        bad=bool(bad or output),
        output=output,
        frame=place.frame,
        graph=place.graph,
        node=place.node or bad,
        file=place.file,
        line=place.line,
        made_by=made_by,
    )


def layer_row(
    unit: Unit,
    name: str,
    place: NodePlace,
    computes: Sequence[NodePlace],
    verdict: BufferVerdict | None,
    input_error: float,
    *,
    bad: bool = False,
    reason: Remark | str = "",
) -> KernelError:
    """The row of a layer, which `computes` some nodes, and whose value is that of the node at `place`."""
    return KernelError(
        frame=place.frame,
        part="",
        name=name,
        graph=next((each.graph for each in (place, *computes) if each.graph is not None), None),
        nodes=tuple(dict.fromkeys(node for each in computes for node in each.nodes)),
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
