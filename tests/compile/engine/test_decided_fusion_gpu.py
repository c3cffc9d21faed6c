"""Fusion and what kernels do, on a CUDA GPU: Triton's reasons, and loads and stores as torch counts them."""

import re
from collections.abc import Callable

import pytest
import torch

from idbg.analysis.decisions.fusion import fusion_of, why_not
from idbg.analysis.decisions.kernel_facts import kernel_facts
from idbg.render.text import text as text_of
from idbg.schema.graphs import GraphId, NodeId
from idbg.schema.runs import Run
from idbg.views import fusion as report

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")]
Runner = Callable[..., Run]
COLD = {"fx_graph_cache": False}
GRAPH = GraphId("0/0", "post_grad", "inference")
PROGRAM = """\
import torch

def f(x, y):
    return y.cos() + 1, torch.softmax(x @ x, -1) * 2, (x.sin() * 2).sum(0)

torch.compile(f)(torch.randn(64, 64, device="cuda"), torch.randn(1000, device="cuda"))
"""


def test_triton_kernels_and_what_keeps_nodes_apart(ran: Runner):
    run = ran(PROGRAM, backend="inductor", device="cuda", options=COLD)
    assert run.failure is None
    found = fusion_of(run, "0/0", "inference")
    assert found is not None
    assert {op.device.partition(":")[0] for op in found.log.ops} == {"cuda"}
    mm = next(name for name in found.of_node if name.startswith("mm"))
    assert why_not(run, NodeId(GRAPH, mm), NodeId(GRAPH, "cos")).kind == "library"
    assert why_not(run, NodeId(GRAPH, "cos"), NodeId(GRAPH, "sin")).kind == "apart"
    assert why_not(run, NodeId(GRAPH, "cos"), NodeId(GRAPH, "add")).kind == "one"
    triton = [kernel for kernel in run.kernels if kernel.language == "triton"]
    assert len(triton) >= 2
    for kernel in triton:
        facts = kernel_facts(run, kernel)
        noted = dict(re.findall(r"'num_(load|store)': (\d+)", kernel.source))
        assert (facts.loads, facts.stores) == (int(noted["load"]), int(noted["store"]))
        assert facts.kind
        assert facts.sizes
        assert facts.reads
        assert facts.writes
    assert found.kernels[found.of_node["cos"][0]] in triton
    assert any("xnumel" in line for line in text_of(report.view(run)).splitlines())
