"""The first wrong node of a graph is found by compiling parts of it, for backends that show no kernels."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from torch.fx import Graph, GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from idbg import KernelDiff
from idbg.engine.compat.lowering import boxed
from idbg.engine.kerneldiff.layers.any_backend import BackendPart, BackendSearch, FirstBadNode
from idbg.engine.kerneldiff.layers.findings import RIGHT
from idbg.engine.kerneldiff.tensors.allowance import KERNEL_K


def program(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    first = (x @ w).relu()
    second = first.sin() + x
    third = second.softmax(-1)
    fourth = third * 3 + first
    return fourth.mean(0), third @ w


def dynamo_graph(function: Callable[..., object], *inputs: torch.Tensor) -> GraphModule:
    found: list[GraphModule] = []

    def backend(gm: GraphModule, _: list[object]) -> Callable[..., object]:
        found.append(gm)
        return gm.forward

    torch.compile(function, backend=backend)(*inputs)
    torch._dynamo.reset()
    return found[0]


def wrong_at(target: object, factor: float = 1.001) -> Callable[..., Callable[..., object]]:
    """A backend that computes this op with an error."""

    def backend(gm: GraphModule, _: list[object]) -> Callable[..., object]:
        graph, copies = Graph(), dict[Any, Any]()
        for node in gm.graph.nodes:
            copies[node] = copy = graph.node_copy(node, copies.__getitem__)
            if node.target == target:
                copies[node] = graph.call_function(torch.mul, (copy, factor))
        return GraphModule(gm, graph).forward

    return backend


def searched(gm: GraphModule, inputs: Sequence[object], backend: Any) -> BackendSearch:
    return BackendSearch(BackendPart(gm, backend, arguments=inputs), KERNEL_K)


def bad_node(gm: GraphModule, inputs: Sequence[object], backend: Any) -> str:
    return (searched(gm, inputs, backend).first_bad or FirstBadNode("", RIGHT)).name


@pytest.fixture
def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(16, 16), torch.randn(16, 16)


def test_the_first_wrong_node_of_a_dynamo_graph_is_found(inputs: tuple[torch.Tensor, torch.Tensor]):
    gm = dynamo_graph(program, *inputs)
    search = searched(gm, inputs, wrong_at("softmax"))
    (found,) = search.located().layers
    (softmax,) = [node for node in gm.graph.nodes if node.target == "softmax"]
    assert found.node == softmax.name
    assert found.file == __file__ and found.line == program.__code__.co_firstlineno + 3
    assert found.error == pytest.approx(1e-3, rel=0.05)
    assert found.input_error is not None and found.input_error < 1e-6
    calls = [node for node in gm.graph.nodes if node.op.startswith("call")]
    assert len(search.tried) <= 2 + math.log2(len(calls))


@pytest.mark.parametrize("target", ["sin", "mean"])
def test_it_is_found_wherever_it_stands(inputs: tuple[torch.Tensor, torch.Tensor], target: str):
    gm = dynamo_graph(program, *inputs)
    assert bad_node(gm, inputs, wrong_at(target)) in [node.name for node in gm.graph.nodes if node.target == target]


def test_an_aten_graph_is_bisected_too(inputs: tuple[torch.Tensor, torch.Tensor]):
    gm = make_fx(program)(*inputs)
    name = next(node.name for node in gm.graph.nodes if node.target == torch.ops.aten._softmax.default)
    assert bad_node(gm, inputs, wrong_at(torch.ops.aten._softmax.default)) == name


def test_where_nothing_is_wrong_one_compile_says_so(inputs: tuple[torch.Tensor, torch.Tensor]):
    search = searched(dynamo_graph(program, *inputs), inputs, "eager")
    assert search.first_bad is None and len(search.tried) == 1


def test_a_graph_that_is_right_when_it_is_compiled_alone_is_accused_only_below_dynamo(
    inputs: tuple[torch.Tensor, torch.Tensor],
):
    gm = make_fx(program)(*inputs)
    first, second = gm(*inputs)
    returned = [node.name for node in gm.graph.find_nodes(op="output")[0].all_input_nodes]
    for stage, k, is_wrong in (("dynamo", KERNEL_K, False), ("inference", KERNEL_K, True), ("inference", 2.0, False)):
        part = BackendPart(gm, "eager", stage=stage, arguments=inputs, results=[first, second * 1.01])  # type: ignore[arg-type]
        assert BackendSearch(part, k).is_wrong() == is_wrong
    (found,) = BackendSearch(replace(part, stage="forward"), KERNEL_K).located().layers
    assert (found.node, found.error) == (returned[1], pytest.approx(1e-2, rel=0.05))


@pytest.mark.slow
def test_inductor_is_right(inputs: tuple[torch.Tensor, torch.Tensor]):
    assert bad_node(dynamo_graph(program, *inputs), inputs, "inductor") == ""


def test_values_that_are_no_tensors_are_passed_over_and_inputs_left_alone():
    def program(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        values, places = x.topk(2)
        return (values * x.shape[0]).cumsum(-1) + places

    x = torch.randn(4, 8)
    gm = dynamo_graph(program, x.clone())
    before, state = x.clone(), torch.get_rng_state()
    name = next(node.name for node in gm.graph.nodes if node.target == "cumsum")
    assert bad_node(gm, [x], wrong_at("cumsum")) == name
    assert torch.equal(x, before) and torch.equal(torch.get_rng_state(), state)


def test_a_wrong_backward_of_a_backend_that_is_given_aten_graphs_is_named() -> None:
    def backward(gm: GraphModule, _: object) -> Callable[..., object]:
        for node in gm.graph.nodes:
            if node.target is torch.ops.aten.cos.default:  # the derivative of sin
                node.target = torch.ops.aten.tanh.default
        gm.recompile()
        return boxed(gm.forward)

    compiled = aot_autograd(fw_compiler=lambda gm, _: boxed(gm.forward), bw_compiler=backward)

    def model(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        return y.sin().exp()  # guilty

    report = KernelDiff(model, torch.randn(8, 8), backward=True, test=compiled, per_kernel=True).compare()
    (launch,) = report.kernels
    assert report.verdict == "failed" and launch.graph is not None and launch.bisected
    assert (launch.graph.stage, launch.node) == ("backward", "cos")
    guilty = report.first_wrong_stage
    assert guilty is not None and guilty.made_by is not None
    assert (guilty.stage, guilty.node, guilty.made_by.kind) == ("kernels", "cos", "backend")
