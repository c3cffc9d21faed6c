"""On a CUDA GPU: peak memory and FLOPs are torch's own, and the mock computes in the formats of the hardware."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch._inductor.fx_passes import memory_estimator
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

import idbg
from idbg.analysis import ops
from idbg.analysis.flops import flops
from idbg.analysis.liveness import memory_profile
from idbg.engine.capture.frame import FrameCapture
from idbg.engine.capture.fx import graph_of
from idbg.engine.compat import lowering
from idbg.schema.graphs import Graph, GraphId, Part

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")]


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(64), nn.Linear(64, 192), nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = (
            part.reshape(batch, length, 4, width // 4).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1)
        )
        return x + self.out(F.scaled_dot_product_attention(*parts).transpose(1, 2).reshape(batch, length, width))


def attention(dtype: torch.dtype) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    return Attention().to("cuda", dtype), torch.randn(2, 32, 64, device="cuda", dtype=dtype)


def captured(function: Callable[..., torch.Tensor], *args: torch.Tensor) -> list[tuple[GraphModule, Graph]]:
    found: list[tuple[GraphModule, Graph]] = []

    def backend(gm: GraphModule, inputs: list[object]) -> lowering.Compiled:
        frame = FrameCapture("0/0", 1, lambda event: None)
        frame.dynamo(gm)

        def kept(part: Part) -> Any:
            def compiler(gm: GraphModule, inputs: list[object]) -> lowering.Compiled:
                found.append((gm, frame.part(gm, part)))
                return lowering.boxed(gm.forward)

            return compiler

        return lowering.aot_autograd(kept("forward"), kept("backward"), kept("inference"))(gm, inputs)

    torch.compile(function, backend=backend, fullgraph=True)(*args).sum().backward()
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_peak_memory_is_what_torch_estimates_for_the_gpu(dtype: torch.dtype):
    model, x = attention(dtype)
    graphs = captured(model, x)
    assert [graph.id.stage for _, graph in graphs] == ["forward", "backward"]
    for gm, graph in graphs:
        on_gpu = all(tensor.device == "cuda:0" or tensor.shape == () for node in graph.nodes for tensor in node.tensors)
        assert on_gpu, {tensor.device for node in graph.nodes for tensor in node.tensors}
        weights = {node.name for node in graph.nodes if node.role in ("weight", "buffer")}
        torchs = memory_estimator.build_memory_profile(
            gm.graph, lambda node, weights=weights: memory_estimator._is_releasable(node) and node.name not in weights
        )
        assert abs(memory_profile(graph).peak_bytes - max(torchs)) <= 64, graph.id  # its seeds live on the CPU


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_flops_are_those_that_torch_counts_on_the_gpu(dtype: torch.dtype):
    torch.manual_seed(0)
    shapes = (2, 32, 64), (192, 64), (64, 64)
    inputs = [torch.randn(shape, device="cuda", dtype=dtype, requires_grad=True) for shape in shapes]

    def step(x: torch.Tensor, qkv: torch.Tensor, out: torch.Tensor) -> object:
        q, k, v = (part.reshape(2, 32, 4, 16).transpose(1, 2) for part in F.linear(x, qkv).chunk(3, -1))
        result = F.linear(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, 32, 64), out)
        return torch.autograd.grad(result.sum(), (x, qkv, out))

    with FlopCounterMode(display=False) as counter:
        step(*inputs)
    graph = graph_of(make_fx(step, tracing_mode="real")(*inputs), GraphId("0/0", "joint"))
    operands = {
        node.name: [t for name in ops.operands(node) for t in graph.by_name[name].tensors] for node in graph.nodes
    }
    counts = [
        flops(node.target, operands[node.name], node.tensors, node.args)
        for node in graph.nodes
        if node.op == "call_function"
    ]
    assert any("attention" in node.target for node in graph.nodes)
    assert None not in counts and sum(counts) == counter.get_total_flops()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "table", ['compute = "bf16"', 'compute = "fp16"', 'compute = "tf32"', 'compute = "fp8_e4m3"', 'compute = "int8"']
)
def test_the_mock_computes_on_the_gpu_as_it_does_on_the_cpu(tmp_path: Path, table: str):
    path = tmp_path / "chip.toml"
    path.write_text(f"[numerics]\n{table}\n")
    results = {}
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        torch._dynamo.reset()
        model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8))
        x = torch.randn(16, 64)
        model, x = model.to(device), x.to(device).requires_grad_()
        out = torch.compile(model, backend=idbg.backend("mock", accelerator=path, strict=False))(x)
        out.sum().backward()
        results[device] = out.detach().cpu(), x.grad.cpu()
    # the bound: two steps of the format, of the largest value
    step = {"bf16": 2**-7, "fp16": 2**-10, "tf32": 2**-9, "fp8_e4m3": 2**-2, "int8": 2**-5}[table.split('"')[1]]
    for here, there in zip(results["cpu"], results["cuda"], strict=True):
        assert (here - there).abs().max() <= 2 * step * here.abs().max()


def test_tf32_of_the_mock_is_that_of_the_hardware(tmp_path: Path):
    if torch.cuda.get_device_capability() < (8, 0):
        pytest.skip("this GPU has no TF32")
    path = tmp_path / "chip.toml"
    path.write_text('[numerics]\ncompute = "tf32"\n')
    torch.manual_seed(0)
    a, b = torch.randn(512, 512, device="cuda"), torch.randn(512, 512, device="cuda")
    exact = (a.double() @ b.double()).float()
    before = torch.backends.cuda.matmul.allow_tf32
    try:
        torch.backends.cuda.matmul.allow_tf32 = True
        hardware = a @ b
        torch.backends.cuda.matmul.allow_tf32 = False
        mock = torch.compile(torch.mm, backend=idbg.backend("mock", accelerator=path, strict=False))(a, b)
        full = a @ b
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before

    def rmse(found: torch.Tensor, reference: torch.Tensor) -> float:
        return float((found - reference).double().pow(2).mean().sqrt())

    print(f"rmse: tf32 {rmse(hardware, exact):.3g}, mock {rmse(mock, exact):.3g}, float32 {rmse(full, exact):.3g}, "
          f"mock from tf32 {rmse(mock, hardware):.3g}")  # fmt: skip
    assert rmse(hardware, exact) > 10 * rmse(full, exact)  # the hardware did use TF32
    assert rmse(mock, hardware) < rmse(hardware, exact) / 10
