"""How long does it take to partition a graph, beside torch's own partitioner?

Run: python tests/benchmarks/bench_partition.py [NODES]. The bound is 1 s for 100,000 nodes with 1 % on the
host. Torch is timed at sizes that double, for as long as it should end within its limit: its time grows much faster
than the graph. Each figure is the median of its samples (the smallest and largest beside it), from this one run.
"""

import gc
import operator
import random
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import create_op_support

from idbg.analysis.partition import best_merge, partition
from idbg.engine.capture.fx import graph_of
from idbg.schema.graphs import Graph, GraphId, Node, TensorMeta

BOUND_MS = 1000.0
TORCH_LIMIT_MS = 10_000.0
GROWTH = 6  # of torch's time from one size to the next, twice as large: 5 to 6 was measured
TENSOR = TensorMeta("float32", (8, 64), (64, 1), "cpu")


def graph(count: int) -> Graph:
    """`count` calls of two inputs each, from among the 20 before: long and narrow, as models are."""
    chance = random.Random(0)
    nodes = [Node(name="x", op="placeholder", target="x", tensors=(TENSOR,))]
    for index in range(count):
        inputs = tuple(dict.fromkeys(nodes[-chance.randint(1, min(20, len(nodes)))].name for _ in range(2)))
        nodes.append(
            Node(name=f"n{index}", op="call_function", target="operator.add", inputs=inputs, tensors=(TENSOR,))
        )
    nodes.append(Node(name="output", op="output", target="output", inputs=(nodes[-1].name,)))
    return Graph(GraphId("0/0", "dynamo"), tuple(nodes))


def module_of(record: Graph) -> torch.fx.GraphModule:
    """The same graph for torch."""
    made: dict[str, torch.fx.Node] = {}
    live = torch.fx.Graph()
    for node in record.nodes:
        if node.op == "placeholder":
            made[node.name] = live.placeholder(node.name)
        elif node.op == "output":
            live.output(made[node.inputs[0]])
        else:
            sources = [made[name] for name in node.inputs]
            made[node.name] = live.create_node("call_function", operator.add, (sources[0], sources[-1]), name=node.name)
    return torch.fx.GraphModule(torch.nn.Module(), live)


def on_host(record: Graph) -> list[str]:
    """1 % of the calls."""
    names = [node.name for node in record.nodes if node.op == "call_function"]
    return random.Random(1).sample(names, max(1, len(names) // 100))


def torch_partition(module: torch.fx.GraphModule, fallback: set[str]) -> set[frozenset[str]]:
    support = create_op_support(lambda _, node: node.op.startswith("call") and node.name not in fallback)
    proposed = CapabilityBasedPartitioner(module, support, allows_single_node_partition=True).propose_partitions()
    return {frozenset(node.name for node in part.nodes) for part in proposed}


def samples_ms(work: Callable[[], object], repeat: int) -> list[float]:
    found = []
    for _ in range(repeat):
        gc.collect()
        start = perf_counter()
        work()
        found.append((perf_counter() - start) * 1000)
    return found


def report(what: str, samples: list[float]) -> float:
    print(f"{what:62} {median(samples):9.2f} ms   ({min(samples):.2f} to {max(samples):.2f}, {len(samples)} samples)")
    return median(samples)


def measure(count: int) -> None:
    record = graph(count)
    fallback = on_host(record)
    found = partition(record, fallback)
    what = f"ours, {count:,} nodes, {len(fallback):,} on the host: {found.count:,} partitions"
    mine = report(what, samples_ms(lambda: partition(record, fallback), 7))
    print(f"{'':62} {mine / BOUND_MS:9.2f} of the bound of {BOUND_MS:g} ms")
    changes = {f"rule {index}": fallback[index::10] for index in range(10)}
    report("ours, which of 10 changes merges most", samples_ms(lambda: best_merge(record, changes, found), 3))


def compare(count: int) -> float:
    """Ours and torch's on one graph; torch's time."""
    module = module_of(graph(count))
    record = graph_of(module, GraphId("0/0", "dynamo"))
    fallback = set(on_host(record))
    proposed: list[set[frozenset[str]]] = []
    ours = report(f"ours, {count:,} nodes", samples_ms(lambda: partition(record, fallback), 7))
    what = f"torch {torch.__version__}, {count:,} nodes"
    theirs = report(what, samples_ms(lambda: proposed.append(torch_partition(module, fallback)), 1))
    if set(map(frozenset, partition(record, fallback).parts)) != proposed[0]:
        sys.exit(f"ours and torch's partitions differ at {count:,} nodes")
    print(f"{'':62} {theirs / ours:9.0f} times as fast as torch, with the same partitions")
    return theirs


if __name__ == "__main__":
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
    for size in (250, 500, 1000, 2000, 4000):
        if compare(size) * GROWTH > TORCH_LIMIT_MS:
            break
