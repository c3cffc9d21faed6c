"""One event of each kind of decision, each field set: what every reader of them must take."""

from collections.abc import Iterable
from typing import TypeVar

from idbg.schema import events
from idbg.schema.decisions import Decision
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
    SkipsDropped,
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

D = TypeVar("D", bound=Decision)


def has(event: events.SessionEvent, kind: type[Decision]) -> bool:
    """Whether the event has decisions of this kind."""
    return isinstance(event, events.DecisionsRecorded) and bool(event.of(kind))


def of_kind(log: Iterable[events.SessionEvent], kind: type[D]) -> list[D]:
    """All decisions of this kind."""
    return [each for event in log if isinstance(event, events.DecisionsRecorded) for each in event.of(kind)]


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
    events.DecisionsRecorded(
        run=1,
        decisions=(
            FrameResult(
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
    ),
    events.DecisionsRecorded(run=1, decisions=(SkipsDropped(3),)),
    events.DecisionsRecorded(run=1, decisions=(BreakAgain(0, "0/1", "call"),)),
    events.DecisionsRecorded(run=1, decisions=(Skip("g", "m.py", 7, "no tensors in it"),)),
    events.DecisionsRecorded(
        run=1,
        decisions=(
            FrameGuards(
                frame="0/0",
                guards=(GUARD,),
                seconds=2e-6,
                cold=6e-5,
                requested=9,
                left_out=(LeftOut("GRAD_MODE", 1, "GLOBAL_STATE checks it"),),
                dropped=2,
            ),
        ),
    ),
    events.DecisionsRecorded(run=1, decisions=(FrameCalls("0/0", 3, 1e-4, 2e-3),)),
    events.DecisionsRecorded(
        run=1,
        decisions=(
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
    events.DecisionsRecorded(
        run=1,
        frame="0/0",
        decisions=(
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
    events.DecisionsRecorded(
        run=1,
        frame="0/0",
        decisions=(
            FusionLog(
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
                    SchedulerOp(
                        name="op1", kind="extern", nodes=("mm",), calls="extern_kernels.mm", graph="true_graph_0"
                    ),
                ),
                groups=(("op0",), ("op1",)),
                refusals=(Refusal(0, 1, "sizes", 2),),
                pairs_tried=4,
                dropped=1,
                part="forward",
            ),
        ),
    ),
    events.DecisionsRecorded(
        run=1,
        frame="0/0",
        decisions=(
            CacheAnswer(
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
    ),
    events.DecisionsRecorded(
        run=1,
        frame="0/0",
        decisions=(
            GraphSplit(
                number=0,
                backend="openvino",
                compiled=(("addmm", "relu"),),
                native=(
                    NativeCall("j0", "aten.special_bessel_j0.default", "unsupported", file="/home/u/net.py", line=4),
                ),
            ),
        ),
    ),
    events.DecisionsRecorded(
        run=1, frame="0/0", decisions=(SplitCalls(number=0, calls=2, seconds=2.0, native_seconds=0.5),)
    ),
    events.DecisionsRecorded(
        run=1,
        frame="0/0",
        decisions=(
            CudaGraph(
                outcome="skipped", part="forward", reason="mutated inputs", file="m.py", line=3, nodes=("a",), times=2
            ),
        ),
    ),
    events.DecisionsRecorded(
        run=1,
        frame="0/0",
        decisions=(
            Autotuned(
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
