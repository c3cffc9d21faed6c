"""Runs of frames as records, without torch: what Dynamo told of them."""

from idbg.schema import events
from idbg.schema.decisions.dynamo import BreakAgain, BreakWay, FailedGuard, FrameResult, GraphBreak, StackLine
from idbg.schema.graphs import Frame, Graph, GraphId, Node, TensorMeta
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run

FILE = "/home/me/m.py"
PRINT = GraphBreak(
    "Failed to trace builtin operator: no `print`",
    FILE,
    5,
    "0/0",
    "Failed to trace builtin operator",
    "Dynamo does not know how to trace builtin operator `print` with argument types ['str']",
    ("Avoid it.",),
    page="https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0059.html",
    stack=(
        StackLine("/x/lib/python3.11/runpy.py", 8, "_run"),
        StackLine("/x/idbg/worker/jobs.py", 9, "run"),
        StackLine(FILE, 20, "f", "z = inner(x)"),
        StackLine("/x/site-packages/torch/nn/modules/module.py", 99, "_call_impl"),
        StackLine(FILE, 5, "inner", 'print("hi")'),
    ),
    way="call",
)


def run_of(*told: events.SessionEvent, dynamic: bool | None = None) -> Run:
    """A run in which this happened."""
    run = Run(1, Program("m.py"), Target(dynamic=dynamic), 0.0)
    for event in told:
        run.apply(event)
    return run


def started(name: str, function: str, parent: str = "", line: int = 1) -> events.FrameStarted:
    return events.FrameStarted(run=1, frame=Frame(name, function, FILE, line, parent))


def done(name: str, seconds: float = 1.0, **more: object) -> events.DecisionsRecorded:
    result = FrameResult(frame=name, seconds=seconds, **{"end": "compiled", "ops": 2, **more})  # type: ignore[arg-type]
    return events.DecisionsRecorded(run=1, decisions=(result,))


def again(name: str, first: int = 0, way: BreakWay = "call") -> events.DecisionsRecorded:
    return events.DecisionsRecorded(run=1, decisions=(BreakAgain(first, name, way),))


def recompiled(name: str, *failed: FailedGuard) -> events.Recompiled:
    return events.Recompiled(run=1, frame=name, reason="for a guard", failed=failed)


def graph(name: str, shape: tuple[int, ...] = (4, 2)) -> events.GraphCaptured:
    """One that adds to its input, and gives back both the sum and what it is computed from."""
    tensor = TensorMeta("float32", shape)
    nodes = (
        Node(name="x", op="placeholder", target="x", tensors=(tensor,), role="input"),
        Node(name="add", op="call_function", target="operator.add", inputs=("x",), tensors=(tensor,)),
        Node(name="output", op="output", target="output", inputs=("add", "x")),
    )
    return events.GraphCaptured(run=1, graph=Graph(GraphId(name, "dynamo"), nodes))


BROKEN = (
    started("0/0", "f"),
    graph("0/0"),
    events.GraphBroke(run=1, graph_break=PRINT),
    done("0/0", 2.0, lost=0.5, attempts=2),
    started("1/0", "inner", "0/0", 3),
    again("1/0"),
    done("1/0", 3.0),
    started("2/0", "torch_dynamo_resume_in_inner_at_5", "1/0", 5),
    done("2/0", 1.0),
    started("3/0", "torch_dynamo_resume_in_f_at_20", "0/0", 20),
    done("3/0", 4.0),
)
"""f calls inner, which prints; torch compiles both, and what follows of both."""
