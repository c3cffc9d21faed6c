"""Bisect a graph for the first node that a backend computes wrong, for backends whose kernels cannot be observed.

Prefixes of the graph are compiled. Each returns all values that the rest of the graph needs, which are compared with
float64 and with eager. The prefix before the first wrong one is known to be right.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node

from idbg.engine.capture.fx import user_line
from idbg.engine.compat.torch_types import tree_leaves
from idbg.engine.kerneldiff.float64.copies import float64_copies
from idbg.engine.kerneldiff.float64.mode import Float64
from idbg.engine.kerneldiff.kernels.inputs import copied
from idbg.engine.kerneldiff.kernels.values import ReferenceValue
from idbg.engine.kerneldiff.kernels.verdict import BufferVerdict, judge_buffer
from idbg.engine.kerneldiff.tensors.allowance import KERNEL_K
from idbg.engine.kerneldiff.tensors.float64_device import usual_dtype
from idbg.engine.program.environment import state_restored
from idbg.schema.diff import KernelError
from idbg.schema.graphs import GraphId, Stage
from idbg.schema.remarks import Remark

Backend = str | Callable[..., Callable[..., object]]


@dataclass(frozen=True)
class BisectResult:
    """`node` is the first node with which the compiled result is wrong, "" if there is none. `error`, `input_error` and
    `eager_error` are relative RMSEs of its value and of its inputs. `compiles`: how many prefixes were compiled.
    """

    node: str = ""
    file: str = ""
    line: int = 0
    error: float | None = None
    input_error: float | None = None
    eager_error: float | None = None
    compiles: int = 0

    def launch(self, frame: str, stage: Stage, of: str = "the graph") -> KernelError:
        """The node as the record of a launch."""
        return KernelError(
            frame=frame,
            part="",
            name=self.node,
            graph=GraphId(frame, stage),
            nodes=(self.node,),
            file=self.file,
            line=self.line,
            observed=True,
            reason=Remark("bisected", str(self.compiles), of),
            error=self.error,
            input_error=self.input_error,
            eager_error=self.eager_error,
            bad=True,
            node=self.node,
        )


def first_bad_node(
    gm: GraphModule, inputs: Sequence[object], compile: Backend, *, k: float = KERNEL_K, dynamic: bool | None = None
) -> BisectResult:
    """Bisect a Dynamo or ATen graph. `compile` is a backend as torch.compile takes it.

    The inputs and the random generators stay unchanged. Raises what the backend raises.
    """
    cuts = [place for place, node in enumerate(gm.graph.nodes) if _may_be_tensor(node)]
    tried: dict[int, dict[str, BufferVerdict]] = {}

    def is_bad(cut: int) -> bool:
        tried[cut] = _compared(_prefix(gm, cuts[cut]), inputs, compile, k, dynamic)
        return any(verdict.excess > 1 for verdict in tried[cut].values())

    good, bad = -1, len(cuts) - 1
    if bad < 0 or not is_bad(bad):
        return BisectResult(compiles=len(tried))
    while bad - good > 1:
        middle = (good + bad) // 2
        if is_bad(middle):
            bad = middle
        else:
            good = middle
    node = list(gm.graph.nodes)[cuts[bad]]
    file, line, _ = user_line(node.meta.get("stack_trace") or "")
    worst = max(tried[bad].values(), key=lambda verdict: verdict.excess)
    mine = tried[bad].get(node.name, worst)
    before = [tried[good][source.name] for source in node.all_input_nodes if source.name in tried.get(good, {})]
    return BisectResult(
        node.name,
        file,
        line,
        error=mine.error.rmse if mine.excess > 1 else worst.error.rmse,
        input_error=max((verdict.error.rmse for verdict in before), default=0.0),
        eager_error=mine.eager.rmse if mine.excess > 1 else worst.eager.rmse,
        compiles=len(tried),
    )


def _may_be_tensor(node: Node) -> bool:
    value = node.meta.get("example_value", node.meta.get("val"))
    return node.op.startswith("call") and (value is None or isinstance(value, Tensor))


def _prefix(gm: GraphModule, last: int) -> GraphModule:
    """The graph up to this node, which returns the node and all values that later nodes read."""
    nodes = list(gm.graph.nodes)
    graph, kept = Graph(), nodes[: last + 1]
    copies: dict[Node, Node] = {}
    for node in kept:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    rest = set(nodes[last + 1 :])
    returned = [node for node in kept if node.op.startswith("call") and (node is kept[-1] or rest & set(node.users))]
    graph.output(tuple(copies[node] for node in returned))
    prefix = GraphModule(gm, graph)
    prefix.meta["idbg_returned"] = [node.name for node in returned]
    return prefix


def _compared(
    prefix: GraphModule, inputs: Sequence[object], compile: Backend, k: float, dynamic: bool | None
) -> dict[str, BufferVerdict]:
    """The worst verdict of each value that the prefix returns."""
    torch.compiler.reset()
    first, second, third = (copied(inputs) for _ in range(3))
    tensors = [*prefix.parameters(), *prefix.buffers(), *(value for value in third if isinstance(value, Tensor))]
    with torch.no_grad():
        own = _run(prefix, first)
        test = _run(torch.compile(prefix, backend=compile, dynamic=dynamic), second)
        # Python functions of torch (conv2d) compare their arguments' dtypes before any op is called
        with float64_copies(tensors), Float64(usual_dtype(tensors), tensors):
            exact = _run(prefix, third)
    worst: dict[str, BufferVerdict] = {}
    for name, *values in zip(prefix.meta["idbg_returned"], exact, own, test, strict=True):
        for leaves in zip(*map(tree_leaves, values), strict=True):
            if all(isinstance(leaf, Tensor) for leaf in leaves):
                result = judge_buffer(leaves[2], ReferenceValue(leaves[0], leaves[1]), [], k=k, steps=True)
                worst[name] = max(worst.get(name, result), result, key=lambda one: one.excess)
    return worst


def _run(function: Callable[..., object], inputs: Sequence[object]) -> Sequence[object]:
    with state_restored():
        results = function(*inputs)
    assert isinstance(results, (tuple, list))
    return results
