"""An event log is read as it was written, also when its writer was killed or is newer than we are."""

from pathlib import Path

import msgspec
import pytest

from idbg.schema import event_log, events
from idbg.schema.attribution import KernelAttribution
from idbg.schema.bench import Latency, Machine, Row
from idbg.schema.bisection import (
    Application,
    Bisected,
    Commit,
    FailingCommit,
    FailingOptions,
    OptionDifference,
    Question,
    SuspectPart,
    Tried,
)
from idbg.schema.code import CompilerStage, Kernel, KernelCall, Lowered, LoweredText, OutputCode, Resources
from idbg.schema.collectives import Collective, ProcessGroup
from idbg.schema.decisions import Decision
from idbg.schema.decisions.backends import GraphSplit, SplitCalls
from idbg.schema.decisions.dynamo import (
    BreakAgain,
    FrameCalls,
    FrameGuards,
    FrameResult,
    GraphBreak,
    Skip,
    SkipsDropped,
    Trial,
)
from idbg.schema.decisions.inductor import Autotuned, CacheAnswer, CudaGraph, FusionLog, PhaseRun, Span
from idbg.schema.diff import (
    Baseline,
    Block,
    Comparison,
    Counts,
    DiffReport,
    ErrorMap,
    KernelError,
    SideResult,
    TensorDiff,
    Worst,
)
from idbg.schema.graphs import Frame, Graph, GraphId, Links, Node, NodeId, Sym, TensorMeta
from idbg.schema.kernel_edits import EditTimes, KernelEdit, TimeChange
from idbg.schema.kernel_times import KernelTime, KernelTimes, Peaks
from idbg.schema.node_values import CallValues, NodeValue
from idbg.schema.processes import Process
from idbg.schema.programs import Failure, Program, Target
from idbg.schema.repros import Minified, MinifyProgress, OtherFailure, Signature, Sought
from idbg.schema.violations import Violation
from tests.harness import decided
from tests.harness.event_lines import events_of

ID = GraphId("0/0", "post_grad", "forward")
TENSOR = TensorMeta("float32", (Sym("s0", 10, 2, None), 8), (8, 1), "cuda:0")
NODE = Node(
    name="relu",
    op="call_function",
    target="aten.relu.default",
    args="x, 'é\n'",
    inputs=("x",),
    tensors=(TENSOR, TensorMeta("bool")),
    module="layer1.0",
    module_class="torch.nn.ReLU",
    file="m.py",
    line=3,
    code="relu(x)",
    role="saved",
    code_line=4,
)
KERNEL = Kernel(
    frame="0/0",
    part="forward",
    name="k",
    language="triton",
    source="s",
    line=2,
    calls=(KernelCall("k:1", 9, ("relu",)),),
)
FAILURE = Failure("user", "no", "mend it", "ValueError", "Traceback", "m.py", 3)
PROGRAM = Program("m.py", "big", False, ("--fast",), "/tmp")
TARGET = Target("aot", "cpu", True, True, "mock", "name = 'mock'", {"a": True, "b": 1, "c": 0.5, "d": "x"})
VIOLATION = Violation(
    rule="r", severity="pad", node=NodeId(ID, "relu"), found="f", wanted="w", fix="x", source="u", file="m", line=1
)

DIFF = DiffReport(
    test="inductor",
    reference="eager",
    verdict="failed",
    mode="float64",
    outputs=(
        TensorDiff(
            name="out",
            passed=False,
            failed_by=("rmse", "nan"),
            max_abs=0.5,
            worst=Worst((0, 3), "nan", 1.5),
            nan=Counts(1, 0, 1),
            blocks=(Block("row", (0, 1), (0, 8), 0.25, 3.0),),
            baseline=Baseline(0.5, 1.0, 0.1, 0.2),
        ),
    ),
    kernels=(KernelError(frame="0/0", part="forward", name="k0", graph=GraphId("0/0", "post_grad", "forward")),),
    sides=(SideResult("eager", 0.25), SideResult("inductor", failure=Failure(kind="user", message="no"))),
)
TIMES = KernelTimes(
    kernels=(
        KernelTime(frame="0/0", part="forward", name="k", kind="cpp", samples_us=(1.0, 2.0), share=0.5, bytes=1024),
    ),
    samples_us=(4.0, 5.0),
    hooked_samples_us=(4.5, 5.5),
    peaks=Peaks(device="a CPU", torch="2.15", matmul_flops_per_s={"float32": 1e11}),
)
OWNER = KernelAttribution(
    launch=0, name="k0", kind="before", sentence="what came before", error=1e-7, cause=0, status=1
)
FASTER = TimeChange(Latency.of([2.0, 2.1], 1, 10, True), Latency.of([1.0, 1.1], 1, 10, True), 0.01)
COLLECTIVE = Collective(
    group="0",
    number=2,
    op="all_reduce",
    inputs=("f32[4]",),
    outputs=("f32[4]",),
    file="train.py",
    line=3,
    function="main",
    began=1.5,
    peer_to_peer=True,
    peer=1,
)
EVERY: list[events.SessionEvent] = [
    events.SessionOpened(version="0.1.0", program=PROGRAM, folder="/tmp/s"),
    events.WorkerStarted(
        pid=1,
        torch="2.15",
        python="3.11",
        devices=("cpu",),
        seconds=1.5,
        backends=(events.KnownBackend("npu", "an NPU"), events.KnownBackend("wreck", error="ImportError: no driver")),
    ),
    events.ProcessStarted(process=Process(name="rank1", pid=4, rank=1, world_size=2, command=("python", "a.py"))),
    events.ProcessEnded(name="rank1", signal="SIGKILL", last_phase="codegen"),
    events.WorkerDied(cause="killed by SIGSEGV", last_output="\x1b[31mboom"),
    events.RunStarted(run=1, program=PROGRAM, target=TARGET),
    events.RunStarted(run=2, program=PROGRAM, target=TARGET, comparison=Comparison(per_kernel=True, atol=1e-3)),
    events.BackendsCalled(run=1, backends=("aot", "mine")),
    events.NotRecorded(run=1, records=("breaks", "cuda graphs")),
    events.PhaseChanged(run=1, phase="codegen"),
    events.PhaseChanged(run=1, phase="codegen", seconds=0.25, frame="0/0"),
    events.OutputWritten(run=0, stream="stderr", text="é\u2028\n"),
    events.FrameStarted(run=1, frame=Frame("0/0", "forward", "m.py", 3)),
    events.SettingsRead(run=1, settings=("torch._dynamo.config.recompile_limit = 2",)),
    events.GraphCaptured(run=1, graph=Graph(ID, (NODE,), "def forward(): ...")),
    events.CodeCaptured(run=1, code=OutputCode("0/0", "forward", "text", (KERNEL,))),
    events.LinksCaptured(run=1, links=Links(GraphId("0/0", "forward"), ID, (("relu", "relu"),))),
    events.StageCaptured(
        run=1,
        stage=CompilerStage(
            frame="0/0",
            part="inference",
            compiler="iree",
            name="flow",
            language="mlir",
            text="flow.executable @relu",
            graph=ID,
            links=((1, ("relu",)),),
            origin="dump",
            size=21,
        ),
    ),
    events.GraphBroke(run=1, graph_break=GraphBreak("print", "m.py", 3, "0/0")),
    events.Recompiled(run=1, frame="0/1", reason="x.size(0) was 8"),
    events.FrameFailed(run=1, frame="0/0", failure=FAILURE),
    events.BackwardsIdle(run=1, frames=("0/0", "1/0")),
    events.ViolationsFound(run=1, violations=(VIOLATION,)),
    events.RunEnded(run=1, verdict="failed", seconds=2.0, failure=FAILURE),
    events.RulesEdited(text="", origin="editor"),
    events.RulesRefused(text="x =", origin="editor", message="no", line=1),
    events.ReproStarted(run=1, node=NodeId(ID, "relu"), rule="r"),
    events.ReproEnded(run=1, path="r.py", reproduced=True, status=1, output="o", seconds=3.0, failure=FAILURE),
    events.SideStarted(run=1, side="float64"),
    events.SideEnded(run=1, side=SideResult("eager", 0.25)),
    events.Compared(run=1, report=DIFF),
    events.OwnerStarted(run=1, launch=0),
    events.OwnerJudged(run=1, owner=OWNER),
    events.OwnerEnded(run=1, owner=OWNER, failure=FAILURE),
    events.ErrorsMapped(run=1, map=ErrorMap("out", (2,), (1, 2), ((0.0, 1e-6),))),
    events.KernelLowered(
        run=1,
        frame="0/0",
        part="forward",
        name="k",
        lowered=Lowered((LoweredText("PTX", "ptx", ".entry"),), Resources(32, 0, 1024, 4, 0.5)),
    ),
    events.KernelEditing(run=1, frame="0/0", part="forward", name="k", version=1, step="building"),
    events.KernelEdited(
        run=1,
        edit=KernelEdit(
            frame="0/0",
            part="forward",
            name="k",
            language="triton",
            version=1,
            text="def k(): ...",
            report=DIFF,
            times=EditTimes(kernel=FASTER, call=FASTER, launches=2.0, kind="training"),
            build_s=1.5,
            seconds=2.5,
            failure=FAILURE,
            line=1,
        ),
    ),
    events.BenchStarted(cases=2),
    events.BenchTaskStarted(program="m.py", backend="inductor:max-autotune", task="cold"),
    events.BenchStepStarted(step=4, of=6, words="warming up"),
    events.RowMeasured(
        row=Row(
            program="m.py",
            backend="inductor",
            latency_ms=Latency.of([1.0, 2.0, 3.0], 1, 10, True),
            diff="passed",
            machine=Machine(threads=2),
        )
    ),
    events.KernelsTimed(program="m.py", backend="inductor", times=TIMES),
    events.BenchEnded(failure=FAILURE),
    events.Noted(level="warning", text="disk is full"),
    events.MinifyStarted(run=1, sought=Sought("break", place="m.py:3")),
    events.MinifyProgressed(run=1, progress=MinifyProgress("prefix", size=5, whole=9, eta=2.5, best="/s/5.py")),
    events.MinifyEnded(
        run=1,
        minified=Minified(Signature("wrong"), "/s/1.py", reproduced=True, others=(OtherFailure("E: no", 2),)),
    ),
    events.BisectStarted(run=1, question=Question("options", PROGRAM, TARGET, sets=({"a": 1}, {}), names=("x", "y"))),
    events.BisectProgressed(run=1, what="backend eager"),
    events.BisectProgressed(run=1, what="backend eager", tried=Tried("backend eager", "other", 1.5, "it died")),
    events.BisectEnded(
        run=1,
        bisected=Bisected(
            "compiler",
            "it is guilty",
            Signature("died", type="SIGSEGV"),
            part=SuspectPart("inductor", "lowerings", application=Application(3, "sin", "0/0", "forward"), of=9),
            options=(FailingOptions((OptionDifference("a", 1),), 3),),
            commit=FailingCommit((Commit("abc"),), 7),
            tried=(Tried("it", "fails", 2.5),),
        ),
    ),
    *decided.EVERY,
    events.SuggestionTried(trial=Trial(1, 2, True, ("L['x']",), {"dynamo.a": 1}, (("compiles", 2, 1),), "it raised")),
    events.CollectivesSeen(
        run=1,
        began=(COLLECTIVE,),
        groups=(ProcessGroup("0", "default_pg", (0, 1)),),
        pending=(COLLECTIVE,),
        last=(COLLECTIVE,),
        lost=2,
        stack=decided.STACK,
    ),
    events.NodeValuesMeasured(
        run=1,
        values=CallValues(
            frame="0/0",
            call=2,
            values=(NodeValue(node="x", checksum="0f", elements=3, mean=0.5, std=0.1, max_abs=1.0, equal_in=(0, 1)),),
        ),
    ),
]


@pytest.mark.parametrize("event", EVERY, ids=lambda event: type(event).__name__)
def test_every_event_comes_back_from_one_line_as_it_went(event: events.SessionEvent) -> None:
    line = event_log.encode(event)
    assert b"\n" not in line
    assert event_log.decode(line) == event


def test_the_round_trip_covers_every_kind_of_event() -> None:
    assert {type(event) for event in EVERY} == set(events.SessionEvent.__args__)


def test_an_event_carries_when_it_happened() -> None:
    assert events.Noted(level="info", text="a").at > 1.6e9
    assert event_log.decode(event_log.encode(events.Noted(level="info", text="a", at=12.5))) == events.Noted(
        level="info", text="a", at=12.5
    )


def test_types_and_fields_of_newer_versions_are_skipped() -> None:
    assert event_log.decode(b'{"type": "from_the_future", "at": 1.0, "x": 3}') is None
    assert event_log.decode(b'{"type": "noted", "at": 1.0, "level": "info", "text": "a", "new": 3}') == events.Noted(
        level="info", text="a", at=1.0
    )


def test_a_log_from_before_backends_were_told_still_opens() -> None:
    line = (
        b'{"type": "worker_started", "at": 1.0, "pid": 1, "torch": "2", "python": "3", "devices": [], "seconds": 1.0}'
    )
    started = event_log.decode(line)
    assert isinstance(started, events.WorkerStarted) and started.backends == ()


@pytest.mark.parametrize(
    "recording", sorted((Path(__file__).parents[1] / "recordings").glob("*.jsonl")), ids=lambda path: path.stem
)
def test_a_recorded_log_is_written_again_as_it_was(recording: Path) -> None:
    known = events_of(recording.read_bytes().splitlines())
    assert events_of(map(event_log.encode, known)) == known


def _names(value: object) -> set[str]:
    """Every key at any depth."""
    if isinstance(value, dict):
        return {*value, *(name for held in value.values() for name in _names(held))}
    return {name for held in value for name in _names(held)} if isinstance(value, list) else set()


@pytest.mark.parametrize(
    "recording", sorted((Path(__file__).parents[1] / "recordings").glob("*.jsonl")), ids=lambda path: path.stem
)
def test_fields_keep_the_names_that_logs_have_them_under(recording: Path) -> None:
    for line in recording.read_bytes().splitlines():
        event = event_log.decode(line)
        assert event is not None
        names = _names(msgspec.json.decode(line)) - (OLD if isinstance(event, events.DecisionsRecorded) else set())
        assert names <= _names(msgspec.json.decode(event_log.encode(event)))


OLD = {"result", "skip", "again", "guards", "calls", "spans", "phases", "fusion", "answer", "graph", "split", "tuned"}
"""The fields of events of format 1 that had decisions."""
BEFORE = [
    (b'"frame_done","result":{"frame":"0/1","end":"eager"}', FrameResult(frame="0/1", end="eager")),
    (b'"frame_skipped","skip":{"function":"g","file":"m.py","line":7,"reason":"r"}', Skip("g", "m.py", 7, "r")),
    (b'"skips_dropped","count":3', SkipsDropped(3)),
    (b'"broke_again","again":{"first":1,"frame":"0/1","way":"call"}', BreakAgain(1, "0/1", "call")),
    (
        b'"guards_captured","guards":{"frame":"0/0","guards":[],"asked":2}',
        FrameGuards(frame="0/0", guards=(), requested=2),
    ),
    (b'"calls_timed","calls":[{"frame":"0/0","calls":3,"fastest":0.5,"first":2.0}]', FrameCalls("0/0", 3, 0.5, 2.0)),
    (b'"spans_told","spans":[{"id":2,"name":"codegen","began":1.5}]', Span(id=2, name="codegen", began=1.5)),
    (b'"passes_ran","frame":"0/0","phases":[{"phase":"joint","ran":2}]', PhaseRun(phase="joint", ran=2)),
    (
        b'"fusion_decided","frame":"0/0","part":"forward","fusion":{"asked":4}',
        FusionLog(pairs_tried=4, part="forward"),
    ),
    (
        b'"cache_answered","frame":"0/0","answer":{"cache":"fx_graph","outcome":"hit"}',
        CacheAnswer(cache="fx_graph", outcome="hit"),
    ),
    (b'"cuda_graph_decided","frame":"0/0","graph":{"outcome":"ready"}', CudaGraph(outcome="ready")),
    (
        b'"graph_was_split","frame":"0/0","split":{"number":1,"backend":"b","compiled":[],"native":[]}',
        GraphSplit(number=1, backend="b", compiled=(), native=()),
    ),
    (b'"split_called","frame":"0/0","number":1,"calls":{"calls":2}', SplitCalls(number=1, calls=2)),
    (b'"autotuning","frame":"0/0","tuned":{"op":"mm","choices":[]}', Autotuned(op="mm", choices=())),
]


@pytest.mark.parametrize(("fields", "decision"), BEFORE, ids=lambda value: type(value).__name__)
def test_each_decision_of_a_log_of_format_1_is_read(fields: bytes, decision: Decision) -> None:
    event = event_log.decode(b'{"at":1.5,"run":2,"type":' + fields + b"}")
    frame = "0/0" if b"frame" in fields.partition(b"{")[0].partition(b",")[2] else ""
    assert event == events.DecisionsRecorded(at=1.5, run=2, frame=frame, decisions=(decision,))


def test_a_damaged_decision_of_format_1_is_damage() -> None:
    for fields in (
        b'"guards_captured"',
        b'"spans_told","spans":3',
        b'"calls_timed","calls":[3]',
        b'"autotuning","at":"x"',
    ):
        with pytest.raises(msgspec.DecodeError):
            event_log.decode(b'{"at":1.5,"run":2,"type":' + fields + b"}")


def test_a_kind_of_decision_of_a_newer_version_is_skipped() -> None:
    assert event_log.decode(b'{"type":"decisions","at":1.0,"run":1,"decisions":[{"kind":"newer","x":3}]}') is None
    with pytest.raises(msgspec.DecodeError):
        event_log.decode(b'{"type":"decisions","at":1.0,"run":1,"decisions":[{"kind":"split","x":3}]}')


def test_a_field_that_was_renamed_is_read_and_written_under_its_old_name() -> None:
    line = b'{"type":"row_measured","at":1.0,"row":{"program":"m","backend":"eager","marks":["noisy"]}}'
    event = event_log.decode(line)
    assert isinstance(event, events.RowMeasured) and event.row.caveats == ("noisy",)
    assert b'"marks":["noisy"]' in event_log.encode(event) and b"caveats" not in event_log.encode(event)
    assert event_log.decode(b'{"type":"bench_started","at":1.0,"subjects":4}') == events.BenchStarted(cases=4, at=1.0)
