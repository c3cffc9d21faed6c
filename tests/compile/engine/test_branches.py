"""Graphs that a node holds (torch.cond's branches, a loop's body, a nested region), and the kernels of their nodes."""

from collections.abc import Callable
from typing import Any

import pytest

from idbg.analysis.graph_text import read_graph
from idbg.analysis.provenance import Provenance
from idbg.schema.runs import Run

Runner = Callable[..., Run]

COND = """\
import torch

def f(x, y):
    a = x.sin()
    b = y.cos()
    z = torch.cond(x.sum() > 0, lambda a, b: (a.cos() * b).sin(), lambda a, b: a.exp() + b, (a, b))
    return z.cos() * 2 + b.sin()

def program():
    return f, (torch.randn(8, 16), torch.randn(8, 16))
"""
NESTED = """\
import torch

def f(x, y):
    def inner(a, b):
        return torch.cond(b.sum() > 1, lambda a, b: a.sin() + b, lambda a, b: a.cos() * b, (a, b)).exp()
    a = x.sin()
    return torch.cond(x.sum() > 0, inner, lambda a, b: a.tanh() + b, (a, y)).cos() * 2

def program():
    return f, (torch.randn(8, 16), torch.randn(8, 16))
"""
LOOP = """\
import torch
from torch._higher_order_ops.while_loop import while_loop

def f(i, x):
    return while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x.sin() + 1), (i, x))[1]

def program():
    return f, (torch.tensor(0), torch.randn(4, 3))
"""
REGION = """\
import torch

@torch.compiler.nested_compile_region
def region(x, y):
    return torch.mul(x, y).sin() + 1

def f(x, y):
    a = region(x, y)
    return region(a, y).cos() + a.sin()

def program():
    return f, (torch.randn(8, 16), torch.randn(8, 16))
"""
TRAIN = """\
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(16, 16)

    def forward(self, x, y):
        h = self.inner(x)
        return torch.cond(x.sum() > 0, lambda a, b: self.inner(a).relu() * b, lambda a, b: a.tanh() + b, (h, y)).cos()

def program():
    return Net(), (torch.randn(8, 16), torch.randn(8, 16)), lambda out: out.sum()
"""


def kernels_of(run: Run, stage: Any, name: str) -> set[str]:
    """The debug handles of the kernels of a node, less their numbers."""
    node = run.graph("0/0", stage).node_id(name)
    return {kernel.name for kernel, _ in Provenance(run).kernels_of(node)}


@pytest.mark.slow
def test_a_branchs_kernels_compute_its_own_nodes_and_none_of_the_graph_around(ran: Runner):
    run = ran(COND, backend="inductor")
    graph = run.graph("0/0", "post_grad", "inference")
    outer, false, true = (
        kernels_of(run, "inference", name) for name in ("sum_1", "false_graph_0.exp", "true_graph_0.mul")
    )
    assert len(outer) == len(false) == len(true) == 1
    assert len(outer | false | true) == 3
    assert kernels_of(run, "inference", "sin") == outer
    assert kernels_of(run, "inference", "true_graph_0.sin") == true
    assert kernels_of(run, "inference", "cond") == true | false
    assert kernels_of(run, "dynamo", "cond_true_0.mul") == true
    assert kernels_of(run, "dynamo", "cond_false_0.exp") == false
    assert kernels_of(run, "dynamo", "a") == outer
    assert {name for kernel in run.kernels for name in kernel.nodes} <= graph.by_name.keys()


@pytest.mark.slow
@pytest.mark.parametrize("text", [NESTED, LOOP, REGION, TRAIN], ids=["nested", "loop", "region", "train"])
def test_every_kernel_names_nodes_that_the_post_grad_graph_has(ran: Runner, text: str):
    run = ran(text, backend="inductor")
    assert run.verdict == "compiled"
    inside = 0
    for kernel in run.kernels:
        graph = run.graph("0/0", "post_grad", kernel.part)
        assert kernel.nodes, kernel.name
        assert set(kernel.nodes) <= graph.by_name.keys()
        inside += any("." in name for name in kernel.nodes)
    assert inside


@pytest.mark.slow
def test_a_region_that_is_called_twice_is_computed_by_one_kernel(ran: Runner):
    run = ran(REGION, backend="inductor")
    first, second = (
        kernels_of(run, "inference", f"{name}.mul") for name in ("repeated_subgraph0", "repeated_subgraph0_1")
    )
    assert first == second
    assert len(first) == 1
    assert kernels_of(run, "dynamo", "subgraph_1.mul") == first


@pytest.mark.parametrize("text", [COND, NESTED, LOOP, REGION, TRAIN], ids=["cond", "nested", "loop", "region", "train"])
def test_the_text_of_a_graph_with_branches_reads_as_the_graph_module(ran: Runner, text: str):
    run = ran(text)
    for graph in run.graphs.values():
        if graph.id.stage == "joint":
            continue
        printed = read_graph(graph.code, graph.id)
        assert [node.name for node in printed.nodes] == [node.name for node in graph.nodes]
        for ours, read in zip(graph.nodes, printed.nodes, strict=True):
            assert set(read.inputs) == set(ours.inputs), ours.name
            assert read.tensors == ours.tensors or ours.op == "output", ours.name


def test_the_backward_of_a_branch_goes_back_to_that_branch(ran: Runner):
    run = ran(TRAIN)
    backward, dynamo = run.graph("0/0", "backward"), run.graph("0/0", "dynamo")
    provenance = Provenance(run)
    branches = {"true_graph_1.": "cond_true_0.", "false_graph_1.": "cond_false_0."}
    found = 0
    for node in backward.nodes:
        for above in provenance.counterparts(backward.node_id(node.name), dynamo.id):
            below = next((prefix for prefix in branches if node.name.startswith(prefix)), "")
            assert above.name.startswith(branches.get(below, "")), node.name
            found += bool(below)
    assert found
