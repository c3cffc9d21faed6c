"""Why no CUDA graph can be made is told at compile time, also where there is no GPU: at the line, with its nodes."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from idbg.render.text import text as text_of
from idbg.schema.runs import Run
from idbg.views import cuda_graphs as report
from idbg.views.tree import referring
from tests.harness.fresh_caches import cuda_graphs, own_caches

TEXT = """\
import torch

def f(x):
    y = x + 1
    return y.sin()

def program():
    return f, (torch.randn(4, 8),)
"""
GRAPHS = {"triton.cudagraphs": True}


@pytest.fixture(autouse=True)
def _own_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_caches(tmp_path, monkeypatch)


def test_nothing_is_said_where_no_cuda_graph_was_asked_for(ran: Callable[..., Run]):
    run = ran(TEXT, backend="inductor")
    assert cuda_graphs(run) == [] and text_of(report.view(run)) == report.NOTHING


def test_each_op_that_is_left_out_is_told_at_its_line_and_not_guessed_on_a_hit(ran: Callable[..., Run]):
    run = ran(TEXT, backend="inductor", options=GRAPHS)
    split = [graph for graph in cuda_graphs(run) if graph.outcome == "split"]
    assert {graph.reason for graph in split} == {"cpu ops"} and {graph.line for graph in split} <= {4, 5}
    nodes = {name for graph in split for name in graph.nodes}
    assert nodes and nodes <= set(run.graph("0/0", "post_grad", "inference").by_name)
    (skipped,) = [graph for graph in cuda_graphs(run) if graph.outcome == "skipped"]
    assert skipped.part == "inference"
    told = text_of(report.view(run))
    assert "it runs on the CPU" in told and "subject.py:" in told
    rows = list(referring(report.view(run)))
    assert {row.refs.line for row in rows} & {4, 5} and any(row.refs.nodes for row in rows)

    torch._dynamo.reset()
    hit = ran(TEXT, backend="inductor", options=GRAPHS)
    assert [graph.outcome for graph in cuda_graphs(hit)] == ["skipped"]


def test_a_whole_graph_is_refused_with_the_line_of_the_reason(ran: Callable[..., Run]):
    run = ran(TEXT, backend="inductor", options={**GRAPHS, "graph_partition": False})
    (graph,) = cuda_graphs(run)
    assert (graph.outcome, graph.part, graph.line) == ("skipped", "inference", 4)
    assert graph.reason.startswith("cpu device (")
    assert "a tensor on the CPU is in it" in text_of(report.view(run))


def test_a_dynamic_size_is_the_reason_where_that_is_asked(ran: Callable[..., Run]):
    options = {**GRAPHS, "graph_partition": False, "triton.cudagraph_skip_dynamic_graphs": True}
    run = ran(TEXT, backend="inductor", options=options, dynamic=True)
    (graph,) = cuda_graphs(run)
    assert graph.outcome == "skipped" and "symbolic shapes" in graph.reason and graph.line in (4, 5)
    assert "mark_static" in text_of(report.view(run))


def test_an_op_that_cannot_be_recorded_is_named(ran: Callable[..., Run]):
    text = """\
import torch

@torch.library.custom_op("unrecordable::twice", mutates_args=(), tags=(torch.Tag.cudagraph_unsafe,))
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2

twice.register_fake(torch.empty_like)

def f(x):
    y = x + 1
    return twice(y)

def program():
    return f, (torch.randn(4, 8),)
"""
    run = ran(text, backend="inductor", options={**GRAPHS, "graph_partition": False})
    (graph,) = cuda_graphs(run)
    assert graph.reason == "incompatible op unrecordable.twice.default" and graph.line == 11
    assert "unrecordable.twice.default cannot be recorded" in text_of(report.view(run))
