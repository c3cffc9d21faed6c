"""Find the ATen graph, and its first node, that a backend other than Inductor computes wrong."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast

from torch import Tensor
from torch.fx import GraphModule

from idbg.engine.capture.fx import user_line
from idbg.engine.compat import comparing, tracing
from idbg.engine.compat.lowering import Compiled, Compiler, called, observe_aot_parts
from idbg.engine.kerneldiff.kernels.bisect import BisectResult, first_bad_node
from idbg.engine.kerneldiff.kernels.inputs import copied
from idbg.engine.kerneldiff.kernels.values import ReferenceValue
from idbg.engine.kerneldiff.kernels.verdict import BufferVerdict, judge_buffer
from idbg.engine.kerneldiff.stages.evaluate import computed
from idbg.schema.diff import KernelError
from idbg.schema.graphs import Part
from idbg.schema.graphs import Stage as GraphStage


@dataclass
class BackendGraph:
    """One graph that the backend compiled, with the arguments and results of its first call."""

    frame: str
    part: Part
    gm: GraphModule
    compiler: Compiler
    arguments: list[object] | None = None
    results: list[object] | None = None
    called: int = 0  # 1 for the first that was called, and so on; 0 before

    def wrong(self) -> KernelError | None:
        """The first bad node, bisected, as a launch; None where its results are right, or cannot be judged."""
        if self.arguments is None or self.results is None:
            return None
        if any(comparing.is_random(node) for node in self.gm.graph.nodes):
            return None  # whose numbers are another compiler's
        worst = self._worst()
        if worst is None or worst.excess <= 1:
            return None
        return self._named(first_bad_node(self.gm, self.arguments, self._backend()), worst)

    def _worst(self) -> BufferVerdict | None:
        assert self.arguments is not None and self.results is not None
        exact, own = (computed(self.gm, self.arguments, exact=way).outputs for way in (True, False))
        verdicts = [
            judge_buffer(result, ReferenceValue(right, rounded), [], steps=True)
            for result, right, rounded in zip(self.results, exact, own, strict=False)
            if isinstance(result, Tensor) and isinstance(right, Tensor) and isinstance(rounded, Tensor)
            if result.shape == right.shape
        ]
        return max(verdicts, key=lambda verdict: verdict.excess, default=None)

    def _backend(self) -> Callable[..., Callable[..., object]]:
        def backend(gm: GraphModule, inputs: list[object]) -> Callable[..., object]:
            compiled = self.compiler(gm, inputs)
            return lambda *arguments: called(compiled, list(arguments))

        return backend

    def _named(self, result: BisectResult, worst: BufferVerdict) -> KernelError:
        """If the search names no node, a node that the graph returns."""
        nodes = {node.name: node for node in self.gm.graph.nodes}
        returned = next(iter(reversed(self.gm.graph.nodes))).all_input_nodes
        node = result.node or next((source.name for source in returned), "")
        file, line, _ = user_line(nodes[node].meta.get("stack_trace") or "" if node in nodes else "")
        result = replace(
            result,
            node=node,
            file=result.file or file,
            line=result.line or line,
            error=worst.error.rmse if result.error is None else result.error,
            input_error=result.input_error or 0.0,
            eager_error=worst.eager.rmse if result.eager_error is None else result.eager_error,
        )
        return result.launch(self.frame, cast("GraphStage", self.part), f"the {self.part} graph")


@contextmanager
def backend_graphs() -> Iterator[list[BackendGraph]]:
    """Record every graph that AOTAutograd passes to a backend in this context, with its first call."""
    parts: list[BackendGraph] = []

    def watched(
        part: Part, gm: GraphModule, compiler: Compiler, _: Compiled
    ) -> Callable[[list[object], Callable[[], object]], object]:
        mine = BackendGraph(tracing.frame_name(), part, gm, compiler)
        parts.append(mine)

        def around(arguments: list[object], call: Callable[[], object]) -> object:
            if mine.arguments is not None:
                return call()
            mine.arguments, mine.called = copied(arguments), 1 + sum(each.called > 0 for each in parts)
            results = call()
            listed = list(results) if isinstance(results, (list, tuple)) else [results]
            mine.results = copied(listed)
            return results

        return around

    with observe_aot_parts(watched):
        yield parts
