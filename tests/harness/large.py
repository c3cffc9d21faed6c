"""Sessions of any size, made without torch."""

from msgspec.structs import replace

from idbg.schema import events
from idbg.schema.code import KernelCall, OutputCode
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Frame, Graph, GraphId, Links, Node, NodeId, TensorMeta
from idbg.schema.programs import Program, Target
from idbg.schema.runs import fold
from idbg.schema.violations import Violation
from tests.harness.recorded import log

FRAME = "0/0"
STAGES = (GraphId(FRAME, "dynamo"), GraphId(FRAME, "inference"), GraphId(FRAME, "post_grad", "inference"))


def branching(graph_id, count: int, width: int = 8) -> Graph:
    """A graph of `count` nodes in modules of blocks, each of which reads the one before it and one farther back."""
    tensor = TensorMeta("float32", (64, 128), (128, 1), "cpu")
    nodes = tuple(
        Node(
            name=f"add_{index}",
            op="call_function",
            target="aten.add.Tensor",
            args=f"add_{index - 1}, add_{max(0, index - 5)}",
            inputs=tuple(dict.fromkeys(f"add_{at}" for at in (index - 1, index - 5) if at >= 0)),
            tensors=(tensor,),
            module=f"layers.{index // (width * 10)}.block{index // width % 10}",
            module_class="Block",
            file="/home/me/model.py",
            line=index % 300 + 1,
            code=f"x = x + y  # {index % 300}",
        )
        for index in range(count)
    )
    return Graph(graph_id, nodes)


def session(nodes: int, kernels: int) -> list[SessionEvent]:
    """One run with graphs at three stages, linked, kernels of the lowest, and a violation of every tenth node."""
    sizes = (nodes // 2, nodes // 4, nodes - nodes // 2 - nodes // 4)
    graphs = [branching(stage, size) for stage, size in zip(STAGES, sizes, strict=True)]
    sources = [
        kernel
        for name in ("resnet", "attention", "mlp_train_cuda")
        for run in fold(log(name)).runs.values()
        for kernel in run.kernels
        if kernel.source
    ]
    names = [node.name for node in graphs[2].nodes]
    share = max(1, len(names) // kernels)
    made = tuple(
        replace(
            source := sources[number % len(sources)],
            frame=FRAME,
            part="inference",
            name=f"{source.name}_{number}",
            source=f"# kernel {number}\n{source.source}",  # or it would be told once
            calls=(KernelCall(f"k:{number}", number, tuple(names[number * share : (number + 1) * share])),),
        )
        for number in range(kernels)
    )
    down = Links(STAGES[0], STAGES[1], tuple((node.name, f"add_{at // 2}") for at, node in enumerate(graphs[0].nodes)))
    lower = Links(STAGES[1], STAGES[2], tuple((node.name, node.name) for node in graphs[1].nodes))
    broken = tuple(
        Violation(
            rule="alignment",
            severity="pad",
            node=NodeId(graphs[1].id, node.name),
            found=f"dim 0 is {10 + at}",
            wanted="a multiple of 16",
            fix="pad it",
            file=node.file,
            line=node.line,
        )
        for at, node in enumerate(graphs[1].nodes[::10])
    )
    return [
        events.WorkerStarted(pid=1, torch="2.14.1", python="3.11.7", devices=("cpu",), seconds=1.0),
        events.RunStarted(run=1, program=Program("model.py"), target=Target(backend="inductor")),
        events.FrameStarted(run=1, frame=Frame(FRAME, "forward", "/home/me/model.py", 1)),
        *(events.GraphCaptured(run=1, graph=graph) for graph in graphs),
        events.LinksCaptured(run=1, links=down),
        events.LinksCaptured(run=1, links=lower),
        events.CodeCaptured(run=1, code=OutputCode(FRAME, "inference", "", made)),
        events.ViolationsFound(run=1, violations=broken),
        events.RunEnded(run=1, verdict="violations", seconds=9.0),
    ]
