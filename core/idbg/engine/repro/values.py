"""Get the values of a repro's arguments, and store them."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import torch
from torch.fx import GraphModule
from torch.fx import Node as FxNode

from idbg.engine.capture.run import RunCapture
from idbg.engine.compat import fx, repros
from idbg.engine.repro.draft import Input, memory_span
from idbg.engine.repro.node_values import Recorder
from idbg.engine.repro.source import name_of
from idbg.schema.graphs import Graph, GraphId, Node, Stage, Sym, TensorMeta, hint_of

# what safetensors keeps as it is; anything else is kept as a view of one of these
_KEPT = {
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.bool),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint64, torch.uint32, torch.uint16, torch.uint8),
}
_REAL = {torch.complex128: torch.float64, torch.complex64: torch.float32, torch.complex32: torch.float16}


@dataclass(frozen=True)
class Values:
    """The values of a repro's inputs; `note` says where they are from."""

    of: Mapping[str, object]
    note: str


def values(capture: RunCapture, graph: Graph, wanted: Mapping[str, str], recorder: Recorder | None) -> Values:
    """The program's own values of these nodes, as the nodes that they are given with read them, where the graph can be
    run again; else random ones of the same shapes.
    """
    if recorder is None:
        why = f"the values of a {graph.id.stage} graph's inputs are not known"
    else:
        try:
            return Values(recorder.values(wanted), "the program's own, computed again from its inputs and weights")
        except (RuntimeError, TypeError, ValueError, KeyError, AttributeError, NotImplementedError) as error:
            why = f"the program's own could not be computed again ({error})"
    chosen = _random(capture, graph, [graph.by_name[name] for name in wanted])
    return Values(chosen, " ".join(f"random, seed 0: {why}".split()))


def recorder_of(capture: RunCapture, graph: Graph) -> Recorder | None:
    """A recorder of the graph's values; None if its inputs are not known."""
    held = capture.saved_graphs.get(graph.id)
    if held is None or not held.inputs:
        return None
    return Recorder(held, {node.name for node in graph.nodes if node.role == "weight"})


def _random(capture: RunCapture, graph: Graph, inputs: Iterable[Node]) -> dict[str, object]:
    generator = torch.Generator().manual_seed(0)
    sizes = sizes_of(capture, graph)
    chosen: dict[str, object] = {}
    for node in inputs:
        if node.tensor is not None:
            chosen[node.name] = _random_tensor(node.tensor, generator)
        elif (size := hint_of(sizes.get(node.name, Sym("")))) is not None:
            chosen[node.name] = size
        else:
            raise ValueError(f"{node.name} is no tensor and its value is not known: run the program again first")
    return chosen


def sizes_of(capture: RunCapture, graph: Graph) -> dict[str, Sym]:
    """The inputs of a graph that are sizes, as those of its tensors have them."""
    # a post-grad graph has the arguments of the graph that it was, and a joint graph those of its forward
    lowered = graph.id.part or ("forward" if graph.id.stage == "joint" else graph.id.stage)
    held = capture.saved_graphs.get(GraphId(graph.id.frame, cast("Stage", lowered)))
    known = {
        dim.expr: dim
        for node in graph.nodes
        for tensor in node.tensors
        for dim in (*tensor.shape, *tensor.stride)
        if isinstance(dim, Sym)
    }
    expressions = {node.name: node.name for node in graph.nodes if node.op == "placeholder"}
    if held is not None:
        expressions |= dict(_expressions(held.gm))
    return {name: known[expression] for name, expression in expressions.items() if expression in known}


def _expressions(gm: GraphModule, prefix: str = "") -> Iterator[tuple[str, str]]:
    """The expression of each node that is a size, in this graph and its subgraphs."""
    for node in gm.graph.nodes:
        if (inner := fx.inner_graph(gm, node)) is not None:
            yield from _expressions(inner, f"{prefix}{node.name}.")
        yield prefix + node.name, repros.symbol_of(node)


def _random_tensor(meta: TensorMeta, generator: torch.Generator) -> torch.Tensor:
    shape, stride = ([hint_of(dim) or 0 for dim in dims] for dims in (meta.shape, meta.stride))
    if len(stride) != len(shape):
        raise ValueError(f"the strides of a {meta} were not recorded")
    dtype: torch.dtype = getattr(torch, meta.dtype)
    flat = torch.randn(max(memory_span(shape, stride), 1), generator=generator)
    if dtype == torch.bool:
        flat = flat > 0
    elif dtype.is_floating_point or dtype.is_complex:
        flat = flat.to(dtype)
    else:
        flat = torch.zeros_like(flat, dtype=dtype)  # 0 is an index into anything
    return flat.as_strided(shape, stride)


def arguments(
    inputs: Sequence[Node], known: Values, trained: Container[str] = ()
) -> tuple[dict[str, torch.Tensor], list[Input]]:
    """What goes into the safetensors file (flat storage, so that strides, also overlapping ones, come back), and the
    arguments.
    """
    tensors: dict[str, torch.Tensor] = {}
    given: list[Input] = []
    for node in inputs:
        value = known.of[node.name]
        name = name_of(node.name)
        is_array = isinstance(value, np.ndarray)
        if is_array:
            value = torch.from_numpy(value)
        if isinstance(value, torch.Tensor):
            tensors[name], argument = stored(name, value)
            given.append(
                replace(
                    argument,
                    dynamic=_open(node),
                    requires_grad=node.name in trained,
                    is_weight=node.role in ("weight", "buffer") and node.name not in trained,
                    is_array=is_array,
                )
            )
        elif isinstance(value, (bool, int, float, complex, str)) or value is None:
            given.append(Input(name, literal=repr(value)))
        else:
            raise ValueError(f"{node.name} is a {type(value).__name__}, which a repro cannot store")
    return tensors, given


def stored(name: str, value: torch.Tensor) -> tuple[torch.Tensor, Input]:
    """The memory that a tensor lies in, as it goes into the file, and the argument that has it back, with its strides.

    Raises ValueError for a layout that no script can make.
    """
    flat, kept = _flat(name, value)
    shape, stride = tuple(value.shape), tuple(value.stride())
    return flat, Input(name, shape, stride, str(value.device), dtype="" if kept == value.dtype else str(value.dtype))


def _open(node: Node) -> tuple[int, ...]:
    """The dimensions whose sizes are symbols."""
    return tuple(at for at, dim in enumerate(node.tensor.shape if node.tensor else ()) if _is_open(dim))


def _is_open(dim: int | Sym) -> bool:
    """Whether a size is symbolic, and a script can have it so: torch makes sizes 0 and 1 constants."""
    return isinstance(dim, Sym) and (dim.hint is None or dim.hint > 1)


def _flat(name: str, value: torch.Tensor) -> tuple[torch.Tensor, torch.dtype]:
    """The tensor's storage, as far as it is its own, and the dtype that it is kept as."""
    if value.layout != torch.strided or value.is_quantized or value.is_nested:
        kind = "quantized" if value.is_quantized else str(value.layout).removeprefix("torch.").replace("_", " ")
        raise ValueError(f"{name} is a {kind} tensor, which a repro cannot store")
    value = value.detach().resolve_conj().resolve_neg()
    flat = value.as_strided((memory_span(value.shape, value.stride()),), (1,))  # no copy: there may be gigabytes of it
    kept = kept_as(flat.dtype)
    return flat.view(kept), kept


def kept_as(dtype: torch.dtype) -> torch.dtype:
    """The dtype to store a dtype as, by a view, if safetensors does not have it."""
    return dtype if dtype in _KEPT else _REAL.get(dtype, torch.uint8)


def requires_grad(node: FxNode) -> bool:
    """Whether what a node of a Dynamo graph gives requires grad."""
    value = node.meta.get("example_value")
    return isinstance(value, torch.Tensor) and value.requires_grad


def trained(capture: RunCapture, graph: GraphId) -> set[str]:
    """Arguments that gradients are wanted of: with them, a repro compiles the backward too."""
    held = capture.saved_graphs[graph]
    names = [node.name for node in held.gm.graph.nodes if node.op == "placeholder"]
    pairs = zip(names, held.inputs, strict=False) if held.grad_enabled else ()
    return {name for name, value in pairs if isinstance(value, torch.Tensor) and value.requires_grad}
