"""How many tries does it take to make a failing graph small, beside torch's own fx_minifier?

Run: python tests/benchmarks/bench_minify.py [--quick]. Both are given the same ATen graph, with values, and the same
oracle, which fails by what is alive in a graph; `--quick` leaves out the case that takes torch's minutes. No kernel is
compiled: what a try costs is what cutting the graph costs. Seconds are of one run each, recording of values included.
"""

import contextlib
import io
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import torch
from torch._functorch.fx_minifier import minifier
from torch.fx import Graph, GraphModule, Interpreter, Node

from idbg.reduce.nodes import Flow, Nodes, reduce_nodes

aten = torch.ops.aten
Fails = Callable[[GraphModule], bool]
UNARY = (aten.sin.default, aten.cos.default, aten.tanh.default, aten.relu.default, aten.sigmoid.default)
BINARY = (aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor)
CULPRIT, OTHER = aten.erf.default, aten.atan.default
NEAR = 6  # Operands are among the last so many values of a branch: long and narrow, as models are.


@dataclass(frozen=True)
class Case:
    name: str
    module: GraphModule
    fails: Fails
    bound: tuple[int, int]
    known: bool = False
    slow: bool = False


@dataclass(frozen=True)
class Result:
    calls: int
    seconds: float
    ops: int


class Tower:
    """Ops one after another, each of one or two of the last few values; every 25th is a matmul."""

    def __init__(self, graph: Graph, seed: int) -> None:
        self.graph, self.chance = graph, random.Random(seed)
        self.values = [graph.placeholder(f"x{seed}_{number}") for number in range(2)]

    def grow(self, count: int) -> None:
        for number in range(1, count + 1):
            near = self.values[-NEAR:]
            if number % 25 == 0:
                self.add(aten.mm.default, near[-1], self.chance.choice(near))
            elif self.chance.random() < 0.5:
                self.add(self.chance.choice(UNARY), near[-1])
            else:
                self.add(self.chance.choice(BINARY), near[-1], self.chance.choice(near))

    def add(self, target: object, *operands: Node) -> None:
        self.values.append(self.graph.call_function(target, operands))  # type: ignore[arg-type]


def one_tower() -> GraphModule:
    """1,934 ops; from the culprit two ops lead to the next matmul."""
    graph = Graph()
    tower = Tower(graph, 1)
    tower.grow(1_211)
    tower.add(CULPRIT, tower.values[-1])
    tower.add(aten.tanh.default, tower.values[-1])
    tower.add(aten.mul.Tensor, tower.values[-1], tower.values[-5])
    tower.add(aten.mm.default, tower.values[-1], tower.values[-6])
    tower.grow(1_934 - 1_215)
    graph.output((tower.values[-1],))
    return GraphModule(torch.nn.Module(), graph)


def two_towers() -> GraphModule:
    """491 ops: two branches, a culprit in each, which meet at the end."""
    graph = Graph()
    towers = [Tower(graph, seed) for seed in (1, 2)]
    for tower, target, before in zip(towers, (CULPRIT, OTHER), (90, 160), strict=True):
        tower.grow(before)
        tower.add(target, tower.values[-1])
        tower.grow(235 - before - 1)
    towers[0].add(aten.add.Tensor, towers[0].values[-1], towers[1].values[-1])
    towers[0].grow(20)
    graph.output((towers[0].values[-1],))
    return GraphModule(torch.nn.Module(), graph)


def alive(module: GraphModule) -> list[Node]:
    """What the output needs: a compiler drops the rest before it can fail."""
    found: dict[Node, None] = {}
    stack = [*module.graph.find_nodes(op="output")]
    while stack:
        node = stack.pop()
        if node not in found:
            found[node] = None
            stack += node.all_input_nodes
    return list(found)


def has(*targets: object) -> Fails:
    return lambda module: set(targets) <= {node.target for node in alive(module)}


def reaches_matmul(module: GraphModule) -> bool:
    """The culprit's result comes to a matmul through two ops or more."""
    steps: dict[Node, int] = {}
    needed = set(alive(module))
    for node in module.graph.nodes:
        before = [steps[source] + 1 for source in node.all_input_nodes if source in steps]
        if node not in needed:
            continue
        if node.target is aten.mm.default and before and max(before) > 2:
            return True
        if node.target is CULPRIT or before:
            steps[node] = max(before, default=0)
    return False


class Recorded(Interpreter):
    """Runs a graph, and keeps each value."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.values: dict[str, torch.Tensor] = {}

    def run_node(self, n: Node) -> object:
        value = super().run_node(n)
        if isinstance(value, torch.Tensor):
            self.values[n.name] = value
        return value


def cut(module: GraphModule, kept: Nodes) -> GraphModule:
    """These nodes alone: what they read and is not kept is an argument, what none of them reads is returned."""
    graph = Graph()
    made: dict[Node, Node] = {}
    nodes = [node for node in module.graph.nodes if node.name in kept]
    read = {source for node in nodes for source in node.all_input_nodes}
    for source in module.graph.nodes:
        if source in read and source.name not in kept:
            made[source] = graph.placeholder(source.name)
    for node in nodes:
        made[node] = graph.node_copy(node, made.__getitem__)
    graph.output(tuple(made[node] for node in nodes if node not in read))
    graph.lint()
    return GraphModule(module, graph)


def ours(case: Case, inputs: list[torch.Tensor]) -> Result:
    begun = perf_counter()
    recorded = Recorded(case.module)
    recorded.run(*inputs)
    nodes = [node for node in case.module.graph.nodes if node.op == "call_function"]
    flow = Flow(
        {node.name: tuple(one.name for one in node.all_input_nodes if one.op != "placeholder") for node in nodes}
    )
    tried: list[Nodes] = []

    def fails(kept: Nodes) -> bool:
        tried.append(kept)
        return case.fails(cut(case.module, kept))

    suspects = [node.name for node in nodes if node.target is CULPRIT]
    if case.known and fails(frozenset(suspects)):  # as engine/minify/search.py begins
        flow = Flow({name: tuple(read for read in flow.reads[name] if read in suspects) for name in suspects})
    found = reduce_nodes(flow, fails)
    result = Result(len(tried), perf_counter() - begun, len(found.kept))
    check_alone(cut(case.module, found.kept), case.fails, recorded.values)
    return result


def check_alone(small: GraphModule, fails: Fails, values: dict[str, torch.Tensor]) -> None:
    """What is left fails, and computes, of recorded values, what it computed in the whole."""
    assert fails(small)
    again = Recorded(small)
    again.run(*(values[str(node.target)] for node in small.graph.find_nodes(op="placeholder")))
    for node in small.graph.nodes:
        if node.op == "call_function":
            torch.testing.assert_close(again.values[node.name], values[node.name], rtol=0, atol=0)


def torchs(case: Case, inputs: list[torch.Tensor]) -> Result:
    calls = 0

    def fails(module: GraphModule, given: object) -> bool:
        nonlocal calls
        calls += 1
        return case.fails(module)

    begun = perf_counter()
    with contextlib.redirect_stderr(io.StringIO()):
        small, _ = minifier(case.module, inputs, fails, lambda module, given: None)
    ops = sum(node.op == "call_function" for node in small.graph.nodes)
    return Result(calls, perf_counter() - begun, ops)


def compare(case: Case, quick: bool) -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(8, 8) for _ in case.module.graph.find_nodes(op="placeholder")]
    whole = sum(node.op == "call_function" for node in case.module.graph.nodes)
    mine = ours(case, inputs)
    print(f"{case.name}, {whole:,} ops")
    within = "within" if mine.calls <= case.bound[0] and mine.ops <= case.bound[1] else "ABOVE"
    print(f"  idbg          {line(mine)}   {within} the bound: {case.bound[0]} calls to {case.bound[1]} ops")
    if quick and case.slow:
        print("  fx_minifier   left out (--quick)")
        return
    theirs = torchs(case, inputs)
    print(f"  fx_minifier   {line(theirs)}")
    ratios = (theirs.calls / mine.calls, theirs.seconds / mine.seconds, theirs.ops / mine.ops)
    print("  fx_minifier / idbg  {:.1f} x calls, {:.1f} x seconds, {:.1f} x ops".format(*ratios))


def line(result: Result) -> str:
    return f"{result.calls:6,} calls {result.seconds:9.3f} s {result.ops:5} ops"


def main() -> None:
    quick = "--quick" in sys.argv[1:]
    long, wide = one_tower(), two_towers()
    print(f"torch {torch.__version__}")
    for case in (
        Case("one culprit, known", long, has(CULPRIT), (1, 1), known=True),
        Case("one culprit, not known", long, has(CULPRIT), (12, 1)),
        Case("a culprit that must reach a matmul", long, reaches_matmul, (30, 4)),
        Case("two independent culprits", wide, has(CULPRIT, OTHER), (25, 2), slow=True),
    ):
        compare(case, quick)


if __name__ == "__main__":
    main()
