"""Our partitions against those that torch's CapabilityBasedPartitioner proposes, on real graphs and on random ones."""

import operator
import random
from collections.abc import Callable, Collection, Iterator

import pytest
import torch
from torch import nn
from torch.fx import GraphModule
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import create_op_support
from torch.nn import functional as F

from idbg.analysis.partition import partition
from idbg.engine.capture.fx import graph_of
from idbg.engine.compat import lowering
from idbg.schema.graphs import Graph, GraphId

Sets = set[frozenset[str]]


def torch_parts(module: GraphModule, fallback: Collection[str]) -> Sets:
    support = create_op_support(lambda _, node: node.op.startswith("call") and node.name not in fallback)
    found = CapabilityBasedPartitioner(module, support, allows_single_node_partition=True).propose_partitions()
    return {frozenset(node.name for node in part.nodes) for part in found}


def our_parts(graph: Graph, fallback: Collection[str]) -> Sets:
    return set(map(frozenset, partition(graph, fallback).parts))


def record(module: GraphModule) -> Graph:
    return graph_of(module, GraphId("0/0", "dynamo"))


def calls(module: GraphModule) -> list[str]:
    return [node.name for node in module.graph.nodes if node.op.startswith("call")]


class Block(nn.Module):
    """A block of a ResNet, with what joins two."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(4, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 1, 1)
        self.norms = nn.ModuleList([nn.BatchNorm2d(8) for _ in range(3)])
        self.shortcut = nn.Conv2d(4, 8, 1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norms[1](self.second(self.norms[0](self.first(x)).relu()))
        return (y + self.norms[2](self.shortcut(x))).relu().mean((2, 3))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project, self.out, self.norm = nn.Linear(16, 48), nn.Linear(16, 16), nn.LayerNorm(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.project(self.norm(x)).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (4, 4)).transpose(1, 2) for part in parts)
        joined = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return x + self.out(joined) + torch.cat(parts, dim=-1)[:, 0:1, :16]


def captured(model: nn.Module, inputs: torch.Tensor) -> dict[str, GraphModule]:
    """The model's live graphs: Dynamo's, and those of its forward and backward."""
    found: dict[str, GraphModule] = {}

    def keep(stage: str) -> Callable[[GraphModule, object], object]:
        def compiled(module: GraphModule, _: object) -> object:
            found[stage] = module
            return lowering.boxed(module.forward)

        return compiled

    lower = lowering.aot_autograd(keep("forward"), keep("backward"), keep("inference"))  # type: ignore[arg-type]

    def backend(module: GraphModule, example: list[torch.Tensor]) -> object:
        found["dynamo"] = module
        return lower(module, example)

    torch.compile(model, backend=backend)(inputs).square().sum().backward()
    return found


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (Block(), (2, 4, 8, 8)),
        (nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)), (4, 8)),
        (Attention(), (2, 5, 16)),
    ],
    ids=["resnet block", "mlp", "attention"],
)
def test_every_graph_of_a_model_has_torchs_partitions_whatever_falls_back(model: nn.Module, shape: tuple[int, ...]):
    modules = captured(model, torch.randn(shape))
    assert set(modules) == {"dynamo", "forward", "backward"}
    chance = random.Random(0)
    for module in modules.values():
        graph, names = record(module), calls(module)
        sets: list[set[str]] = [set(), set(names), *({name} for name in names)]
        sets += [set(chance.sample(names, chance.randint(1, len(names)))) for _ in range(40)]
        for fallback in sets:
            assert our_parts(graph, fallback) == torch_parts(module, fallback), fallback


def random_module(chance: random.Random) -> GraphModule:
    """A graph of up to 60 calls: deep or wide, with elements of tuples, with calls that read nothing or go unread."""
    graph = torch.fx.Graph()
    values = [graph.placeholder(f"x{index}") for index in range(chance.randint(1, 3))]
    values.append(graph.get_attr("weight"))
    reach = chance.choice([2, 5, 20, 1000])
    elements = chance.choice([0, 0, 0.1, 0.4])
    for _ in range(chance.randint(1, 60)):
        source, other = chance.choices(values[-reach:], k=2)
        kind = chance.random()
        if kind < elements:
            values.append(graph.call_function(operator.getitem, (source, 0)))
        elif kind < 0.6:
            values.append(graph.call_function(operator.add, (source, other)))
        elif kind < 0.8:
            values.append(graph.call_method("relu", (source,)))
        elif kind < 0.9:
            values.append(graph.call_module("inner", (source,)))
        else:
            values.append(graph.call_function(torch.ones, (2,)))
    graph.output(tuple(chance.sample(values, min(len(values), chance.randint(1, 4)))))
    root = nn.Module()
    root.weight, root.inner = nn.Parameter(torch.ones(2)), nn.Identity()
    return GraphModule(root, graph)


def random_cases(count: int) -> Iterator[tuple[GraphModule, set[str]]]:
    for seed in range(count):
        chance = random.Random(seed)
        module = random_module(chance)
        rate = chance.choice([0.05, 0.2, 0.5, 0.8])
        yield module, {name for name in calls(module) if chance.random() < rate}


def test_hundreds_of_random_graphs_have_torchs_partitions():
    cut, moved = 0, 0
    for module, fallback in random_cases(800):
        ours = our_parts(record(module), fallback)
        assert ours == torch_parts(module, fallback), (module.graph, fallback)
        cut += len(ours) > 1
        moved += set().union(*ours) != set(calls(module)) - fallback
    assert cut > 100, "the graphs must be cut by what falls back"
    assert moved > 100, "elements must move to their tuples"


def test_what_falls_back_inside_a_cond_takes_the_cond_with_it():
    found: list[GraphModule] = []

    def backend(module: GraphModule, _: object) -> object:
        found.append(module)
        return module.forward

    def choose(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos(), (x.exp(),)).tan()

    torch.compile(choose, backend=backend, fullgraph=True)(torch.ones(4))
    graph = record(found[0])
    inside = next(node.name for node in graph.nodes if "." in node.name and node.target == "sin")
    assert our_parts(graph, {inside}) == torch_parts(found[0], {"cond"}) != our_parts(graph, ())
    host = partition(graph, {inside}).host
    assert "cond" in host and inside not in host
