"""Where are torch's private names that a comparison stands on? Those of engine/kerneldiff.

Run on torch 2.11 (CPU; CUDA with triton 3.6) and 2.15 (CPU).
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

import torch
import torch._dynamo
import torch._inductor.config
from torch.fx import GraphModule, Node
from torch.utils._python_dispatch import _disable_current_modes, is_traceable_wrapper_subclass

if TYPE_CHECKING:
    from torch._inductor.graph import GraphLowering

from idbg.engine.compat.fx import op_name, written
from idbg.engine.compat.lowering import Compiled
from idbg.engine.compat.mutations import TRITON, InductorOperation, changed_by
from idbg.engine.compat.tracing import observed
from idbg.schema.graphs import Part

_Model = TypeVar("_Model")


def dense_kernel(op: object) -> Compiled | None:
    """What runs a higher-order op (cond, flex_attention) on plain tensors; None where torch has nothing."""
    if not isinstance(op, torch._ops.HigherOrderOperator):
        return None
    if op_name(op) == "cond":  # its own compiles both branches
        return _branch_taken
    return op.py_kernels.get(torch._C.DispatchKey.CompositeExplicitAutograd)


def _branch_taken(chosen: torch.Tensor, then: Compiled, otherwise: Compiled, operands: Sequence[object]) -> object:
    return then(*operands) if chosen else otherwise(*operands)


def decomposition(op: object) -> Compiled | None:
    """What torch computes an op by, in ops that are simpler; None where it has nothing."""
    from torch._decomp import decomposition_table

    return decomposition_table.get(op) if isinstance(op, torch._ops.OpOverload) else None


# Inductor's own data of a graph that it has just compiled (KernelDiff, per kernel)


@dataclass(frozen=True)
class Buffer:
    """One buffer of Inductor's: the node whose value it holds ("" where it is a step inside of one), the inputs or
    buffers that it stands for writing to, and all nodes that went into it.
    """

    name: str
    node: str
    writes: tuple[str, ...]
    origins: tuple[str, ...]


class WrapperModule(Protocol):
    """A module of Inductor's output code, as it is in this process."""

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
}


@contextmanager
def inductor_graphs(told: Callable[[InductorGraph], None], unread: Callable[[str], None]) -> Iterator[None]:
    """Tell of each graph that Inductor compiles, once its module is loaded and before it is called; of one that could
    not be read, why.

    The caches of whole graphs are off, and so are CUDA graphs, under which no wrapper runs; kernels stay cached.
    """
    known = torch._inductor.config.get_config_copy()
    settings = {name: value for name, value in _OBSERVABLE.items() if name in known}
    with observed(), torch._inductor.config.patch(settings), modules_loaded(told, unread):
        yield


def is_observable() -> bool:
    """Whether the graph that is being compiled may be observed as it is: it has no CUDA graphs, and draws its random
    numbers as one that is compiled for that.
    """
    known = torch._inductor.config.get_config_copy()
    return not (known.get("triton.cudagraphs") or known.get("use_rand4x"))


def graphs_found() -> int:
    """How many graphs a cache of Inductor's or AOTAutograd's has given in this process."""
    counters = torch._dynamo.utils.counters
    return int(counters["inductor"]["fxgraph_cache_hit"] + counters["aot_autograd"]["autograd_cache_hit"])


@contextmanager
def modules_loaded(told: Callable[[InductorGraph], None], unread: Callable[[str], None]) -> Iterator[None]:
    """As `inductor_graphs`, with the settings left as they are: a graph that a cache gives is not told of."""
    from torch._inductor import graph as inductor

    original = cast("Callable[[GraphLowering], WrapperModule]", inductor.GraphLowering.compile_to_module)

    def compile_to_module(graph: "GraphLowering") -> WrapperModule:
        module = original(graph)
        try:
            read = _inductor_graph(graph, module)
        # Broad on purpose: Inductor's data differ from version to version, and the program's compile must not fail.
        except Exception as error:
            unread(f"Inductor's data of a graph could not be read: {type(error).__name__}: {str(error)[:200]}")
        else:
            told(read)
        return module

    inductor.GraphLowering.compile_to_module = compile_to_module  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        inductor.GraphLowering.compile_to_module = original  # type: ignore[assignment, method-assign]


def _inductor_graph(graph: "GraphLowering", module: WrapperModule) -> InductorGraph:
    from torch._inductor import debug

    part: Part = "backward" if graph.is_backward else "inference" if graph.is_inference else "forward"
    removed = graph.removed_buffers | graph.inplaced_to_remove
    # what lives inside of a template has no name
    buffers = [buffer for buffer in cast("Iterable[_InductorBuffer]", graph.buffers) if buffer.name]
    operations = filter(None, (buffer.get_defining_op() for buffer in buffers))
    changed = {name: node for operation in operations for name, node in changed_by(operation)}
    return InductorGraph(
        graph.orig_gm,
        part,
        tuple(graph.graph_input_names),
        tuple(_buffer(buffer, removed, changed) for buffer in buffers),
        dict(debug._inductor_triton_kernel_to_post_grad_node_info),
        module,
        bool(graph.cpp_wrapper),
    )


class _InductorBuffer(Protocol):
    """What we ask of a buffer of Inductor's. A `MutationOutput` stands for the change of another one."""

    name: str | None

    def get_name(self) -> str: ...
    def get_origin_node(self) -> Node | None: ...
    def get_mutation_names(self) -> Sequence[str]: ...
    def get_defining_op(self) -> InductorOperation | None: ...


def _buffer(buffer: _InductorBuffer, removed: AbstractSet[str], changed: Mapping[str, Node]) -> Buffer:
    """`removed`: buffers that live and die in one kernel. Their memory may have a name in the wrapper all the same.
    `changed`: what buffers that an op writes to hold before that.
    """
    name, node = buffer.get_name(), buffer.get_origin_node()
    node = node or changed.get(name)
    held = node.name if node and name not in removed else ""
    operation = buffer.get_defining_op()
    origins = operation.get_origins() if operation is not None else ()
    return Buffer(name, held, tuple(buffer.get_mutation_names()), tuple(node.name for node in origins))


def uncompiled(model: _Model) -> _Model:
    """What torch.compile was given to make it; the model itself where it made none."""
    if isinstance(model, torch._dynamo.OptimizedModule):
        return cast("_Model", model._orig_mod)
    if getattr(model, "_torchdynamo_disable", False):  # torch.compiler.disable wraps in the same way
        return model
    return getattr(model, "_torchdynamo_orig_callable", None) or model


@contextmanager
def random_as_eager() -> Iterator[None]:
    """Inductor draws random numbers with torch's own generators, as a model does that is not compiled."""
    with torch._inductor.config.patch(fallback_random=True):
        yield


def is_random(node: Node) -> bool:
    """Whether a node draws random numbers, or is a part of what one drew. Attention without dropout draws none, but for
    the generator's state, integers that it may leave unwritten.
    """
    target, args = _called(node)
    if target is operator.getitem:
        source, value = node.args[0], node.meta.get("val")
        state = isinstance(value, torch.Tensor) and not value.is_floating_point()
        return isinstance(source, Node) and (is_random(source) or (state and _may_draw(source.target)))
    if not isinstance(target, torch._ops.OpOverload):
        return False
    dropout = [at for at, argument in enumerate(target._schema.arguments) if argument.name == "dropout_p"]
    if dropout and not (args[dropout[0]] if dropout[0] < len(args) else node.kwargs.get("dropout_p", 0.0)):
        return False
    drawn = ("prims::inductor_random", "prims::inductor_randint", "prims::inductor_seeds")
    if dropout and op_name(target).endswith("_backward"):  # by the numbers of its forward, which it takes
        return False
    return _may_draw(target) or op_name(target) in drawn


def dropout_of(node: Node) -> tuple[Node, float] | None:
    """Of the values that dropout gives, the first of its results: what it drops from, and which share of that."""
    source = node.args[0] if node.target is operator.getitem and node.args[1] == 0 else None
    target, args = _called(source) if isinstance(source, Node) else (None, ())
    if op_name(target) != "native_dropout" or len(args) != 3:
        return None
    given, share, training = args
    return (given, float(cast("float", share))) if isinstance(given, Node) and training is not False else None


def _called(node: Node) -> tuple[object, tuple[object, ...]]:
    """What a node calls, and with what: torch 2.15 wraps an op that has to run after others (`control_deps`)."""
    module = node.graph.owning_module
    if op_name(node.target) != "control_deps" or module is None or not isinstance(part := node.args[1], Node):
        return node.target, node.args
    inner = cast("GraphModule", attribute(module, str(part.target))).graph
    calls = [each for each in inner.nodes if each.op == "call_function"]
    if len(calls) != 1:
        return node.target, node.args
    given = dict(zip(inner.find_nodes(op="placeholder"), node.args[2:], strict=False))
    return calls[0].target, tuple(given.get(each, each) if isinstance(each, Node) else each for each in calls[0].args)


def _may_draw(target: object) -> bool:
    return isinstance(target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in target.tags


def changes_arguments(target: object) -> bool:
    """Whether an op of a post-grad graph writes to what it is given."""
    return bool(written(target)) or op_name(target) == TRITON


def attribute(gm: GraphModule, target: str) -> object:
    """What a get_attr node of this (dotted) target holds."""
    held: object = gm
    for name in target.split("."):
        held = getattr(held, name)
    return held


def graphs_compiled() -> int:
    """How many graphs Dynamo has handed to a backend in this process."""
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


def takes_data_of(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether `tensor.data = other` is allowed: not across the borders of some devices (XLA, those of packages)."""
    return bool(torch._has_compatible_shallow_copy_type(tensor, other))


Dropout = Callable[[torch.Tensor, float, bool | None], torch.Tensor | None]


@contextmanager
def dropped_out_by(instead: Dropout) -> Iterator[None]:
    """While it lasts, `instead` is asked first what dropout gives of a tensor on the CPU; None: what it always does."""

    def dropout(value: torch.Tensor, p: float, train: bool | None) -> torch.Tensor:
        given = instead(value, p, train)
        return (
            cast("torch.Tensor", torch.ops.aten.dropout.default.decompose(value, p, train)) if given is None else given
        )

    with torch.library._scoped_library("aten", "IMPL") as library:
        for key in ("AutogradCPU", "CPU"):
            library.impl("dropout", dropout, key)
        yield


def attention_kind(*taken: object, **named: object) -> str:
    """Which fused op `scaled_dot_product_attention` runs on these arguments: "flash"; "" where it is plain math."""
    with no_modes(), tensors_as_they_are():
        choice = cast("Callable[..., int]", torch._fused_sdp_choice)(*taken, **named)
    return {1: "flash", 2: "efficient", 3: "cudnn"}.get(choice, "")


def attention_sums_halves() -> bool:
    """Whether attention in plain math computes float16 and bfloat16 as they are, and not in float32."""
    return cast("Callable[[], bool]", torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed)()


def no_modes() -> AbstractContextManager[object]:
    """While it lasts, ops are what they are where no mode is in force: real, and in the dtypes that they have."""
    return cast("AbstractContextManager[object]", _disable_current_modes())


def tensors_as_they_are() -> AbstractContextManager[object]:
    """While it lasts, no mode over torch's functions answers for tensors."""
    return cast("AbstractContextManager[object]", torch._C.DisableTorchFunction())


@contextmanager
def nothing_compiled() -> Iterator[None]:
    """What was compiled runs as the Python that it was made from."""
    with torch.compiler.set_stance("force_eager"):
        yield


@contextmanager
def inductor_set(options: Mapping[str, object]) -> Iterator[None]:
    """Inductor's options as asked for, in this thread."""
    with torch._inductor.config.patch(dict(options)):
        yield


def wraps_others(value: torch.Tensor) -> bool:
    """Whether it is of a class that tells the tensors which it wraps (DTensor): its own address is 0."""
    return bool(is_traceable_wrapper_subclass(value))


def is_zeros(value: torch.Tensor) -> bool:
    """Whether it is one of autograd's that are zeros without any memory."""
    return bool(value._is_zerotensor())
