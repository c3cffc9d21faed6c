"""How is a graph compiled for Tinyflow? Each op calls one of its kernels; what it has none for runs on the host."""

import operator
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter

import idbg
from idbg import AcceleratorAdapter, CompilationResult, CompilationStatus, StageText
from idbg_tinyflow.capabilities import CAPABILITIES

TILE = 16


def mm(a: Tensor, b: Tensor) -> Tensor:
    """A matrix product as the hardware makes it: in tiles, summed up in float32."""
    tiles = zip(a.float().split(TILE, dim=1), b.float().split(TILE, dim=0), strict=True)
    total = a.new_zeros(a.shape[0], b.shape[1], dtype=torch.float32)
    for left, right in tiles:
        total += left @ right
    return total.to(a.dtype)


def addmm(bias: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return bias + mm(a, b)


aten = torch.ops.aten
KERNELS: Mapping[object, Callable[..., object]] = {
    aten.mm.default: mm,
    aten.addmm.default: addmm,
    aten.t.default: torch.t,
    aten.add.Tensor: torch.add,
    aten.relu.default: torch.relu,
}


class Tinyflow(AcceleratorAdapter):
    """Tinyflow, an example accelerator: linear layers, adds and ReLUs; other ops run on the host.

    idbg shows the line above in its list of backends.
    """

    name = "tinyflow"
    capabilities = CAPABILITIES

    def compile(self, graph_module: GraphModule, inputs: Sequence[object]) -> CompilationResult:
        ops = {node.target for node in graph_module.graph.nodes if node.op == "call_function"} - {operator.getitem}
        on_host = ", ".join(sorted(str(op) for op in ops - KERNELS.keys()))
        if ops.isdisjoint(KERNELS):
            raise NotImplementedError(f"it has no kernel for any of: {on_host or 'no op at all'}")
        return CompilationResult(
            status=CompilationStatus.PARTIAL if on_host else CompilationStatus.SUCCESS,
            compiled=Executable(graph_module).run,
            message=f"on the host: {on_host}" if on_host else "",
            stages=(schedule(graph_module),),
        )

    def fallback(self, graph_module: GraphModule, inputs: Sequence[object]) -> Callable[..., object]:
        """A graph with nothing for the accelerator runs on the host as a whole."""
        return graph_module.forward


def schedule(graph_module: GraphModule) -> StageText:
    """The graph as Tinyflow runs it, a line for each call: idbg shows it below the graph, with one cursor."""
    nodes = [node for node in graph_module.graph.nodes if node.op == "call_function"]
    lines = [f"{'tile' if node.target in KERNELS else 'host'}  {node.target}{node.args}" for node in nodes]
    return StageText("schedule", "\n".join(lines), links={line: node.name for line, node in enumerate(nodes, 1)})


class Executable(Interpreter):
    """A graph as Tinyflow runs it: `run` takes the graph's inputs in order, and gives its outputs."""

    def call_function(self, target: object, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        return super().call_function(KERNELS.get(target, target), args, kwargs)


def tinyflow(graph_module: GraphModule, inputs: list[Tensor], **options: object) -> Callable[..., object]:
    """What `torch.compile(model, backend="tinyflow")` calls: the rules are checked, then Tinyflow compiles."""
    return idbg.backend("tinyflow")(graph_module, inputs)
