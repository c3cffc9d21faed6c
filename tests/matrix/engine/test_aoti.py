"""AOTInductor is a target like others: its graphs, constants, kernels and C++ wrapper are captured, and it runs."""

import subprocess
import sys
from collections.abc import Callable

import pytest
import torch

from idbg.schema.graphs import GraphId
from idbg.schema.runs import Run

Runner = Callable[..., Run]
pytestmark = pytest.mark.slow  # g++ builds a library for each graph

MODEL = """\
import torch

class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(8, 16)
        self.register_buffer("k", torch.randn(16))

    def forward(self, x):
        y = torch.nn.functional.gelu(self.a(x) + self.k)
        return {"y": y, "none": None, "total": x.sum()}

model = M()
compiled = torch.compile(model, dynamic=True)
with torch.no_grad():
    for size in (4, 6):
        x = torch.randn(size, 8)
        torch.testing.assert_close(compiled(x), model(x))
"""
BROKEN = """\
import torch

class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, x):
        y = self.norm(x)
        print("between")
        return y.sin()

def program():
    return M(), (torch.randn(3, 4),)
"""


def test_graphs_constants_kernels_and_the_wrapper_are_there_and_it_gives_what_eager_does(ran: Runner):
    run = ran(MODEL, backend="aoti", strict=False)
    assert run.failure is None, run.failure
    graph = run.graphs[GraphId("0/0", "inference")]
    constants = {node.target: (node.role, node.module) for node in graph.nodes if node.op == "get_attr"}
    assert sorted(role for role, _ in constants.values()) == ["buffer", "weight", "weight"]
    assert {module for role, module in constants.values() if role == "weight"} == {"a"}
    ((key, code),) = run.codes.items()
    assert key == ("0/0", "inference")
    assert "AOTInductorModel" in code.text
    (fused, *_) = [kernel for kernel in code.kernels if kernel.language == "cpp"]
    assert fused.name in fused.source
    assert code.text.splitlines()[fused.line - 1].startswith('extern "C"')
    assert fused.calls and all(call.nodes for call in fused.calls)
    assert fused.name in code.text.splitlines()[fused.calls[0].line - 1]
    assert any(links.above.stage == "dynamo" and links.pairs for links in run.links)
    assert list(run.frames) == ["0/0"]  # for both sizes


def test_a_break_makes_two_libraries_and_weights_that_change_in_one_alone_are_reported(ran: Runner):
    run = ran(BROKEN, backend="aoti", strict=False)
    assert run.failure is None, run.failure
    assert len(run.codes) == 2
    assert any("running_mean" in note and "not in the program" in note for note in run.notes)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import torch\nf = torch.nn.Linear(2, 2)\ntorch.compile(f)(torch.ones(1, 2)).sum().backward()\n", "gradients"),
        (
            "import torch\ntorch.compile(lambda x: (x.sin(), x.shape[0]), dynamic=True)(torch.ones(3))\n",
            "returns a number",
        ),
    ],
)
def test_what_it_cannot_do_is_one_sentence(ran: Runner, text: str, why: str):
    run = ran(text, backend="aoti", strict=False)
    assert run.failure is not None
    assert run.failure.kind == "input", run.failure
    assert why in run.failure.message


TORCHS_OWN = """
import torch
model, x = torch.nn.Linear(8, 16).cuda(), torch.randn(4, 8, device="cuda")
with torch.no_grad():
    package = torch._inductor.aoti_compile_and_package(torch.export.export(model, (x,)))
    torch._inductor.aoti_load_package(package)(x)
"""


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_on_a_gpu_it_gives_what_eager_does(ran: Runner):
    status = subprocess.run([sys.executable, "-c", TORCHS_OWN], capture_output=True).returncode
    if status != 0:  # on an H100 with torch 2.11 as it is built there: SIGSEGV as the library is loaded
        pytest.skip(f"torch's own way to AOTInductor ends with {status} here")
    run = ran(
        MODEL.replace("M(), torch.randn(4, 8)", 'M().cuda(), torch.randn(4, 8, device="cuda")'),
        backend="aoti",
        strict=False,
    )
    assert run.failure is None, run.failure
    (code,) = run.codes.values()
    assert any("triton" in kernel.name and kernel.calls for kernel in code.kernels)
