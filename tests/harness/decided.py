"""One event of each kind of decision, each field set: what every reader of them must take."""

from idbg.schema import events
from idbg.schema.decisions.backends import GraphSplit, NativeCall, SplitCalls
from idbg.schema.decisions.dynamo import (
    BreakAgain,
    FailedGuard,
    FrameCalls,
    FrameGuards,
    FrameResult,
    Guard,
    LeftOut,
    Skip,
    StackLine,
)
from idbg.schema.decisions.inductor import (
    Autotuned,
    CacheAnswer,
    Choice,
    CudaGraph,
    Differs,
    DiffRow,
    FusionLog,
    PassRun,
    PhaseRun,
    Refusal,
    SchedulerOp,
    Span,
)
from idbg.schema.programs import Switch

STACK = (StackLine("m.py", 9, "<module>", "f(x)"), StackLine("m.py", 3, "f", "y = x + n"))
GUARD = Guard(
    kind="EQUALS_MATCH", source="L['n']", code=("L['n'] == 3",), file="m.py", line=3, stack=STACK, seconds=1e-7
)
FAILED = FailedGuard(
    text="L['n'] == 3  # y = x + n",
    kind="value",
    what="length",
    against="0/0",
    code="L['n'] == 3",
    source="L['n']",
    expected="3",
    actual="4",
    file="m.py",
    line=3,
    stack=STACK,
)
EVERY: list[events.SessionEvent] = [
    events.FrameDone(
        run=1,
        result=FrameResult(
            frame="0/1",
            end="eager",
            why="recompile limit",
            seconds=1.5,
            attempts=2,
            restarts=("break",),
            ops=3,
            guards=4,
            lost=0.5,
            entries=2,
            alike=1,
            limit=8,
            limit_all=256,
            failed=(FAILED,),
            stack=STACK,
        ),
    ),
    events.SkipsDropped(run=1, count=3),
    events.BrokeAgain(run=1, again=BreakAgain(0, "0/1", "call")),
    events.FrameSkipped(run=1, skip=Skip("g", "m.py", 7, "no tensors in it")),
    events.GuardsCaptured(
        run=1,
        guards=FrameGuards(
            frame="0/0",
            guards=(GUARD,),
            seconds=2e-6,
            cold=6e-5,
            requested=9,
            left_out=(LeftOut("GRAD_MODE", 1, "GLOBAL_STATE checks it"),),
            dropped=2,
        ),
    ),
    events.CallsTimed(run=1, calls=(FrameCalls("0/0", 3, 1e-4, 2e-3),)),
    events.SpansRecorded(
        run=1,
        spans=(
            Span(id=1, name="codegen", began=1.7e9),
            Span(
                id=2,
                parent=1,
                name="pass",
                what="fuse",
                frame="0/0",
                began=1.7e9,
                seconds=0.5,
                nodes=(9, 7),
                thread=1,
                times=3,
            ),
        ),
    ),
    events.PassesRan(
        run=1,
        frame="0/0",
        phases=(
            PhaseRun(
                phase="post_grad",
                part="forward",
                graph="true_graph_0",
                ran=9,
                seconds=0.2,
                nodes=(2, 1),
                passes=(
                    PassRun(
                        name="fold",
                        number=2,
                        by="fold_all",
                        file="p.py",
                        line=4,
                        own=True,
                        seconds=0.1,
                        nodes=(2, 1),
                        came=("b",),
                        went=("a",),
                        moved=("c",),
                        changed=("d",),
                        of=(("b", ("a",)),),
                        rows=(DiffRow("a", "a = x + 0", "", 1), DiffRow("b", "", "b = x")),
                        dropped=1,
                    ),
                ),
            ),
        ),
    ),
    events.FusionDecided(
        run=1,
        frame="0/0",
        part="forward",
        fusion=FusionLog(
            ops=(
                SchedulerOp(
                    name="op0",
                    kind="reduction",
                    nodes=("a", "b"),
                    loops=("8",),
                    reduced=("4",),
                    reads=("arg0_1",),
                    writes=("buf0",),
                    device="cpu",
                ),
                SchedulerOp(name="op1", kind="extern", nodes=("mm",), calls="extern_kernels.mm", graph="true_graph_0"),
            ),
            groups=(("op0",), ("op1",)),
            refusals=(Refusal(0, 1, "sizes", 2),),
            pairs_tried=4,
            dropped=1,
        ),
    ),
    events.CacheAnswered(
        run=1,
        frame="0/0",
        answer=CacheAnswer(
            cache="fx_graph",
            outcome="miss",
            part="forward",
            key="f1",
            reason="new",
            what="graph",
            differs=(Differs("the shape of argument 1", "8x8", "4x8"),),
            nearest="run 1, frame 0/0",
            saved=1.5,
        ),
    ),
    events.GraphWasSplit(
        run=1,
        frame="0/0",
        split=GraphSplit(
            number=0,
            backend="openvino",
            compiled=(("addmm", "relu"),),
            native=(NativeCall("j0", "aten.special_bessel_j0.default", "unsupported", file="/home/u/net.py", line=4),),
        ),
    ),
    events.SplitCalled(run=1, frame="0/0", number=0, calls=SplitCalls(calls=2, seconds=2.0, native_seconds=0.5)),
    events.CudaGraphDecided(
        run=1,
        frame="0/0",
        graph=CudaGraph(
            outcome="skipped", part="forward", reason="mutated inputs", file="m.py", line=3, nodes=("a",), times=2
        ),
    ),
    events.Autotuning(
        run=1,
        frame="0/0",
        tuned=Autotuned(
            op="mm",
            part="forward",
            choices=(Choice("extern_mm", 1e-5, "aten"), Choice("triton_mm_0", error="out of registers")),
            chosen="extern_mm",
            kernel="triton_mm_0",
            nodes=("mm",),
            inputs="f32[8,8]",
            seconds=0.5,
            cached=True,
            dropped=1,
        ),
    ),
    events.SwitchesListed(
        switches=(
            Switch(
                name="max_autotune",
                place="option",
                group="autotuning",
                type="bool",
                default=False,
                meaning="try them all",
                choices=(True, False),
            ),
        )
    ),
]
