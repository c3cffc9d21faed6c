"""How long does the peak memory of 100,000 nodes take, and how long does torch's own estimator on the same graph?

Run: python tests/benchmarks/bench_peak_memory.py [NODES]. The bounds are 0.4 s and 10x faster than torch's.
The graph is an FX graph of real fake tensors, views among them; both give the same peak, or it stops. Reading the FX
graph into records is timed beside it, for a run does that once anyway. Each figure is the median of its samples (the
smallest and largest beside it), from this one run.
"""

import gc
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

import msgspec
import torch
from torch._inductor.fx_passes import memory_estimator
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph as FxGraph
from torch.fx import GraphModule

from idbg.analysis.liveness import memory_profile
from idbg.engine.capture.fx import graph_of
from idbg.schema.graphs import Graph, GraphId

BOUND_S = 0.4
BOUND_RATIO = 10.0
aten = torch.ops.aten


def fx_graph(count: int) -> GraphModule:
    """Blocks of a residual network: a transposed view, a product, its sum with the block before, and a relu."""
    graph = FxGraph()
    with FakeTensorMode():
        weight = graph.placeholder("primals_1")
        weight.meta["val"] = torch.empty(64, 64)
        last = graph.placeholder("primals_2")
        last.meta["val"] = torch.empty(32, 64)
        for _ in range((count - 3) // 4):
            turned = _call(graph, aten.t.default, weight)
            product = _call(graph, aten.mm.default, last, turned)
            last = _call(graph, aten.relu.default, _call(graph, aten.add.Tensor, product, last))
    graph.output((last,))
    return GraphModule(torch.nn.Module(), graph)


def _call(graph: FxGraph, op: Callable[..., torch.Tensor], *sources: torch.fx.Node) -> torch.fx.Node:
    node = graph.call_function(op, sources)
    node.meta["val"] = op(*(source.meta["val"] for source in sources))
    return node


def samples_s(work: Callable[[], object], repeat: int) -> list[float]:
    found = []
    for _ in range(repeat):
        gc.collect()
        start = perf_counter()
        work()
        found.append(perf_counter() - start)
    return found


def report(what: str, samples: list[float]) -> None:
    print(f"{what:58} {median(samples):9.3f} s   ({min(samples):.3f} to {max(samples):.3f}, {len(samples)} samples)")


def measure(count: int) -> None:
    gm = fx_graph(count)
    begun = perf_counter()
    read = graph_of(gm, GraphId("0/0", "forward"), text="class GraphModule:")
    report(f"read {len(read.nodes):,} FX nodes into records", [perf_counter() - begun])
    graph = msgspec.json.decode(msgspec.json.encode(read), type=Graph)
    bare = Graph(graph.id, tuple(msgspec.structs.replace(node, storages=()) for node in graph.nodes))
    memory_estimator.device_filter = lambda device: True  # count CPU tensors

    def torch_profile() -> list[int]:
        return memory_estimator.build_memory_profile(gm.graph, lambda node: not node.name.startswith("primals"))

    peak, torchs = memory_profile(graph).peak_bytes, max(torch_profile())
    if not peak == torchs == memory_profile(bare).peak_bytes:
        raise SystemExit(f"the peaks differ: {peak} and torch's {torchs}")
    ours = samples_s(lambda: memory_profile(graph), 7)
    theirs = samples_s(torch_profile, 3)
    report("peak memory, ours", ours)
    report("peak memory, ours, aliases judged by op", samples_s(lambda: memory_profile(bare), 3))
    report("peak memory, torch's estimator", theirs)
    print(f"{'':58} {median(ours) / BOUND_S:9.2f} of the bound of {BOUND_S:g} s")
    print(f"{'':58} {median(theirs) / median(ours):9.1f} times as fast as torch's (bound {BOUND_RATIO:g})")


if __name__ == "__main__":
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
