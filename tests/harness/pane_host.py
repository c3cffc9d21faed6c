"""One pane in an app of its own, over a small session made by hand: what a pane shows, and what it posts."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot

from idbg.schema import events
from idbg.schema.code import Kernel, KernelCall, OutputCode
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Frame, Graph, GraphId, Links, Node, Sym, TensorMeta
from idbg.schema.programs import Program, Target
from idbg_tui import messages
from idbg_tui.panes.base import Pane
from idbg_tui.state import navigation
from idbg_tui.state.state import State

Posted = TypeVar("Posted", bound=Message)

RULES = """name = "small"

[[rules]]
kind = "alignment"
multiple = 1  # elements
severity = "pad"

[[rules]]
kind = "dtype"
allowed = ["float32"]
"""

MODEL = "import torch\n\n\ndef f(x, w):\n    y = x @ w\n    y = torch.relu(y)\n    return y.sum()\n"

FX = """class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[8, 10]", arg1_1: "f32[10, 7]"):
        # File: model.py:5 in f, code: y = x @ w
        mm: "f32[8, 7]" = torch.ops.aten.mm.default(arg0_1, arg1_1)
        # File: model.py:6 in f, code: y = torch.relu(y)
        relu: "f32[8, 7]" = torch.ops.aten.relu.default(mm)
        # File: model.py:7 in f, code: return y.sum()
        sum_1: "f32[]" = torch.ops.aten.sum.default(relu)
        return (sum_1,)
"""

KERNEL = """#include <torch/csrc/inductor/cpp_prefix.h>

extern "C"  void kernel(const float* in_ptr0, float* out_ptr0)
{
    /* one loop
       over rows */
    for (int64_t x0 = 0; x0 < 56; x0 += 16) {
        auto tmp0 = in_ptr0[x0]; // relu, then sum
    }
}
"""

WRAPPER = f"""# AOT ID: ['0_inference']
from torch._inductor.async_compile import AsyncCompile
async_compile = AsyncCompile()

cpp_fused_relu_sum_0 = async_compile.cpp_pybinding(['const float*', 'float*'], '''
{KERNEL}''')

def call(args):
    arg0_1, arg1_1 = args
    buf0 = empty_strided_cpu((8, 7), (7, 1), torch.float32)
    extern_kernels.mm(arg0_1, arg1_1, out=buf0)
    cpp_fused_relu_sum_0(buf0, buf1)
    return (buf1,)
"""

INFERENCE = GraphId("0/0", "inference")
POST_GRAD = GraphId("0/0", "post_grad", "inference")
DYNAMO = GraphId("0/0", "dynamo")


def f32(*shape: int | Sym) -> tuple[TensorMeta, ...]:
    stride: list[int | Sym] = []
    size: int | Sym = 1
    for dim in reversed(shape):
        stride.insert(0, size)
        size = size * dim if isinstance(size, int) and isinstance(dim, int) else Sym(f"{size}*{dim}")
    return (TensorMeta("float32", shape, tuple(stride), "cpu"),)


def wrapper_line(text: str) -> int:
    """The 1-based line of the wrapper that has this text, the last if there are several."""
    return max(number for number, line in enumerate(WRAPPER.split("\n"), 1) if text in line)


def aten_nodes(file: str) -> tuple[Node, ...]:
    return (
        Node(name="arg0_1", op="placeholder", target="arg0_1", tensors=f32(8, 10), role="input", code_line=2),
        Node(name="arg1_1", op="placeholder", target="arg1_1", tensors=f32(10, 7), role="weight", code_line=2),
        Node(
            name="mm",
            op="call_function",
            target="aten.mm.default",
            args="(arg0_1, arg1_1)",
            inputs=("arg0_1", "arg1_1"),
            tensors=f32(8, 7),
            module="layer.proj",
            module_class="Linear",
            file=file,
            line=5,
            code="y = x @ w",
            code_line=4,
        ),
        Node(
            name="relu",
            op="call_function",
            target="aten.relu.default",
            args="(mm,)",
            inputs=("mm",),
            tensors=f32(8, 7),
            file=file,
            line=6,
            code="y = torch.relu(y)",
            code_line=6,
        ),
        Node(
            name="sum_1",
            op="call_function",
            target="aten.sum.default",
            args="(relu,)",
            inputs=("relu",),
            tensors=f32(),
            file=file,
            line=7,
            code="return y.sum()",
            code_line=8,
        ),
        Node(name="output", op="output", target="output", inputs=("sum_1",)),
    )


def session_events(file: str, *, code: bool = True) -> list[SessionEvent]:
    """A finished run: a Dynamo, an inference and a post-grad graph, one extern and one C++ kernel."""
    nodes = aten_nodes(file)
    dynamo = (
        Node(name="l_x_", op="placeholder", target="l_x_", tensors=f32(8, Sym("s0", 10, 2, 64)), role="input"),
        Node(name="matmul", op="call_function", target="operator.matmul", inputs=("l_x_",), file=file, line=5),
        Node(name="y", op="call_function", target="torch.relu", inputs=("matmul",), file=file, line=6),
    )
    mm = Kernel(
        frame="0/0",
        part="inference",
        name="extern_kernels.mm",
        language="extern",
        calls=(KernelCall("extern_kernels.mm:1", wrapper_line("extern_kernels.mm("), ("mm",)),),
    )
    fused = Kernel(
        frame="0/0",
        part="inference",
        name="cpp_fused_relu_sum_0",
        language="cpp",
        source=KERNEL,
        line=5,
        calls=(KernelCall("cpp_fused_relu_sum_0:2", wrapper_line("_sum_0(buf0"), ("relu", "sum_1")),),
    )
    found: list[SessionEvent] = [
        events.RunStarted(
            at=1.0,
            run=1,
            program=Program("model.py"),
            target=Target(backend="aot" if code else "eager", accelerator="small", rules=RULES),
        ),
        events.FrameStarted(run=1, frame=Frame("0/0", "f", file, 4)),
        events.GraphCaptured(run=1, graph=Graph(DYNAMO, dynamo, "")),
        events.GraphCaptured(run=1, graph=Graph(INFERENCE, nodes, FX)),
    ]
    if code:
        found += [
            events.GraphCaptured(run=1, graph=Graph(POST_GRAD, nodes, FX)),
            events.LinksCaptured(run=1, links=Links(DYNAMO, INFERENCE, (("matmul", "mm"), ("y", "relu")))),
            events.LinksCaptured(
                run=1, links=Links(INFERENCE, POST_GRAD, tuple((name, name) for name in ("mm", "relu", "sum_1")))
            ),
            events.CodeCaptured(run=1, code=OutputCode("0/0", "inference", WRAPPER, (fused, mm))),
        ]
    return [*found, events.RunEnded(run=1, verdict="clean", seconds=1.5)]


def make_state(file: str = "", *, code: bool = True, node: str = "relu") -> State:
    state = State()
    state.apply(session_events(file, code=code))
    assert state.choose(state.shown.graphs[INFERENCE].node_id(node)) if state.shown else False
    return state


class Host(App[None]):
    """Shows one pane and keeps what it posts; `follow` is what the real app does with those messages."""

    CSS = "Screen > * { height: 1fr; width: 1fr; border: round $foreground 40%; }"
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, pane: Pane, state: State, follow: Callable[[State, Message], object] | None = None) -> None:
        super().__init__()
        self.pane = pane
        self.state = state
        self.posted: list[Message] = []
        self._follow = follow
        self._is_shown = False

    @asynccontextmanager
    async def run_test(self, **how: Any) -> AsyncGenerator[Pilot[None], None]:  # type: ignore[override]
        """The pilot, once the pane shows the state: on a busy machine a pause of the pilot's may end before."""
        async with super().run_test(**how) as pilot:
            while not self._is_shown and self.is_running:
                await pilot.pause(0.002)
            await pilot.pause()
            yield pilot

    def compose(self) -> ComposeResult:
        yield self.pane

    def on_mount(self) -> None:
        self.pane.focus_target().focus()
        self.call_after_refresh(self._show)

    def _show(self) -> None:
        self.pane.show(self.state)
        self._is_shown = True

    def on_event_posted(self, message: Message) -> None:
        self.posted.append(message)
        if self._follow is not None:
            self._follow(self.state, message)
            self.pane.show(self.state)

    def of(self, kind: type[Posted]) -> list[Posted]:
        return [message for message in self.posted if type(message) is kind]


def _keep(self: Host, message: Message) -> None:
    self.on_event_posted(message)


for _name in (
    *("NodeChosen", "KernelChosen", "LineChosen", "RulesChanged"),
    *("EditorRequest", "CopyRequest", "Flash", "LowerRequest", "StageChosen"),
):
    setattr(Host, getattr(messages, _name).handler_name, _keep)


def follow_choices(state: State, message: Message) -> None:
    """Select what was chosen, as the app does."""
    match message:
        case messages.NodeChosen():
            state.choose(message.node, jump=message.jump, heading=message.heading)
        case messages.KernelChosen():
            navigation.choose_kernel(state, message.frame, message.part, message.name, message.handle, message.line)
        case messages.StageChosen():
            navigation.step_compiler_stage(state, message.step)
        case messages.LineChosen():
            navigation.choose_line(state, message.file, message.line)
        case _:
            pass


def write_model(folder: Path) -> str:
    path = folder / "model.py"
    path.write_text(MODEL)
    return str(path)
