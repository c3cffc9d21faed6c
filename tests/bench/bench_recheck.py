"""How long does a re-check of 100,000 nodes take after an edit of the rules?

Run: PYTHONPATH=core python tests/bench/bench_recheck.py [NODES]. The bound is 50 ms for a re-check of a graph whose
nodes look alike as a model's do; the two graphs that no model has show how far that carries. The index is built once a
graph. Each figure is the median of its samples (the smallest and largest beside it), from this one run.
"""

import gc
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

import msgspec

from idbg import accelerator
from idbg.constraints import Checker, Constraint
from idbg.constraints.alignment import Alignment
from idbg.records import Graph, GraphId, Node, TensorMeta

OPS = ("add.Tensor", "mul.Tensor", "mm.default", "relu.default", "convolution.default", "sum.default", "view.default")
BOUND_MS = 50.0


def graph(count: int, *, looks: int) -> Graph:
    """A graph in which `count` nodes have `looks` distinct (op, shape) pairs, as repeated blocks of a model have."""
    nodes = [
        Node(
            name=f"node_{index}",
            op="call_function",
            target=f"aten.{OPS[index % looks % len(OPS)]}",
            args=f"node_{index - 1}, [0, 1], True",
            inputs=(f"node_{index - 1}",) if index else (),
            tensors=(TensorMeta("float32", (1, 3 + index % looks, 7, 9), (63 * (3 + index % looks), 63, 1, 7), "cpu"),),
            module=f"layer{index % 100}",
            file="model.py",
            line=index % 500,
        )
        for index in range(count)
    ]
    return Graph(GraphId("0/0", "forward"), tuple(nodes))


def samples_ms(work: Callable[[], object], repeat: int) -> list[float]:
    found = []
    for _ in range(repeat):
        gc.collect()
        start = perf_counter()
        work()
        found.append((perf_counter() - start) * 1000)
    return found


def report(what: str, samples: list[float]) -> None:
    print(f"{what:58} {median(samples):9.2f} ms   ({min(samples):.2f} to {max(samples):.2f}, {len(samples)} samples)")


def edits(rules: tuple[Constraint, ...]) -> Callable[[], tuple[Constraint, ...]]:
    """Each call gives the rules with another alignment, as a live edit does."""
    multiple = 16

    def edited() -> tuple[Constraint, ...]:
        nonlocal multiple
        multiple += 1
        return tuple(
            msgspec.structs.replace(rule, multiple=multiple) if isinstance(rule, Alignment) else rule for rule in rules
        )

    return edited


def measure(name: str, count: int, *, looks: int) -> None:
    big = msgspec.json.decode(msgspec.json.encode(graph(count, looks=looks)), type=Graph)
    text, _ = accelerator.find("mock")
    rules = accelerator.parse(accelerator.with_value(text, "dtype", "allowed", ["bfloat16"])).rules
    report(f"{name}: index, once a graph", samples_ms(lambda: Checker(big), 3))
    checker = Checker(big)
    first = Checker(big)
    report(f"{name}: first check of all rules", samples_ms(lambda: first.check(rules), 1))
    edited = edits(rules)
    before = checker.check(edited())

    def recheck() -> None:
        found = checker.check(edited())
        found.since(before)
        _ = len(found), found.by_severity, found.groups

    samples = samples_ms(recheck, 20)
    report(f"{name}: re-check after an edit ({len(before):,} violations)", samples)
    print(f"{'':58} {median(samples) / BOUND_MS:9.2f} of the bound of {BOUND_MS:g} ms")
    found = checker.check(edited())
    report(f"{name}: expand every violation", samples_ms(lambda: list(found.violations()), 3))


if __name__ == "__main__":
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print(f"{nodes:,} nodes; every node breaks three rules or more")
    measure("300 looks", nodes, looks=300)
    measure("10,000 looks", nodes, looks=10_000)
    measure("all different", nodes, looks=nodes)
