"""How long does it take to check 100,000 nodes, to check them again after an edit, and to switch the accelerator?

Run: python tests/benchmarks/bench_recheck.py [NODES]. The bounds: 0.3 s for the first check of a graph,
index included, and 50 ms for an edit or a switch, in a graph whose nodes look alike as a model's do. The reference is
the same rules asked about every node. Two graphs that no model has show how far the bounds carry. Each figure is the
median of its samples (the smallest and largest beside it), from this one run.
"""

import gc
import sys
from collections.abc import Callable, Iterator
from itertools import cycle
from statistics import median
from time import perf_counter

import msgspec

from idbg.accelerators import edit, registry
from idbg.accelerators.parse import parse
from idbg.constraints import Checker, Constraint, Findings
from idbg.constraints.alignment import Alignment
from idbg.schema.graphs import Graph, GraphId, Node, TensorMeta

OPS = ("add.Tensor", "mul.Tensor", "mm.default", "relu.default", "convolution.default", "sum.default", "view.default")
CHECK_MS, CHANGE_MS = 300.0, 50.0


def graph(count: int, *, signatures: int) -> Graph:
    """A graph in which `count` nodes have `signatures` distinct (op, shape) pairs, as repeated blocks have."""
    nodes = [
        Node(
            name=f"node_{index}",
            op="call_function",
            target=f"aten.{OPS[index % signatures % len(OPS)]}",
            args=f"node_{index - 1}, [0, 1], True",
            inputs=(f"node_{index - 1}",) if index else (),
            tensors=(
                TensorMeta(
                    "float32", (1, 3 + index % signatures, 7, 9), (63 * (3 + index % signatures), 63, 1, 7), "cpu"
                ),
            ),
            storages=(index,),
            module=f"layer{index % 100}",
            file="model.py",
            line=index % 500,
        )
        for index in range(count)
    ]
    made = Graph(GraphId("0/0", "forward"), tuple(nodes))
    return msgspec.json.decode(msgspec.json.encode(made), type=Graph)


def samples_ms(work: Callable[[], object], repeat: int) -> list[float]:
    found = []
    for _ in range(repeat):
        gc.collect()
        start = perf_counter()
        work()
        found.append((perf_counter() - start) * 1000)
    return found


def report(what: str, samples: list[float], *, bound: float = 0.0) -> None:
    share = f"   {median(samples) / bound:.2f} of the bound" if bound else ""
    print(f"{what:54} {median(samples):9.2f} ms  ({min(samples):.2f} to {max(samples):.2f}, {len(samples)}){share}")


def edited(rules: tuple[Constraint, ...]) -> Iterator[tuple[Constraint, ...]]:
    """The rules with another alignment each time, as a live edit gives them."""
    for multiple in range(17, 10_000):
        yield tuple(
            msgspec.structs.replace(rule, multiple=multiple) if isinstance(rule, Alignment) else rule for rule in rules
        )


def shown(found: Findings) -> tuple[object, ...]:
    """What the screen reads of a check at once."""
    return len(found), found.by_severity, found.groups


def each_node(big: Graph, rules: tuple[Constraint, ...]) -> int:
    """The same rules asked about every node: what the index saves."""
    alone = (Checker(Graph(big.id, (node,))) for node in big.nodes)
    return sum(len(checker.check(rules)) for checker in alone)


def measure(name: str, count: int, *, signatures: int) -> None:
    big = graph(count, signatures=signatures)
    text, _ = registry.find("mock")
    rules = parse(edit.set_first(text, "dtype", "allowed", ["bfloat16"])).rules
    first = samples_ms(lambda: shown(Checker(big).check(rules)), 5)
    report(f"{name}: first check, with the index", first, bound=CHECK_MS)
    checker = Checker(big)
    before = checker.check(rules)
    edits = edited(rules)

    def edit_rules() -> None:
        found = checker.check(next(edits))
        found.since(before)
        shown(found)

    report(f"{name}: an edit ({len(before):,} violations)", samples_ms(edit_rules, 20), bound=CHANGE_MS)
    presets = cycle([parse(registry.find(preset)[0]).rules for preset in registry.names()])
    checker.facts.profile(weights=True)  # the screen has it by then: it shows the peak from the start
    checker.facts.profile(weights=False)
    repeat = 2 * len(registry.names())
    report(f"{name}: a switch among {len(registry.names())} presets",
           samples_ms(lambda: shown(checker.check(next(presets))), repeat), bound=CHANGE_MS)  # fmt: skip
    if signatures < 1000:
        start = perf_counter()
        assert each_node(big, rules) == len(checker.check(rules))
        seconds = perf_counter() - start
        ratio = seconds * 1000 / median(first)
        print(f"{name}: every node by itself {seconds * 1000:35.2f} ms  = {ratio:.1f} x first check")


if __name__ == "__main__":
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print(f"{nodes:,} nodes; every node breaks three rules or more")
    measure("300 signatures", nodes, signatures=300)
    measure("10,000 signatures", nodes, signatures=10_000)
    measure("all different", nodes, signatures=nodes)
