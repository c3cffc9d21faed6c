"""Write a run as JSON. docs/json-schema.md documents the keys.

Every key is always there, so that a reader needs no defaults; values that are not known are null or empty.
"""

from idbg.analysis.liveness import memory_profile
from idbg.analysis.provenance import Provenance
from idbg.checking.check import lowered, of_run
from idbg.format.verdicts import verdict_words
from idbg.reports.cost_json import CostReport, cost_report
from idbg.schema.code import Kernel, OutputCode
from idbg.schema.events import FrameFailed, Recompiled
from idbg.schema.graphs import Dim, Frame, Graph, Node, NodeId, TensorMeta, hint_of
from idbg.schema.processes import ProcessReport
from idbg.schema.runs import Run
from idbg.schema.violations import Violation
from idbg.schema.written import Written, keys_of, written

SCHEMA = "idbg.run/1"


@keys_of(TensorMeta, "dtype shape stride device hints stride_hints bytes=nbytes")
class TensorReport(Written, frozen=True):
    """`hints` and `stride_hints` hold, place by place, the value a symbol had while compiling; null if it had none."""

    shape: list[int | str]
    stride: list[int | str]
    hints: list[int | None]
    stride_hints: list[int | None]


@keys_of(
    Node,
    "name op target args role dtype shape stride device hints tensors "
    "module module_class file line code inputs kernels",
)
class NodeReport(Written, frozen=True):
    """dtype, shape, stride, device and hints are those of the first tensor; `tensors` has all of them."""

    dtype: str | None
    shape: list[int | str] | None
    stride: list[int | str] | None
    device: str | None
    hints: list[int | None] | None
    tensors: list[TensorReport]
    kernels: list[str]


@keys_of(Graph, "stage=id.stage part=id.part nodes code")
class GraphReport(Written, frozen=True):
    """One graph: `code` is its Python as torch prints it."""

    nodes: list[NodeReport]


@keys_of(Kernel, "name language source stage=part nodes line calls")
class KernelReport(Written, frozen=True):
    """`stage` is the part it was generated for; `nodes` are names in that part's post_grad graph; `line` and those of
    `calls` are in the wrapper, the text of the frame's `wrappers` for that stage."""


@keys_of(OutputCode, "stage=part text")
class WrapperReport(Written, frozen=True):
    """The text of Inductor's wrapper for one part of a frame."""


@keys_of(Frame, "id function file line graphs kernels wrappers")
class FrameReport(Written, frozen=True):
    """One compiled frame, with `file` and `line` of the function in the user's code."""

    graphs: list[GraphReport]
    kernels: list[KernelReport]
    wrappers: list[WrapperReport]


@keys_of(
    Violation,
    "rule severity frame=node.graph.frame stage=node.graph.stage part=node.graph.part node=node.name "
    "found wanted fix adds hint again source file line",
)
class ViolationReport(Written, frozen=True):
    """One rule that one node breaks, and the user's line that it came from; `again`: it does at an earlier stage too,
    and is counted there.
    """


@keys_of(FrameFailed, "frame error=failure")
class FrameFailureReport(Written, frozen=True):
    """A frame that did not compile although the program went on."""


@keys_of(Recompiled, "frame reason")
class RecompileReport(Written, frozen=True):
    """Why torch compiled a frame once more."""


@keys_of(
    Run,
    "schema run=number program target verdict said numbers error=failure seconds phases frames frame_failures "
    "backwards_idle exit_status children processes violations breaks recompiles peak_bytes costs output stderr",
)
class RunReport(Written, frozen=True):
    """The whole run: `said` is its verdict in words, `phases` in seconds, `peak_bytes` of the graph that takes most;
    `children` processes that the program started compiled too, each in a log of its own: `processes` are those that are
    known, with what came of each.
    """

    schema: str
    said: str
    frames: list[FrameReport]
    frame_failures: list[FrameFailureReport]
    processes: list[ProcessReport]
    violations: list[ViolationReport]
    recompiles: list[RecompileReport]
    peak_bytes: int | None
    costs: CostReport | None
    output: str
    stderr: str


def run_report(run: Run) -> RunReport:
    """The run as far as it has come; `verdict` is "waiting" while it goes on."""
    own = of_run(run)
    return written(
        RunReport,
        run,
        schema=SCHEMA,
        said=verdict_words(run),
        frames=_frames(run),
        processes=list(run.processes.values()),
        frame_failures=[written(FrameFailureReport, event) for event in run.frame_failures],
        violations=[written(ViolationReport, each) for each in run.violations],
        recompiles=[written(RecompileReport, event) for event in run.recompiles],
        peak_bytes=max((memory_profile(graph).peak_bytes for graph in lowered(run, "aten")), default=None),
        costs=cost_report(own.accelerators[0]) if own and own.accelerators else None,
        output="".join(event.text for event in run.output if event.stream == "stdout"),
        stderr="".join(event.text for event in run.output if event.stream == "stderr"),
    )


def _frames(run: Run) -> list[FrameReport]:
    provenance = Provenance(run)
    known = dict(run.frames)
    for name in [graph.frame for graph in run.graphs] + [frame for frame, _ in run.codes]:
        known.setdefault(name, Frame(name, ""))
    return [
        written(
            FrameReport,
            frame,
            graphs=[_graph(graph, provenance) for graph in run.graphs.values() if graph.id.frame == frame.id],
            kernels=[written(KernelReport, each) for each in run.kernels if each.frame == frame.id],
            wrappers=[written(WrapperReport, code) for code in run.codes.values() if code.frame == frame.id],
        )
        for frame in known.values()
    ]


def _graph(graph: Graph, provenance: Provenance) -> GraphReport:
    nodes = [_node(node, graph.node_id(node.name), provenance) for node in graph.nodes]
    return written(GraphReport, graph, nodes=nodes)


def _node(node: Node, node_id: NodeId, provenance: Provenance) -> NodeReport:
    tensors = [_tensor(tensor) for tensor in node.tensors]
    first = tensors[0] if tensors else None
    return written(
        NodeReport,
        node,
        dtype=node.tensor and node.tensor.dtype,
        shape=first and first.shape,
        stride=first and first.stride,
        device=node.tensor and node.tensor.device,
        hints=first and first.hints,
        tensors=tensors,
        kernels=list(dict.fromkeys(kernel.name for kernel, _ in provenance.kernels_of(node_id))),
    )


def _tensor(tensor: TensorMeta) -> TensorReport:
    return written(
        TensorReport,
        tensor,
        shape=[_dim(dim) for dim in tensor.shape],
        stride=[_dim(dim) for dim in tensor.stride],
        hints=[hint_of(dim) for dim in tensor.shape],
        stride_hints=[hint_of(dim) for dim in tensor.stride],
    )


def _dim(dim: Dim) -> int | str:
    return dim if isinstance(dim, int) else dim.expr
