"""Write a run as JSON. docs/json-schema.md documents the keys.

Every key is always there, so that a reader needs no defaults; values that are not known are null or empty.
"""

import msgspec
from msgspec import structs

from idbg.analysis.liveness import memory_profile
from idbg.analysis.provenance import Provenance
from idbg.checking.check import lowered, of_run
from idbg.format.verdicts import verdict_words
from idbg.reports.cost_json import CostReport, cost_report
from idbg.schema.code import KernelCall
from idbg.schema.decisions.dynamo import GraphBreak
from idbg.schema.diff import Numbers
from idbg.schema.graphs import Dim, Frame, Graph, Node, NodeId, Part, Stage, TensorMeta, hint_of
from idbg.schema.processes import ProcessReport
from idbg.schema.programs import Failure, Program, Target, Verdict
from idbg.schema.runs import Run
from idbg.schema.strict_json import like
from idbg.schema.violations import Violation

SCHEMA = "idbg.run/1"


class TensorReport(msgspec.Struct, frozen=True):
    """`hints` and `stride_hints` hold, place by place, the value a symbol had while compiling; null if it had none."""

    dtype: str
    shape: list[int | str]
    stride: list[int | str]
    device: str
    hints: list[int | None]
    stride_hints: list[int | None]
    bytes: int | None


class NodeReport(msgspec.Struct, frozen=True, kw_only=True):
    """dtype, shape, stride, device and hints are those of the first tensor; `tensors` has all of them."""

    name: str
    op: str
    target: str
    args: str
    role: str
    dtype: str | None
    shape: list[int | str] | None
    stride: list[int | str] | None
    device: str | None
    hints: list[int | None] | None
    tensors: list[TensorReport]
    module: str
    module_class: str
    file: str
    line: int
    code: str
    inputs: tuple[str, ...]
    kernels: list[str]


class GraphReport(msgspec.Struct, frozen=True):
    """One graph: `code` is its Python as torch prints it."""

    stage: Stage
    part: Part
    nodes: list[NodeReport]
    code: str


class KernelReport(msgspec.Struct, frozen=True):
    """`stage` is the part it was generated for; `nodes` are names in that part's post_grad graph; `line` and those of
    `calls` are in the wrapper, the text of the frame's `wrappers` for that stage."""

    name: str
    language: str
    source: str
    stage: Part
    nodes: tuple[str, ...]
    line: int
    calls: tuple[KernelCall, ...]


class WrapperReport(msgspec.Struct, frozen=True):
    """The text of Inductor's wrapper for one part of a frame."""

    stage: Part
    text: str


class FrameReport(msgspec.Struct, frozen=True):
    """One compiled frame, with `file` and `line` of the function in the user's code."""

    id: str
    function: str
    file: str
    line: int
    graphs: list[GraphReport]
    kernels: list[KernelReport]
    wrappers: list[WrapperReport]


class ViolationReport(msgspec.Struct, frozen=True, kw_only=True):
    """One rule that one node breaks, and the user's line that it came from; `again`: it does at an earlier stage too,
    and is counted there.
    """

    rule: str
    severity: str
    frame: str
    stage: Stage
    part: Part
    node: str
    found: str
    wanted: str
    fix: str
    adds: float | None
    hint: str
    again: bool
    source: str
    file: str
    line: int


class FrameFailureReport(msgspec.Struct, frozen=True):
    """A frame that did not compile although the program went on."""

    frame: str
    error: Failure


class RecompileReport(msgspec.Struct, frozen=True):
    """Why torch compiled a frame once more."""

    frame: str
    reason: str


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """The whole run: `said` is its verdict in words, `phases` in seconds, `peak_bytes` of the graph that takes most;
    `children` processes that the program started compiled too, each in a log of its own: `processes` are those that are
    known, with what came of each.
    """

    schema: str = SCHEMA
    run: int
    program: Program
    target: Target
    verdict: Verdict
    said: str
    numbers: Numbers = "not compared"
    error: Failure | None
    seconds: float
    phases: dict[str, float]
    frames: list[FrameReport]
    frame_failures: list[FrameFailureReport]
    backwards_idle: tuple[str, ...]
    exit_status: int
    children: int
    processes: list[ProcessReport]
    violations: list[ViolationReport]
    breaks: list[GraphBreak]
    recompiles: list[RecompileReport]
    peak_bytes: int | None
    costs: CostReport | None
    output: str
    stderr: str


def run_report(run: Run) -> RunReport:
    """The run as far as it has come; `verdict` is "waiting" while it goes on."""
    own = of_run(run)
    return like(
        RunReport,
        run,
        run=run.number,
        said=verdict_words(run),
        error=run.failure,
        frames=_frames(run),
        processes=list(run.processes.values()),
        frame_failures=[FrameFailureReport(failed.frame, failed.failure) for failed in run.frame_failures],
        violations=list(map(violation_report, run.violations)),
        recompiles=[like(RecompileReport, event) for event in run.recompiles],
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
        like(
            FrameReport,
            frame,
            graphs=[_graph(graph, provenance) for graph in run.graphs.values() if graph.id.frame == frame.id],
            kernels=[like(KernelReport, each, stage=each.part) for each in run.kernels if each.frame == frame.id],
            wrappers=[WrapperReport(part, code.text) for (name, part), code in run.codes.items() if name == frame.id],
        )
        for frame in known.values()
    ]


def _graph(graph: Graph, provenance: Provenance) -> GraphReport:
    nodes = [_node(node, graph.node_id(node.name), provenance) for node in graph.nodes]
    return GraphReport(graph.id.stage, graph.id.part, nodes, graph.code)


def _node(node: Node, node_id: NodeId, provenance: Provenance) -> NodeReport:
    tensors = [_tensor(tensor) for tensor in node.tensors]
    first = tensors[0] if tensors else None
    return like(
        NodeReport,
        node,
        dtype=first and first.dtype,
        shape=first and first.shape,
        stride=first and first.stride,
        device=first and first.device,
        hints=first and first.hints,
        tensors=tensors,
        kernels=list(dict.fromkeys(kernel.name for kernel, _ in provenance.kernels_of(node_id))),
    )


def _tensor(tensor: TensorMeta) -> TensorReport:
    return like(
        TensorReport,
        tensor,
        shape=[_dim(dim) for dim in tensor.shape],
        stride=[_dim(dim) for dim in tensor.stride],
        hints=[hint_of(dim) for dim in tensor.shape],
        stride_hints=[hint_of(dim) for dim in tensor.stride],
        bytes=tensor.nbytes,
    )


def _dim(dim: Dim) -> int | str:
    return dim if isinstance(dim, int) else dim.expr


def violation_report(violation: Violation) -> ViolationReport:
    """One violation, with its graph's keys beside its own."""
    return like(ViolationReport, violation, **structs.asdict(violation.node.graph), node=violation.node.name)
