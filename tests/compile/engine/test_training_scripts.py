"""A script that trains, unchanged: its forward, its backward and their stages are compared as a program's are."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from unittest.mock import patch

import pytest
from torch._inductor.decomposition import decompositions
from torch._inductor.lowering import lowerings

from idbg.schema import events
from idbg.schema.diff import Comparison, DiffReport
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Program, Target
from idbg.views.remarks import sentence
from idbg.worker.jobs import Jobs
from idbg.worker.protocol import Compile
from tests.harness.plants.plant import without_caches

HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
"""
ATTENTION = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.out = nn.Linear(16, 4)

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return self.out(F.gelu(x))

net = Block()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
compiled = torch.compile(net)
x, labels = torch.randn(2, 8, 16), torch.randint(0, 4, (16,))
for _ in range(2):
    optimizer.zero_grad()
    F.cross_entropy(compiled(x).flatten(0, 1), labels).backward()
    optimizer.step()
"""
CONVOLUTIONS = """
net = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5),
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
compiled = torch.compile(net)
x, labels = torch.randn(8, 3, 16, 16), torch.randint(0, 5, (8,))
net.eval()
with torch.no_grad():
    compiled(x)
net.train()
for _ in range(2):
    optimizer.zero_grad()
    F.cross_entropy(compiled(x), labels).backward()
    optimizer.step()
"""
LAYERS = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.inner, self.out = nn.LayerNorm(16), nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x):
        y = self.inner(self.norm(x))
        return self.out(F.gelu(y))

compiled = torch.compile(Block())
F.cross_entropy(compiled(torch.randn(16, 16)), torch.randint(0, 4, (16,))).backward()
"""
WHOLE_STEP = """
net = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def differentiate(loss):
    loss.backward()

@torch.compile
def loss_of(x):
    loss = net(x).square().mean()
    differentiate(loss)
    return loss.detach()

loss_of(torch.randn(4, 8))
optimizer.step()
"""
NO_BACKWARD = """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        raise RuntimeError("it has no gradient")

net = nn.Linear(4, 4)
torch.compile(lambda x: Double.apply(net(x)).relu())(torch.randn(2, 4))
"""
TWO_OF_A_KIND = """
one, other = nn.Sequential(nn.Linear(4, 4)), nn.Sequential(nn.Linear(4, 2))
first, second = torch.compile(one), torch.compile(other)
second(first(torch.randn(2, 4))).sum().backward()
"""
# Each makes the gradients wrong by 2 % and leaves the forward right
PASS = """
def wrong(graph):
    for node in graph.nodes:
        if "tangents_1" in {node.name for node in graph.nodes} and node.target is torch.ops.aten.mul.Tensor:
            if isinstance(node.args[1], float):
                node.args = (node.args[0], node.args[1] * 1.02)
                return

torch._inductor.config.post_grad_custom_pre_pass = wrong
"""
JOINT_PASS = """
def wrong(graph):
    last = next(node for node in reversed(graph.nodes) if node.target is torch.ops.aten.mm.default)
    with graph.inserting_after(last):
        more = graph.call_function(torch.ops.aten.mul.Tensor, (last, 1.02))
    more.meta.update(last.meta)
    last.replace_all_uses_with(more, delete_user_cb=lambda user: user is not more)

torch._inductor.config.joint_custom_post_pass = wrong
"""
DECOMPOSITION = """
def gelu_backward(gradient, x, approximate="none"):
    normal = 0.5 * (1 + torch.erf(x * 0.7071067811865476))
    return gradient * (normal + x * torch.exp(-0.5 * x * x) * 0.41)  # is 0.3989

torch._inductor.decomposition.decompositions[torch.ops.aten.gelu_backward.default] = gelu_backward
"""
LOWERING = """
from torch._inductor import lowering

def exp(x, right=lowering.lowerings[torch.ops.aten.exp.default]):
    return right(lowering.mul(x, 1.05))

lowering.lowerings[torch.ops.aten.exp.default] = exp
"""


@cache
def compared(text: str, backend: str = "inductor", *, per_kernel: bool = True) -> DiffReport:
    """The report of a script of this text."""
    folder = Path(mkdtemp())
    path = folder / "train.py"
    path.write_text(text)
    found: list[SessionEvent] = []
    request = Compile(1, Program(str(path)), Target(backend), str(folder), Comparison(per_kernel=per_kernel))
    with (
        without_caches({"post_grad_custom_pre_pass": None, "joint_custom_post_pass": None}),
        patch.dict(decompositions),
        patch.dict(lowerings),
    ):
        ended = Jobs(found.append).compile(request)
    assert ended.failure is None
    return [event.report for event in found if isinstance(event, events.Compared)][-1]


def judged(report: DiffReport) -> set[str]:
    """The stages of which something is known."""
    return {stage.stage for stage in report.stages if stage.judged}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ATTENTION, id="attention", marks=pytest.mark.slow),
        # the gradient of its second batch norm's bias adds up equal numbers, whose roundings do not cancel
        pytest.param(CONVOLUTIONS, id="convolutions", marks=pytest.mark.slow),
    ],
)
def test_a_right_training_is_right_in_its_forward_and_its_backward(text: str) -> None:
    report = compared(HEAD + text)
    assert report.passed, [diff for diff in (*report.outputs, *report.gradients) if diff.failed]
    assert len(report.gradients) >= 8 and all(diff.judged for diff in report.gradients)
    assert judged(report) >= {"dynamo", "post_grad", "kernels"}
    assert report.first_wrong_stage is None and report.culprit is None
    assert {kernel.part for kernel in report.kernels} >= {"forward", "backward"}
    assert all(kernel.observed for kernel in report.kernels)


@pytest.mark.parametrize(
    ("planted", "stage", "maker", "line"),
    [
        pytest.param(
            PASS, "post_grad", ("pass", "post_grad_custom_pre_pass"), "F.gelu(", id="pass", marks=pytest.mark.slow
        ),
        pytest.param(
            JOINT_PASS,
            "joint_passes",
            ("pass", "joint_custom_post_pass"),
            "self.inner(",
            id="joint pass",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            DECOMPOSITION,
            "joint",
            ("decomposition", "aten.gelu_backward.default"),
            "F.gelu(",
            id="decomposition",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            LOWERING, "kernels", ("lowering", "aten.exp.default"), "F.gelu(", id="lowering", marks=pytest.mark.slow
        ),
    ],
)
def test_what_makes_the_gradients_alone_wrong_is_named(
    planted: str, stage: str, maker: tuple[str, str], line: str
) -> None:
    text = HEAD + planted + LAYERS
    report = compared(text)
    assert report.verdict == "failed" and not any(diff.failed for diff in report.outputs)
    assert any(diff.failed for diff in report.gradients)
    guilty = report.first_wrong_stage
    assert guilty is not None and guilty.made_by is not None and guilty.node
    assert (guilty.stage, (guilty.made_by.kind, guilty.made_by.name)) == (stage, maker)
    assert line in text.splitlines()[guilty.line - 1]


def test_a_step_that_differentiates_itself_has_its_gradients_compared() -> None:
    report = compared(HEAD + WHOLE_STEP, "aot_eager", per_kernel=False)
    assert report.passed
    names = {"net.0.weight", "net.0.bias", "net.2.weight", "net.2.bias"}
    assert {diff.name for diff in report.gradients} == {f"loss_of: grad({name})" for name in names}


@pytest.mark.slow
def test_what_eager_cannot_differentiate_is_compared_in_its_forward_and_stages() -> None:
    report = compared(HEAD + NO_BACKWARD)
    assert report.passed and report.outputs and not report.gradients
    assert any("it has no gradient" in sentence(note) for note in report.notes)
    assert judged(report) >= {"dynamo", "post_grad", "kernels"}


def test_functions_of_one_name_are_told_apart() -> None:
    report = compared(HEAD + TWO_OF_A_KIND, "aot_eager", per_kernel=False)
    assert [diff.name for diff in report.outputs] == ["Sequential: out", "Sequential 2: out"]
    assert {diff.name for diff in report.gradients} >= {"Sequential: grad(0.bias)", "Sequential 2: grad(0.bias)"}
