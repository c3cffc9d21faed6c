"""Private names of torch for comparisons (engine/kerneldiff)."""

import logging
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

import torch
from torch.fx import GraphModule, Node

if TYPE_CHECKING:
    from torch._inductor.graph import GraphLowering
    from torch._inductor.ir import Buffer as InductorBuffer

from idbg.engine.compat.fx import op_name, written
from idbg.engine.compat.hooks import hooked
from idbg.engine.compat.lowering import Compiled
from idbg.engine.compat.mutations import TRITON, changed_by
from idbg.engine.compat.names import find, internals
from idbg.engine.compat.torch_types import tree_map_only
from idbg.engine.compat.tracing import observed, part_of
from idbg.schema.graphs import Part

_Model = TypeVar("_Model")


def dense_kernel(op: object) -> Compiled | None:
    """The kernel of a higher-order op (cond, flex_attention) for plain tensors; None where torch has none."""
    if not isinstance(op, internals._ops.HigherOrderOperator):
        return None
    name = op_name(op)
    if name == "cond":  # torch's compiles both branches
        return _branch_taken
    if name == "scan":  # torch's refuses to run below a mode
        return _scanned
    kernel = op.py_kernels.get(internals._C.DispatchKey.CompositeExplicitAutograd)
    return partial(_with_vectorized_graphs, kernel) if kernel and name.startswith("flex_attention") else kernel


def _with_vectorized_graphs(kernel: Compiled, *args: object, **kwargs: object) -> object:
    """Call the kernel, which maps graphs over all scores, with graphs for which torch does not loop over elements."""
    args, kwargs = tree_map_only(GraphModule, _vectorized, (args, kwargs))
    return kernel(*args, **kwargs)


def _vectorized(gm: GraphModule) -> GraphModule:
    """The graph with casts by an op that has a batching rule: Inductor's has none."""
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    for node in graph.find_nodes(op="call_function", target=torch.ops.prims.convert_element_type.default):
        value, dtype = node.args
        node.target, node.args, node.kwargs = torch.ops.aten._to_copy.default, (value,), {"dtype": dtype}
    return GraphModule(gm, graph)


def _branch_taken(chosen: torch.Tensor, true: Compiled, false: Compiled, operands: Sequence[object]) -> object:
    return true(*operands) if chosen else false(*operands)


def _scanned(combine: Compiled, init: object, values: object, others: object = (), *_: object) -> object:
    scan = cast("Compiled", find("torch._higher_order_ops.scan.generic_scan"))
    return scan(combine, init, values, additional_inputs=others)


def without_checkpoints(gm: GraphModule) -> GraphModule:
    """A copy of a Dynamo graph without activation checkpoints, which in eager draw other random numbers when they
    compute again: torch leaves it to the compiler to draw the same.
    """
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    copy = GraphModule(gm, graph)
    for node in graph.nodes:
        if node.op == "get_attr" and isinstance(inner := getattr(copy, str(node.target), None), GraphModule):
            setattr(copy, str(node.target), without_checkpoints(inner))
        elif node.target is internals._higher_order_ops.wrap.tag_activation_checkpoint:
            node.target = _call_checkpointed
    copy.recompile()
    return copy


def _call_checkpointed(inner: Compiled, *args: object, **kwargs: object) -> object:
    _, own = internals._higher_order_ops.wrap.tag_activation_checkpoint.divide_kwargs(kwargs)  # type: ignore[no-untyped-call]
    return inner(*args, **own)


def decomposition(op: object) -> Compiled | None:
    """Torch's decomposition of an op into simpler ops; None where it has none."""
    return internals._decomp.decomposition_table.get(op) if isinstance(op, internals._ops.OpOverload) else None


@dataclass(frozen=True)
class Buffer:
    """One buffer of Inductor's: the node whose value it holds ("" for a part of a node's computation), the inputs or
    buffers that it mutates, and all nodes that it is computed from.
    """

    name: str
    node: str
    writes: tuple[str, ...]
    origins: tuple[str, ...]


class WrapperModule(Protocol):
    """A loaded module of Inductor's output code."""

    __file__: str
    call: Callable[..., object]


@dataclass(frozen=True)
class InductorGraph:
    """`gm` is the post-grad graph, `inputs` its arguments' names in the wrapper, `handles` the nodes of each launch."""

    gm: GraphModule
    part: Part
    inputs: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    handles: Mapping[str, list[str]]
    module: WrapperModule
    is_cpp_wrapper: bool


# Settings under which every graph is compiled anew, and each launch is a statement of its wrapper's `call`
_OBSERVABLE: dict[str, object] = {
    "fx_graph_cache": False,
    "fx_graph_remote_cache": False,
    "graph_partition": False,  # it splits `call` into functions, for CUDA graphs alone
    "triton.cudagraphs": False,
    "use_rand4x": False,  # draws other numbers, that depend on how a kernel is tiled
    "cpp_wrapper": False,  # its launches are statements of C++
}


@contextmanager
def observe_uncached_graphs(loaded: Callable[[InductorGraph], None], unread: Callable[[str], None]) -> Iterator[None]:
    """As `observe_graphs`, with the caches of whole graphs and CUDA graphs (which run no wrapper) off."""
    known = internals._inductor.config.get_config_copy()
    settings = {name: value for name, value in _OBSERVABLE.items() if name in known}
    with observed(), internals._inductor.config.patch(settings), observe_graphs(loaded, unread):
        yield


def has_cpp_wrapper() -> bool:
    """Whether Inductor is set to write wrappers in C++."""
    return bool(internals._inductor.config.get_config_copy().get("cpp_wrapper"))


def is_observable() -> bool:
    """Whether the graph that is being compiled can be observed: it has no CUDA graphs, and draws the same random
    numbers as under the settings for observation.
    """
    known = internals._inductor.config.get_config_copy()
    return not (known.get("triton.cudagraphs") or known.get("use_rand4x"))


def graphs_found() -> int:
    """The number of graphs found in a cache of Inductor's or AOTAutograd's in this process."""
    counters = internals._dynamo.utils.counters
    return int(counters["inductor"]["fxgraph_cache_hit"] + counters["aot_autograd"]["autograd_cache_hit"])


def observe_graphs(
    loaded: Callable[[InductorGraph], None], unread: Callable[[str], None]
) -> AbstractContextManager[None]:
    """While it lasts, `loaded` gets each graph that Inductor compiles, once its module is loaded and before a call.

    `unread` gets the reason where a graph cannot be read. A graph from a cache is not reported.
    """

    def compile_to_module(call: Callable[..., WrapperModule], graph: "GraphLowering") -> WrapperModule:
        module = call(graph)
        try:
            read = _inductor_graph(graph, module)
        # Broad on purpose: Inductor's data differ from version to version, and the program's compile must not fail.
        except Exception as error:
            unread(f"Inductor's data of a graph could not be read: {type(error).__name__}: {str(error)[:200]}")
        else:
            loaded(read)
        return module

    return hooked("kernel launches", {"GraphLowering.compile_to_module": compile_to_module})


def _inductor_graph(graph: "GraphLowering", module: WrapperModule) -> InductorGraph:
    removed = graph.removed_buffers | graph.inplaced_to_remove
    # a buffer inside of a template has no name
    buffers = [buffer for buffer in graph.buffers if buffer.name]
    operations = filter(None, (buffer.get_defining_op() for buffer in buffers))
    changed = {name: node for operation in operations for name, node in changed_by(operation)}
    return InductorGraph(
        graph.orig_gm,
        part_of(graph.is_backward, graph.is_inference),
        tuple(graph.graph_input_names),
        tuple(_buffer(buffer, removed, changed) for buffer in buffers),
        dict(internals._inductor.debug._inductor_triton_kernel_to_post_grad_node_info),
        module,
        bool(graph.cpp_wrapper),
    )


def _buffer(buffer: "InductorBuffer", removed: AbstractSet[str], changed: Mapping[str, Node]) -> Buffer:
    """`removed`: buffers inside of one kernel, whose memory may still have a name in the wrapper. `changed`: the nodes
    whose values mutated buffers hold before the mutation.
    """
    name, node = buffer.get_name(), buffer.get_origin_node()
    node = node or changed.get(name)
    held = node.name if node and name not in removed else ""
    operation = buffer.get_defining_op()
    origins = operation.get_origins() if operation is not None else ()
    return Buffer(name, held, tuple(buffer.get_mutation_names()), tuple(node.name for node in origins))


def uncompiled(model: _Model) -> _Model:
    """The model that torch.compile was called with; the model itself where it is not compiled."""
    if isinstance(model, internals._dynamo.OptimizedModule):
        return cast("_Model", model._orig_mod)
    if getattr(model, "_torchdynamo_disable", False):  # torch.compiler.disable wraps in the same way
        return model
    return getattr(model, "_torchdynamo_orig_callable", None) or model


def random_as_eager() -> AbstractContextManager[object]:
    """Inductor draws random numbers with torch's generators, as eager does."""
    return inductor_set({"fallback_random": True})


def is_random_as_eager() -> bool:
    """Whether Inductor draws random numbers with torch's generators here: the program has set it so."""
    return bool(internals._inductor.config.fallback_random)


def is_random(node: Node) -> bool:
    """Whether a node draws random numbers, or is a part of such a result. Attention without dropout draws none, except
    the generator's state, integers that it may leave unwritten.
    """
    target, args = _called(node)
    if target is operator.getitem:
        source, value = node.args[0], node.meta.get("val")
        state = isinstance(value, torch.Tensor) and not value.is_floating_point()
        return isinstance(source, Node) and (is_random(source) or (state and _may_draw(source.target)))
    if not isinstance(target, internals._ops.OpOverload):
        return False
    dropout = [at for at, argument in enumerate(target._schema.arguments) if argument.name == "dropout_p"]
    if dropout and not (args[dropout[0]] if dropout[0] < len(args) else node.kwargs.get("dropout_p", 0.0)):
        return False
    drawn = ("prims::inductor_random", "prims::inductor_randint", "prims::inductor_seeds")
    if dropout and op_name(target).endswith("_backward"):  # it uses the numbers of its forward
        return False
    return _may_draw(target) or op_name(target) in drawn


def dropout_of(node: Node) -> tuple[Node, float] | None:
    """For dropout's first result: the node that it drops from, and the share."""
    source = node.args[0] if node.target is operator.getitem and node.args[1] == 0 else None
    target, args = _called(source) if isinstance(source, Node) else (None, ())
    if op_name(target) != "native_dropout" or len(args) != 3:
        return None
    value, share, training = args
    return (value, float(cast("float", share))) if isinstance(value, Node) and training is not False else None


def _called(node: Node) -> tuple[object, tuple[object, ...]]:
    """The op of a node, and its arguments: torch 2.15 wraps an op that must run after others (`control_deps`)."""
    module = node.graph.owning_module
    if op_name(node.target) != "control_deps" or module is None or not isinstance(part := node.args[1], Node):
        return node.target, node.args
    inner = cast("GraphModule", attribute(module, str(part.target))).graph
    calls = [each for each in inner.nodes if each.op == "call_function"]
    if len(calls) != 1:
        return node.target, node.args
    bound = dict(zip(inner.find_nodes(op="placeholder"), node.args[2:], strict=False))
    return calls[0].target, tuple(bound.get(each, each) if isinstance(each, Node) else each for each in calls[0].args)


def _may_draw(target: object) -> bool:
    return isinstance(target, internals._ops.OpOverload) and torch.Tag.nondeterministic_seeded in target.tags


def changes_arguments(target: object) -> bool:
    """Whether an op of a post-grad graph writes to its arguments."""
    return bool(written(target)) or op_name(target) == TRITON


def attribute(gm: GraphModule, target: str) -> object:
    """The value of a get_attr node with this (dotted) target."""
    held: object = gm
    for name in target.split("."):
        held = getattr(held, name)
    return held


def graphs_compiled() -> int:
    """The number of graphs that Dynamo gave to a backend in this process."""
    return int(internals._dynamo.utils.counters["stats"]["unique_graphs"])


def takes_data_of(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether `tensor.data = other` is allowed: not between some devices (XLA, those of packages)."""
    return bool(internals._has_compatible_shallow_copy_type(tensor, other))


Dropout = Callable[[torch.Tensor, float, bool | None], torch.Tensor | None]


@contextmanager
def dropout_replaced(instead: Dropout) -> Iterator[None]:
    """While it lasts, `instead` computes dropout of a tensor on the CPU; where it returns None, torch does."""

    def dropout(value: torch.Tensor, p: float, train: bool | None) -> torch.Tensor:
        result = instead(value, p, train)
        return torch.ops.aten.dropout.default.decompose(value, p, train) if result is None else result

    with internals.library._scoped_library("aten", "IMPL") as library:
        for key in ("AutogradCPU", "CPU"):
            library.impl("dropout", dropout, key)
        yield


def attention_kind(*args: object, **kwargs: object) -> str:
    """Which fused op `scaled_dot_product_attention` runs on these arguments: "flash"; "" where it is plain math."""
    with no_modes(), tensors_as_they_are():
        choice = cast("Callable[..., int]", internals._fused_sdp_choice)(*args, **kwargs)
    return {1: "flash", 2: "efficient", 3: "cudnn"}.get(choice, "")


def attention_sums_halves() -> bool:
    """Whether attention in plain math computes float16 and bfloat16 as they are, and not in float32."""
    return cast("Callable[[], bool]", torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed)()


def no_modes() -> AbstractContextManager[object]:
    """While it lasts, no dispatch mode is active: ops are real, and in their own dtypes."""
    return cast("AbstractContextManager[object]", internals.utils._python_dispatch._disable_current_modes())


def tensors_as_they_are() -> AbstractContextManager[object]:
    """While it lasts, no torch function mode is active."""
    return cast("AbstractContextManager[object]", internals._C.DisableTorchFunction())


def inductor_set(options: Mapping[str, object]) -> AbstractContextManager[object]:
    """Set Inductor's options, in this thread."""
    return cast("AbstractContextManager[object]", internals._inductor.config.patch(dict(options)))


def wraps_others(value: torch.Tensor) -> bool:
    """Whether it is a traceable wrapper subclass (DTensor): its own address is 0."""
    return bool(internals.utils._python_dispatch.is_traceable_wrapper_subclass(value))


def is_zeros(value: torch.Tensor) -> bool:
    """Whether it is one of autograd's zero tensors without memory."""
    return bool(value._is_zerotensor())


@contextmanager
def forward_stacks_recorded() -> Iterator[None]:
    """While it lasts, autograd records the stack of each op of the forward."""
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        yield


def differentiated() -> tuple[str, list[str]] | None:
    """The autograd node that runs on this thread ("SqrtBackward0") and the stack of its forward as `traceback` formats
    it, outermost frame first ([] where it was not recorded); None outside of a backward pass.
    """
    node = internals._C._current_autograd_node()
    if node is None:
        return None
    metadata = cast("dict[str, list[str]]", node.metadata)
    return str(node.name()), metadata.get("traceback_", [])


@contextmanager
def without_memory() -> Iterator[None]:
    """While it lasts, new tensors are fake, also on a device, and torch does not log the errors of ops."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    before = log.disabled
    log.disabled = True
    try:
        with internals._subclasses.fake_tensor.FakeTensorMode(allow_non_fake_inputs=True):
            yield
    finally:
        log.disabled = before
