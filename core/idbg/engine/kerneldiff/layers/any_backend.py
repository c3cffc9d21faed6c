"""Find the first node that a backend computes wrong, for any backend: compile prefixes of its graphs.

A prefix returns its last node's value and all values that the rest of the graph needs, which are compared with float64
and with eager. The prefix before the first wrong one is known to be right.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import cast

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node

from idbg.engine.capture.fx import user_line
from idbg.engine.compat import comparing, tracing
from idbg.engine.compat import stages as torch_stages
from idbg.engine.compat.backend_calls import replace_backend_calls
from idbg.engine.compat.lowering import Compiled, Compiler, called, observe_aot_parts
from idbg.engine.compat.torch_types import tree_leaves
from idbg.engine.kerneldiff.float64.copies import float64_copies
from idbg.engine.kerneldiff.float64.mode import Float64
from idbg.engine.kerneldiff.kernels.inputs import copied
from idbg.engine.kerneldiff.kernels.values import ReferenceValue
from idbg.engine.kerneldiff.kernels.verdict import BufferVerdict, judge_buffer
from idbg.engine.kerneldiff.layers.checkpoints import Verdicts, first_wrong, narrowed, worst
from idbg.engine.kerneldiff.layers.findings import RIGHT, LayerFindings, NodePlace, layer_row, stage_row
from idbg.engine.kerneldiff.stages.chain import node_name
from idbg.engine.kerneldiff.tensors.allowance import KERNEL_K
from idbg.engine.kerneldiff.tensors.float64_device import usual_dtype
from idbg.engine.program.environment import state_restored
from idbg.schema.attribution import Maker
from idbg.schema.graphs import Part, Stage
from idbg.schema.remarks import Remark


@dataclass
class BackendPart:
    """A graph that a backend compiled, Dynamo's or a part of AOTAutograd's, with the arguments and results of its first
    call. `backend` compiles such graphs, as torch.compile calls it; `called`: 1 for the first that was called, and so
    on; 0 before.
    """

    gm: GraphModule
    backend: Compiler
    frame: str = ""
    stage: Stage = "dynamo"
    arguments: Sequence[object] = ()
    results: Sequence[object] = ()
    called: int = 0


@dataclass(frozen=True)
class FirstBadNode:
    """The first node with which a prefix is wrong, its verdict, and the error of what it is computed from."""

    name: str
    verdict: BufferVerdict
    input_error: float = 0.0


class BackendSearch:
    """The search in one graph, whose arguments stay unchanged, as do the random generators. `name` is the backend's;
    `tried`: the verdicts of what each prefix that was compiled returned, by its last node.
    """

    def __init__(self, part: BackendPart, k: float, name: str = "", dynamic: bool | None = None) -> None:
        self.part, self.k, self.name, self.dynamic = part, k, name, dynamic
        self.nodes: dict[str, Node] = {node.name: node for node in part.gm.graph.nodes}
        self.tried: dict[str, Verdicts] = {}

    def is_wrong(self) -> bool:
        """Whether a result of the first call is wrong, and also when the graph is compiled alone; of a part of
        AOTAutograd's one that is far off is enough. A graph that draws random numbers is not judged: they are another
        compiler's.
        """
        if not self.part.results or any(map(comparing.is_random, self.nodes.values())):
            return False
        is_far = self.part.stage != "dynamo" and self.k >= KERNEL_K
        return self._wrong_result is not None and (is_far or self.first_bad is not None)

    def located(self) -> LayerFindings:
        """The first wrong node, as a layer; if no prefix is wrong, that of the first wrong result."""
        bad = self.first_bad or self._wrong_result
        assert bad is not None
        stage = self.part.stage
        file, line, _ = user_line(self.nodes[bad.name].meta.get("stack_trace") or "")
        place = NodePlace(self.part.frame, (bad.name,), file, line, stage)
        how = Remark("bisected", str(len(self.tried)), "the graph" if stage == "dynamo" else f"the {stage} graph")
        layer = layer_row("kernel", bad.name, place, [place], bad.verdict, bad.input_error, bad=True, reason=how)
        made_by = Maker(kind="backend", name=self.name)
        kernels = stage_row("kernels", place, bad.verdict, bad=bad.name, made_by=made_by)
        return LayerFindings((layer,), (stage_row("dynamo", NodePlace(self.part.frame), RIGHT), kernels))

    @cached_property
    def first_bad(self) -> FirstBadNode | None:
        """Bisect the graph; None if it is right, compiled as a whole. Raises what the backend raises."""
        names = [node.name for node in self.nodes.values() if _may_be_tensor(node)]

        def run(chosen: Sequence[str]) -> Verdicts:
            (name,) = chosen
            self.tried[name] = self._of_prefix(self.nodes[name])
            verdict = worst(self.tried[name])
            return {name: verdict} if verdict is not None else {}

        known = run(names[-1:]) if names else {}
        if not first_wrong(known, self.part.gm):
            return None
        known = {**known, **narrowed(names[:-1], run, most=1)}
        name = first_wrong(known, self.part.gm)
        before = next((self.tried[each] for each in reversed(names[: names.index(name)]) if each in self.tried), {})
        sources = [before[each.name].error.rmse for each in self.nodes[name].all_input_nodes if each.name in before]
        own = self.tried[name].get(name, RIGHT)
        return FirstBadNode(name, own if own.excess > 1 else known[name], max(sources, default=0.0))

    @cached_property
    def _wrong_result(self) -> FirstBadNode | None:
        verdicts = self._verdicts(self.part.gm, self.part.results)
        name = first_wrong(verdicts, self.part.gm)
        return FirstBadNode(name, verdicts[name]) if name else None

    def _of_prefix(self, last: Node) -> Verdicts:
        torch.compiler.reset()
        prefix = _prefix(self.part.gm, last)
        compiled = torch.compile(prefix, backend=self.part.backend, dynamic=self.dynamic)
        return self._verdicts(prefix, _run(compiled, copied(self.part.arguments)))

    def _verdicts(self, gm: GraphModule, results: Sequence[object]) -> Verdicts:
        """The worst verdict of each value that a graph returns, by its node."""
        own = _run(gm, copied(self.part.arguments))
        arguments = copied(self.part.arguments)
        tensors = [*gm.parameters(), *gm.buffers(), *(value for value in arguments if isinstance(value, Tensor))]
        # Python functions of torch (conv2d) compare their arguments' dtypes before any op is called
        with float64_copies(tensors), Float64(usual_dtype(tensors), tensors):
            exact = _run(gm, arguments)
        found: dict[str, BufferVerdict] = {}
        names = map(node_name, torch_stages.output_values(gm))
        for name, *values in zip(names, results, exact, own, strict=False):
            for value, wide, rounded in zip(*map(tree_leaves, values), strict=False):
                sides = [each.shape for each in (value, wide, rounded) if isinstance(each, Tensor)]
                if len(sides) == 3 and sides[0] == sides[1]:
                    verdict = judge_buffer(value, ReferenceValue(wide, rounded), [], k=self.k, steps=True)
                    found[name] = max(found.get(name, verdict), verdict, key=lambda one: one.excess)
        return found


def _may_be_tensor(node: Node) -> bool:
    value = node.meta.get("example_value", node.meta.get("val"))
    return node.op.startswith("call") and (value is None or isinstance(value, Tensor))


def _prefix(gm: GraphModule, last: Node) -> GraphModule:
    """The graph up to this node, which returns the node and all values that later nodes read."""
    nodes = list(gm.graph.nodes)
    kept = nodes[: nodes.index(last) + 1]
    graph, copies = Graph(), dict[Node, Node]()
    for node in kept:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    rest = set(nodes[len(kept) :])
    returned = [node for node in kept if node.op.startswith("call") and (node is last or rest & set(node.users))]
    graph.output(tuple(copies[node] for node in returned))
    return GraphModule(gm, graph)


def _run(function: Callable[..., object], arguments: Sequence[object]) -> Sequence[object]:
    with state_restored(), torch.no_grad():
        results = function(*arguments)
    assert isinstance(results, (tuple, list))
    return results


@contextmanager
def observed_graphs(_: list[str]) -> Iterator[list[BackendPart]]:
    """Record every graph that a backend compiles in this context: Dynamo's in the order of their first calls, then what
    AOTAutograd makes of them.
    """
    parts: list[BackendPart] = []

    def recorded(part: BackendPart, arguments: Sequence[object], call: Callable[[], object]) -> object:
        if part.called:
            return call()
        part.arguments, part.called = copied(arguments), 1 + sum(each.called > 0 for each in parts)
        results = call()
        part.results = copied(results if isinstance(results, (list, tuple)) else [results])
        return results

    def of_dynamo(backend: Compiler, gm: GraphModule, inputs: list[object]) -> Compiled:
        part = BackendPart(torch_stages.copy_of(gm), backend, tracing.frame_name())
        parts.append(part)
        compiled = backend(gm, inputs)
        return lambda *arguments: recorded(part, arguments, partial(compiled, *arguments))

    def of_autograd(
        stage: Part, gm: GraphModule, compiler: Compiler, _: Compiled
    ) -> Callable[[list[object], Callable[[], object]], object]:
        def backend(gm: GraphModule, inputs: list[object]) -> Compiled:
            compiled = compiler(gm, inputs)
            return lambda *arguments: called(compiled, list(arguments))

        parts.append(BackendPart(gm, backend, tracing.frame_name(), cast("Stage", stage)))
        return partial(recorded, parts[-1])

    try:
        with observe_aot_parts(of_autograd), replace_backend_calls(of_dynamo):
            yield parts
    finally:
        parts.sort(key=lambda part: (part.stage != "dynamo", part.called))
