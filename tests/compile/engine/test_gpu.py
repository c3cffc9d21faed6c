"""The same slice on a CUDA GPU: Triton kernels split from the code, linked to nodes, and a repro on the device."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from idbg.accelerators import registry
from idbg.analysis.provenance import Provenance
from idbg.schema import events
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run, fold
from idbg.worker.jobs import Jobs
from idbg.worker.protocol import Compile, WriteRepro

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")]

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def compiled(tmp_path: Path, example: str, jobs: Jobs, told: list[events.SessionEvent], **target: Any) -> Run:
    program = Program(str(EXAMPLES / example), cwd=str(tmp_path))
    rules, _ = registry.find("mock")
    chosen = Target(rules=rules, device="cuda", **target)
    told.append(events.RunStarted(run=1, program=program, target=chosen))
    told.append(jobs.compile(Compile(1, program, chosen, str(tmp_path))))
    return fold(told).runs[1]


@pytest.mark.parametrize("example", ["mlp_train.py", "attention.py"])
def test_triton_kernels_are_split_and_linked(tmp_path: Path, example: str):
    told: list[events.SessionEvent] = []
    run = compiled(tmp_path, example, Jobs(told.append), told)
    assert run.failure is None
    triton = [kernel for kernel in run.kernels if kernel.language == "triton"]
    assert triton, [kernel.name for kernel in run.kernels]
    provenance = Provenance(run)
    for kernel in triton:
        assert "@triton.jit" in kernel.source
        assert f"def {kernel.name}(" in kernel.source or re.search(r"def triton_\w*\(", kernel.source)
        graph = run.graph("0/0", "post_grad", kernel.part)
        assert kernel.calls
        assert set(kernel.nodes) <= graph.by_name.keys()
        wrapper = run.codes["0/0", kernel.part].text.splitlines()
        assert all(kernel.name in wrapper[call.line - 1] for call in kernel.calls)
        for name in kernel.nodes:
            assert kernel.name in {found.name for found, _ in provenance.kernels_of(graph.node_id(name))}
    devices = {node.tensor.device for graph in run.graphs.values() for node in graph.nodes if node.tensor}
    assert "cuda:0" in devices


def test_a_repro_of_a_violation_on_the_gpu_reproduces(tmp_path: Path):
    told: list[events.SessionEvent] = []
    jobs = Jobs(told.append)
    run = compiled(tmp_path, "resnet.py", jobs, told, backend="mock")
    violation = next(found for found in run.violations if found.rule == "unsupported_ops")
    ended = jobs.do(WriteRepro(1, str(tmp_path / "repros"), violation.node, violation.rule))
    assert isinstance(ended, events.ReproEnded)
    assert ended.failure is None, ended.failure
    assert ended.reproduced, ended.output
    assert "cuda" in Path(ended.path).read_text()
