"""On real captured graphs, the memory profile is torch's own estimator's, node by node."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._inductor.fx_passes import memory_estimator
from torch.fx import GraphModule

from idbg.accelerators import registry
from idbg.analysis.liveness import memory_profile
from idbg.engine.capture.frame import FrameCapture
from idbg.engine.capture.fx import graph_of
from idbg.engine.compat import lowering
from idbg.schema import events
from idbg.schema.graphs import Graph, GraphId, Part
from idbg.schema.programs import Program, Target
from idbg.schema.runs import fold
from idbg.worker.jobs import Jobs
from idbg.worker.protocol import Compile

Captured = list[tuple[GraphModule, Graph]]


@pytest.fixture(autouse=True)
def _every_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's estimator skips CPU tensors: made to count them."""
    monkeypatch.setattr(memory_estimator, "device_filter", lambda device: True)
    torch.manual_seed(0)


def captured(function: Callable[..., object], *args: object, dynamic: bool | None = None) -> Captured:
    """Every graph of this compile with its module, the backward's too where there is one."""
    found: Captured = []

    def backend(gm: GraphModule, inputs: list[object]) -> lowering.Compiled:
        frame = FrameCapture("0/0", 1, lambda event: None)
        found.append((gm, frame.dynamo(gm)))

        def kept(part: Part) -> Any:
            def compiler(gm: GraphModule, inputs: list[object]) -> lowering.Compiled:
                found.append((gm, frame.part(gm, part)))
                return lowering.boxed(gm.forward)

            return compiler

        return lowering.aot_autograd(kept("forward"), kept("backward"), kept("inference"))(gm, inputs)

    result = torch.compile(function, backend=backend, dynamic=dynamic, fullgraph=True)(*args)
    if isinstance(result, torch.Tensor) and result.requires_grad:
        result.sum().backward()
    return found


def torchs(graph: torch.fx.Graph, weights: set[str]) -> tuple[int, list[int]]:
    """Torch's peak, and what it says is alive while each call runs, these weights to the end."""
    profile = memory_estimator.build_memory_profile(
        graph, lambda node: memory_estimator._is_releasable(node) and node.name not in weights
    )
    return max(profile), profile[1::2]


def weights_of(graph: Graph) -> set[str]:
    return {node.name for node in graph.nodes if node.role in ("weight", "buffer")}


def ours(graph: Graph) -> tuple[int, list[int]]:
    profile = memory_profile(graph)
    rows = zip(graph.nodes, profile.live_bytes, strict=True)
    return profile.peak_bytes, [live for node, live in rows if node.op.startswith("call") and "." not in node.name]


def without_storages(graph: Graph) -> Graph:
    return Graph(graph.id, tuple(msgspec.structs.replace(node, storages=()) for node in graph.nodes))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 4))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.norm2 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        return F.max_pool2d(F.relu(self.norm2(self.conv2(y)) + x), 2)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.reshape(batch, length, 4, width // 4).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1)
        )
        scores = F.dropout((q @ k.transpose(-1, -2)).softmax(-1), 0.1, self.training)
        return x + self.out((scores @ v).transpose(1, 2).reshape(batch, length, width))


def views(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    first, middle, last = x.split([1, 2, 1], 1)
    rows = x[:, 1:3].contiguous() + middle
    stacked = torch.cat([row.unsqueeze(0) for row in (y * 2).unbind(0)], 0)
    strided = (x.t().reshape(-1) * 2)[::2].view(2, -1)
    y = y * 3
    y[0].add_(1)
    y[:, 0] = 7
    values, _ = y.topk(2, 1)
    windows = first.expand(4, 6).unfold(1, 3, 2)
    largest, _ = y.max(0)
    total = rows.sum() + stacked.sum() + strided.sum() + values.sum() + windows.sum() + largest.sum()
    return total + torch.as_strided(y, (2, 2), (1, 1)).sum() + last.flatten().to(torch.float32).sum()


def branches(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda a: a.double().float(), lambda a: a.cos(), (x * 2,)) + 1


PROGRAMS: dict[str, Callable[[], tuple[Callable[..., object], tuple[object, ...]]]] = {
    "mlp": lambda: (mlp(), (torch.randn(8, 16),)),
    "mlp bfloat16": lambda: (mlp().bfloat16(), (torch.randn(8, 16).bfloat16(),)),
    "residual": lambda: (Residual(), (torch.randn(2, 8, 12, 12),)),
    "residual channels_last": lambda: (
        Residual().to(memory_format=torch.channels_last),
        (torch.randn(2, 8, 12, 12).contiguous(memory_format=torch.channels_last),),
    ),
    "attention": lambda: (Attention(), (torch.randn(2, 10, 32),)),
    "views": lambda: (views, (torch.randn(4, 4), torch.randn(4, 4))),
    "cond": lambda: (branches, (torch.randn(4, 4),)),
}


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("grad", [True, False], ids=["train", "inference"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_profile_is_torchs_own(name: str, grad: bool, dynamic: bool):
    function, args = PROGRAMS[name]()
    with torch.set_grad_enabled(grad):
        graphs = captured(function, *args, dynamic=dynamic)
    aten = [(gm, graph) for gm, graph in graphs if graph.id.stage != "dynamo"]
    trained = grad and isinstance(function, nn.Module)
    assert [graph.id.stage for _, graph in aten] == (["forward", "backward"] if trained else ["inference"])
    for gm, graph in aten:
        assert ours(graph) == torchs(gm.graph, weights_of(graph)), graph.id
        assert memory_profile(graph).unsized == 0


@pytest.mark.parametrize("name", PROGRAMS)
def test_ops_tell_views_as_well_as_torch_recorded_them(name: str):
    """All but a backward graph's: what was saved may share memory in ways that no op of that graph tells."""
    function, args = PROGRAMS[name]()
    for _, graph in captured(function, *args):
        if graph.id.stage in ("forward", "inference"):
            assert memory_profile(without_storages(graph)) == memory_profile(graph)


def test_without_weights_the_profile_is_lower_by_what_they_take():
    model = mlp()
    taken = sum(parameter.nbytes for parameter in model.parameters())
    (_, graph) = captured(model, torch.randn(8, 16))[1]
    counted, bare = memory_profile(graph), memory_profile(graph, weights=False)
    assert bare.live_bytes == [live - taken for live in counted.live_bytes]
    weights = {node.name for node in graph.nodes if node.role == "weight" and node.op == "placeholder"}
    assert len(weights) == 6 and not weights.intersection(held.node for held in bare.alive)


def test_46_forty_live_tensors_of_4_mb_take_160_mb():
    def forty(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x + number for number in range(40)]).sum(0)

    (_, graph) = captured(forty, torch.zeros(1024, 1024))[1]
    assert memory_profile(graph).peak_bytes >= 160 * 2**20


# Where the two differ by design


def test_of_an_input_that_is_a_slice_all_that_it_was_cut_from_counts():
    (gm, graph) = captured(lambda x: x * 2, torch.randn(8, 8)[:, 2:5])[1]
    assert ours(graph)[0] == torchs(gm.graph, weights_of(graph))[0] == (8 * 8 + 8 * 3) * 4


def test_a_result_that_nobody_uses_goes_at_once_and_torch_keeps_it():
    graph = torch.fx.Graph()
    x = graph.placeholder("primals_1")
    x.meta["val"] = fake = torch._subclasses.FakeTensorMode().from_tensor(torch.ones(256))
    for _ in range(3):
        graph.call_function(torch.ops.aten.relu.default, (x,)).meta["val"] = fake.relu()
    graph.output((x,))
    gm = GraphModule(nn.Module(), graph)
    record = graph_of(gm, GraphId("0/0", "forward"))
    assert (ours(record)[0], torchs(gm.graph, weights_of(record))[0]) == (2048, 4096)


def test_a_size_without_a_hint_is_told_and_not_counted():
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        (gm, graph) = captured(lambda x: x.nonzero() * 2, torch.ones(4))[1]
    profile = memory_profile(graph)
    assert (profile.peak_bytes, profile.unsized) == (16, 2)
    assert torchs(gm.graph, weights_of(graph))[0] > 16


# What a node's memory and its not being known are recorded as


def test_views_share_a_number_and_numbers_follow_first_appearance():
    (_, graph) = captured(lambda x: x.t().contiguous().view(-1).chunk(2)[1] + 1, torch.randn(4, 4))[0]
    assert [node.storages for node in graph.nodes] == [(0,), (0,), (1,), (1,), (1, 1), (1,), (2,), ()]


def test_a_sparse_tensor_has_memory_of_its_own():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.eye(2).to_sparse()
    y = graph.call_function(torch.ops.aten.relu.default, (x,))
    y.meta["val"] = torch.eye(2).to_sparse()
    graph.output((y,))
    record = graph_of(GraphModule(nn.Module(), graph), GraphId("0/0", "forward"), "text")
    assert [node.storages for node in record.nodes] == [(0,), (1,), ()]


def test_what_torch_kept_no_value_for_is_unknown_and_numbers_and_switches_are_not():
    def function(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
        return branches(y.float()) * x.size(0)

    (gm, graph) = captured(function, torch.randn(4, 4), dynamic=True)[0]
    assert {"torch._C._set_grad_enabled", "higher_order.cond"} <= {node.target for node in graph.nodes}
    assert [node for node in graph.nodes if node.unknown] == []
    product = next(
        node for node in gm.graph.nodes if node.meta.get("example_value") is not None and node.op != "placeholder"
    )
    del product.meta["example_value"]
    (unknown,) = (node for node in graph_of(gm, graph.id).nodes if node.unknown)
    assert (unknown.name, unknown.tensors) == (product.name, ())


def test_an_op_that_returns_nothing_has_no_tensor_to_know():
    torch.library.define("peak_memory::log", "(Tensor x) -> ()")
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.ones(2)
    graph.call_function(torch.ops.peak_memory.log, (x,))  # as Dynamo calls it
    graph.call_function(torch.ops.peak_memory.log.default, (x,))
    graph.call_function(torch.ops.prims._sink_tokens.default, ([x],))
    graph.call_function(torch.ops.aten.sin, (x,))
    graph.output((x,))
    record = graph_of(GraphModule(nn.Module(), graph), GraphId("0/0", "forward"), "text")
    assert [node.name for node in record.nodes if node.unknown] == ["sin"]


TRAIN = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Linear(144, 48)

    def forward(self, x):
        y = nn.functional.dropout(self.norm(self.conv(x)).relu(), 0.2).flatten(1)
        z = self.head(y).view(2, 3, 2, 8)
        return nn.functional.scaled_dot_product_attention(z, z, z).sum() + y.topk(3)[0].sum()

def program():
    return Net(), (torch.randn(2, 1, 8, 8),), lambda out: out
"""


@pytest.mark.slow
def test_printed_graphs_know_their_memory_from_the_captured_ones(tmp_path: Path):
    (tmp_path / "subject.py").write_text(TRAIN)
    program = Program(str(tmp_path / "subject.py"), cwd=str(tmp_path))
    target = Target(rules=registry.find("mock")[0])
    told: list[events.SessionEvent] = [events.RunStarted(run=1, program=program, target=target)]
    peaks: list[int] = []  # only those: after a fusion torch keeps values of which some share what is no longer there

    def estimate(graph: torch.fx.Graph) -> None:
        peaks.append(torchs(graph, weights=set())[0])

    with torch._inductor.config.patch(post_grad_custom_post_pass=estimate):
        told.append(Jobs(told.append).compile(Compile(1, program, target, str(tmp_path))))
    graphs = fold(told).runs[1].graphs
    for part, peak in zip(("forward", "backward"), peaks, strict=True):
        above, below = graphs[GraphId("0/0", part)], graphs[GraphId("0/0", "post_grad", part)]  # type: ignore[arg-type]
        assert ours(below)[0] == peak
        assert [node for node in below.nodes if node.unknown] == []
        same = {node.name for node in below.nodes if node.storages}
        assert len(same) > len(below.nodes) / 2
        assert all(_partners(name, below) == _partners(name, above) & same for name in same)
    joint = graphs[GraphId("0/0", "joint")]
    assert [node for node in joint.nodes if node.unknown] == []
    saved = {node.name for node in graphs[GraphId("0/0", "backward")].nodes if node.role == "saved"}
    assert any(joint.by_name[name].storages for name in saved)


def _partners(name: str, graph: Graph) -> set[str]:
    """Names of the nodes that share memory with this one, by what was recorded."""
    numbers = set(graph.by_name[name].storages)
    return {node.name for node in graph.nodes if numbers & set(node.storages)}
