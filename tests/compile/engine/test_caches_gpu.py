"""On a GPU: what is recorded as a CUDA graph and what is not, which Triton template and configuration won, and what
Triton's and the autotuner's caches had.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from idbg.render.text import text as text_of
from idbg.schema.decisions.inductor import Autotuned
from idbg.schema.runs import Run
from idbg.views import autotune as autotune_report
from idbg.views import cache as cache_report
from idbg.views import cuda_graphs as cuda_graph_report
from tests.harness.fresh_caches import answers, cuda_graphs, outcomes, own_caches

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")]

GRAPHS = {"triton.cudagraphs": True}
CALLED = """\
import torch

{function}

compiled = torch.compile(f)
w = torch.randn(64, 64, device="cuda")
with torch.no_grad():
    for rows in {rows}:
        torch.compiler.cudagraph_mark_step_begin()
        compiled(torch.randn(rows, 64, device="cuda"), w)
torch.cuda.synchronize()
"""
PLAIN = "def f(x, w):\n    return torch.relu(x @ w) + 1"
MUTATED = "def f(x, w):\n    x.add_(1)\n    return torch.relu(x @ w)"
ON_THE_CPU = "def f(x, w):\n    y = torch.relu(x @ w)\n    z = y.cpu() + 1\n    return y + 1, z"


@pytest.fixture(autouse=True)
def _own_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_caches(tmp_path, monkeypatch)


@pytest.fixture
def again(ran: Callable[..., Run]) -> Callable[..., Run]:
    """A script once more, as a fresh process would have it."""

    def run(text: str, **target: Any) -> Run:
        torch._dynamo.reset()
        found = ran(text, backend="inductor", **target)
        assert found.failure is None, found.failure
        assert not [note for note in found.notes if "not recorded in full" in note]  # type: ignore[attr-defined]
        return found

    return run


def called(function: str, rows: list[int]) -> str:
    return CALLED.format(function=function, rows=rows)


def line_of(function: str, text: str) -> int:
    """The line of a script made of this function that has the text."""
    return next(number for number, line in enumerate(called(function, []).splitlines(), 1) if text in line)


def tunings(run: Run) -> list[Autotuned]:
    return [tuned for each in run.decided.of(Autotuned).values() for tuned in each]


def test_the_second_call_is_recorded_once(again: Callable[..., Run]):
    once = again(called(PLAIN, [32]), options=GRAPHS)
    assert [graph.outcome for graph in cuda_graphs(once)] == ["ready"]
    assert "second call" in text_of(cuda_graph_report.view(once))
    often = again(called(PLAIN, [32] * 5), options=GRAPHS)
    assert [(graph.outcome, graph.part, graph.times) for graph in cuda_graphs(often)] == [
        ("ready", "inference", 1),
        ("captured", "inference", 1),
    ]
    assert [cuda_graph_report.sentence(graph) for _, graph in cuda_graph_report.outcomes(often)] == ["recorded"]


def test_a_changed_input_is_skipped_at_its_line(again: Callable[..., Run]):
    run = again(called(MUTATED, [32] * 4), options=GRAPHS)
    (skipped,) = [graph for graph in cuda_graphs(run) if graph.outcome == "skipped"]
    assert skipped.reason.startswith("mutated inputs (1 instances)")
    assert skipped.line == line_of(MUTATED, "x.add_(1)") and skipped.file.endswith("subject.py")
    assert not [graph for graph in cuda_graphs(run) if graph.outcome == "captured"]
    assert "clone()" in text_of(cuda_graph_report.view(run))


def test_what_is_on_the_cpu_is_left_out_or_keeps_all_of_it_out(again: Callable[..., Run]):
    run = again(called(ON_THE_CPU, [32] * 4), options=GRAPHS)
    split = [graph for graph in cuda_graphs(run) if graph.outcome == "split"]
    assert split and {graph.line for graph in split} == {line_of(ON_THE_CPU, "y.cpu()")}
    assert [graph.outcome for graph in cuda_graphs(run)].count("captured") >= 1

    whole = again(called(ON_THE_CPU, [32] * 4), options={**GRAPHS, "graph_partition": False})
    (skipped,) = cuda_graphs(whole)
    assert skipped.outcome == "skipped" and skipped.reason.startswith("cpu device (")
    assert skipped.line > 0


def test_other_sizes_are_recorded_again_or_skipped(again: Callable[..., Run]):
    rows = [32, 32, 48, 48, 48, 80, 80, 80]
    run = again(called(PLAIN, rows), options=GRAPHS, dynamic=True)
    (recorded,) = [graph for graph in cuda_graphs(run) if graph.outcome == "rerecorded"]
    assert recorded.times == 2 and "sizes" in recorded.reason
    options = {**GRAPHS, "graph_partition": False, "triton.cudagraph_skip_dynamic_graphs": True}
    skipped = again(called(PLAIN, rows), options=options, dynamic=True)
    (graph,) = cuda_graphs(skipped)
    assert graph.outcome == "skipped" and "symbolic shapes" in graph.reason and graph.line > 0


def test_a_weight_in_other_memory_is_recorded_again_with_that_reason(again: Callable[..., Run]):
    text = """\
import torch

model = torch.nn.Linear(64, 64).cuda()
compiled = torch.compile(model)
x = torch.randn(32, 64, device="cuda")
kept = []
with torch.no_grad():
    for step in range(6):
        if step == 3:
            kept.append(model.weight.data)
            model.weight.data = model.weight.data.clone()
        torch.compiler.cudagraph_mark_step_begin()
        compiled(x)
torch.cuda.synchronize()
"""
    run = again(text, options=GRAPHS)
    (recorded,) = [graph for graph in cuda_graphs(run) if graph.outcome == "rerecorded"]
    assert recorded.reason.startswith("static input data pointer changed") and recorded.times == 1
    assert "other memory" in text_of(cuda_graph_report.view(run))


def test_templates_of_a_product_are_measured_and_found_again(again: Callable[..., Run]):
    text = """\
import torch

def f(x, w):
    return torch.relu(x @ w) + {number}

with torch.no_grad():
    torch.compile(f)(*(torch.randn(512, 512, device="cuda") for _ in range(2)))
torch.cuda.synchronize()
"""
    options = {"max_autotune_gemm": True, "max_autotune_gemm_backends": "ATEN,TRITON"}
    cold = again(text.format(number=1), options=options)
    tuned = next(each for each in tunings(cold) if each.op == "mm")
    measured = [choice for choice in tuned.choices if choice.seconds is not None]
    assert not tuned.cached and tuned.nodes == ("mm",) and tuned.part == "inference"
    assert any("triton" in choice.name for choice in measured) and len(measured) >= 2
    assert tuned.chosen == measured[0].name == min(measured, key=lambda each: each.seconds or 1).name
    assert all(1e-7 < (choice.seconds or 0) < 1e-2 for choice in measured)
    assert all(choice.error for choice in tuned.choices if choice.seconds is None)
    assert "float32[512, 512]" in tuned.inputs
    assert "faster than the next" in text_of(autotune_report.view(cold))
    frame, first = cold.decided.with_frames(Autotuned)[0]
    kernels = set(autotune_report.kernels_of(cold, frame, first))
    assert kernels and kernels <= {kernel.name for kernel in cold.kernels}

    warm = again(text.format(number=2), options=options)
    found = next(each for each in tunings(warm) if each.op == "mm")
    # where a choice could not be measured, torch keeps no time of it: whether it then measures all again is its own
    assert found.cached or any(choice.seconds is None for choice in tuned.choices)
    assert ("found in the autotune cache" in text_of(autotune_report.view(warm))) == found.cached


def test_configurations_of_a_kernel_and_the_search_from_the_best(again: Callable[..., Run]):
    text = """\
import torch

def f(x, y):
    return (x.t() + y).sin()

with torch.no_grad():
    torch.compile(f)(*(torch.randn(1024, 1024, device="cuda") for _ in range(2)))
torch.cuda.synchronize()
"""
    run = again(text, options={"max_autotune_pointwise": True, "coordinate_descent_tuning": True})
    configured = [tuned for tuned in tunings(run) if tuned.op == "configuration"]
    assert configured and len(configured[0].choices) >= 2
    assert configured[0].kernel in {kernel.name for kernel in run.kernels}
    assert "num_warps=" in configured[0].chosen and configured[0].part == "inference"
    descended = [tuned for tuned in tunings(run) if tuned.op == "configuration, coordinate descent"]
    assert descended and descended[0].chosen in {choice.name for choice in descended[0].choices}
    assert outcomes(run, "autotune") == ["miss"] * len(answers(run, "autotune")) != []


def test_triton_kernels_are_built_then_found(again: Callable[..., Run]):
    cold = again(called(PLAIN, [32]))
    kernels = {kernel.name for kernel in cold.kernels if kernel.language == "triton"}
    assert kernels and {answer.what for answer in answers(cold, "triton")} == kernels
    assert set(outcomes(cold, "triton")) == {"miss"}
    warm = again(called(PLAIN, [32]))
    assert outcomes(warm) == ["hit"] and set(outcomes(warm, "triton")) == {"hit"}
    assert "Triton cache" in text_of(cache_report.view(warm))
    # another graph with the same kernel: Inductor's cache has no such graph, Triton's has the kernel
    other = again(called(PLAIN.replace("x @ w", "x @ w.t()"), [32]))
    assert outcomes(other) == ["miss"] and set(outcomes(other, "triton")) == {"hit"}
