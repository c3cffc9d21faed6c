"""A run whose every name, source and output is made to break out of the file that tells it."""

from idbg.schema import events
from idbg.schema.code import Kernel, KernelCall, OutputCode
from idbg.schema.decisions.dynamo import FailedGuard, GraphBreak
from idbg.schema.diff import DiffReport, TensorDiff
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Frame, Graph, GraphId, Node, NodeId, TensorMeta
from idbg.schema.programs import Failure, Program, Target
from idbg.schema.runs import History, fold
from idbg.schema.violations import Violation

TEXT = (
    "</script></details>]]><!-- --><b onmouseover='x'>\"&amp;|`x`**__~~[a](http://evil.example)![i](x) @torch #1"
    " ${{x}} {0} \x1b[31m\x00\x07\r\u202e\u2028\ufffe\udcff\ud800 $(touch x) ../../x"
)
LONG = "x" * 300_000
RULES = f'name = "n"\n\n[[rules]]\nkind = "dtype"\nallowed = ["float16"]\nname = {"</rule>]]>|`a`"!r}\n'
FRAME, AGAIN = (f"{TEXT.replace('#', '')}/{number}" for number in (0, 1))
GRAPH = GraphId(FRAME, "inference")


def hostile(name: str = TEXT) -> History:
    """One run, with everything that a report tells, each named so."""
    return fold(happened(name))


def happened(name: str = TEXT) -> tuple[SessionEvent, ...]:
    """What the run's log has."""
    node = Node(
        name=name,
        op="call_function",
        target=name,
        args=name,
        tensors=(TensorMeta(name, (2, 3), (3, 1), name),),
        module=name,
        module_class=name,
        file=f"/{name}.py",
        line=3,
        code=name,
    )
    violation = Violation(
        rule=name,
        severity="reject",
        node=NodeId(GRAPH, name),
        found=name,
        wanted=name,
        fix=name,
        source=f"https://{name}",
        file=f"/repo/{name}.py",
        line=3,
    )
    kernel = Kernel(frame=FRAME, part="inference", name=name, language=name, source=name, calls=(KernelCall(name, 1),))
    failed = FailedGuard(text=name, source=name, code=name, expected=name, actual=name, what=name, file=name, line=1)
    different = TensorDiff(name=name, passed=False, failed_by=("rmse",), note=name, max_abs=float("nan"))
    return (
        events.WorkerStarted(pid=1, torch=name, python=name, devices=(name,), seconds=0.0),
        events.RunStarted(
            run=1,
            program=Program(f"{name}.py", argv=(name,), cwd="/repo"),
            target=Target(backend=name, accelerator=name, rules=RULES, options={name: float("inf")}),
        ),
        events.FrameStarted(run=1, frame=Frame(FRAME, name, name, 1)),
        events.FrameStarted(run=1, frame=Frame(AGAIN, name, name, 1)),
        events.GraphCaptured(run=1, graph=Graph(GRAPH, (node,), name)),
        events.CodeCaptured(run=1, code=OutputCode(FRAME, "inference", name, (kernel,))),
        events.OutputWritten(run=1, stream="stdout", text=name),
        events.OutputWritten(run=1, stream="stderr", text=name),
        events.GraphBroke(run=1, graph_break=GraphBreak(name, name, 1, FRAME, kind=name, hints=(name,), page=name)),
        events.Recompiled(run=1, frame=AGAIN, reason=name, failed=(failed,)),
        events.FrameFailed(run=1, frame=FRAME, failure=Failure("torch", name, hint=name, traceback=name, type=name)),
        events.ViolationsFound(run=1, violations=(violation,)),
        events.Compared(
            run=1,
            report=DiffReport(test=name, reference=name, verdict="failed", mode="float64", outputs=(different,)),
        ),
        events.RunEnded(
            run=1,
            verdict="failed",
            seconds=float("nan"),
            failure=Failure("user", name, hint=name, type=name, traceback=name, file=name, line=2, repro=name),
        ),
    )
