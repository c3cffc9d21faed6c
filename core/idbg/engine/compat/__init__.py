"""Where are torch's private names that we stand on, and on which versions did they run?

Every one is here and nowhere else. Run on torch 2.11 (CPU; CUDA with triton 3.6) and 2.15 (CPU). All but the
symbols' ranges were there, under the same names, in both.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from logging import Logger
from typing import Any, cast

import torch
import torch._dynamo
import torch._dynamo.compiled_autograd
import torch._dynamo.exc
import torch._functorch.config
import torch._inductor
import torch._inductor.config
import torch._inductor.exc
import torch._inductor.inductor_prims  # what Inductor decomposes to: repros call it
import torch._logging._internal
import torch._logging.structured
import torch.compiler.config
from torch.fx import GraphModule, Node

from idbg.schema.graphs import Dim, Sym, TensorMeta, hint_of

Compiled = Callable[..., Any]
_NO_BOUND = 1 << 62  # sympy's infinities and sys.maxsize come out above this: no bound


def trace_log() -> Logger:
    """The logger that carries everything TORCH_TRACE would write."""
    return torch._logging._internal.trace_log


def interned(index: int) -> str:
    """A file name that a trace record refers to by number."""
    for name, number in torch._logging.structured.INTERN_TABLE.items():
        if number == index:
            return name
    return ""


def cuda_in_use() -> bool:
    """Whether this process has a CUDA context; asking makes none."""
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def keep_gpu_busy(seconds: float) -> None:
    """The GPU does nothing on the current stream for this long, or somewhat longer: what is launched meanwhile waits.

    In cycles of its clock, of which no GPU has more than 2.5 billion a second.
    """
    torch.cuda._sleep(int(2.5e9 * seconds))  # type: ignore[no-untyped-call]


def current_frame() -> str:
    """The compile id ("0/0") of the frame that is being compiled on this thread; "" outside of a compile."""
    compile_id = torch._guards.CompileContext.current_compile_id()
    return str(compile_id) if compile_id is not None else ""


@contextmanager
def observed() -> Iterator[None]:
    """Torch's settings under which every graph and its provenance can be seen; restored on leaving.

    Enter it in the thread that compiles: in 2.15 overrides are local to it. The AOTAutograd cache skips the inner
    compile on a hit, and with it every check: off. The FX graph cache stays on. The backward is lowered with the
    forward, or its provenance is lost; not where compiled autograd will compile it as part of another graph.
    """
    eagerly = not (torch._dynamo.config.compiled_autograd or torch._dynamo.compiled_autograd.compiled_autograd_enabled)
    with ExitStack() as stack:
        stack.enter_context(torch._inductor.config.patch({"trace.provenance_tracking_level": 1}))
        # 2.11 leaves provenance out of the cache's key: what was compiled without it must not be found
        stack.enter_context(torch.compiler.config.patch(cache_key_tag="idbg"))  # type: ignore[attr-defined]
        stack.enter_context(
            torch._functorch.config.patch(force_non_lazy_backward_lowering=eagerly, enable_autograd_cache=False)
        )
        yield


def is_compiled(model: object) -> bool:
    """Whether torch.compile made it."""
    return isinstance(model, torch._dynamo.OptimizedModule) or hasattr(model, "_torchdynamo_orig_callable")


def python_ops() -> set[str]:
    """Custom ops ("my::op") that Python code of this process defined, and not torch's own."""
    from torch._library.custom_ops import OPDEFS

    return {str(name) for name, op in OPDEFS.items() if not op._init_fn.__module__.startswith("torch.")}


def inductor_options() -> set[str]:
    return set(torch._inductor.list_options())


def inductor_option_type(name: str) -> object:
    """What torch's settings say that the option's values are: a class, or a typing construct."""
    return torch._inductor.config.get_type(name)  # type: ignore[attr-defined]


def takes_options(backend: Compiled) -> bool:
    """Whether what torch.compile(options=...) is given reaches this backend, and is not dropped."""
    from torch._dynamo.backends.common import AotAutograd

    if isinstance(backend, AotAutograd):
        return False  # it logs that it ignores them
    try:
        parameters = inspect.signature(backend).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(each.name == "options" or each.kind is each.VAR_KEYWORD for each in parameters)


def mode_options(mode: str | None, dynamic: bool | None) -> dict[str, Any]:
    """The Inductor options that a torch.compile mode stands for."""
    if mode in (None, "default"):
        return {}
    return dict(torch._inductor.list_mode_options(mode, dynamic))


def compile_fx(gm: GraphModule, inputs: list[Any], inner: Compiled, options: Mapping[str, object]) -> Compiled:
    """Inductor's whole pipeline, with `inner` called on each ATen graph in place of `compile_fx_inner`."""
    from torch._inductor.compile_fx import compile_fx as inductor

    return cast("Compiled", inductor(gm, inputs, inner_compile=inner, config_patches=dict(options) or None))


def compile_fx_inner(gm: GraphModule, inputs: list[Any], **kwargs: Any) -> Compiled:
    from torch._inductor.compile_fx import compile_fx_inner as inductor

    return cast("Compiled", inductor(gm, inputs, **kwargs))


def aot_autograd(forward: Compiled, backward: Compiled, inference: Compiled) -> Compiled:
    """A Dynamo backend that traces to ATen without decompositions and hands each graph to its compiler."""
    from torch._dynamo.backends.common import aot_autograd as aot

    return cast("Compiled", aot(fw_compiler=forward, bw_compiler=backward, inference_compiler=inference))


def boxed(function: Compiled) -> Compiled:
    """The calling convention that AOTAutograd wants: one list of arguments, which the callee may empty."""
    from torch._functorch._aot_autograd.utils import make_boxed_func

    return cast("Compiled", make_boxed_func(function))


def on_first_call(compiled: Compiled, tell: Callable[[], None]) -> Compiled:
    """What AOTAutograd is to call instead of `compiled`: `tell` is told of the first call, later ones cost nothing
    where Inductor made it.
    """
    made = getattr(compiled, "current_callable", None)
    if made is None:

        def told(*arguments: Any) -> Any:
            tell()
            return compiled(list(arguments)) if getattr(compiled, "_boxed_call", False) else compiled(*arguments)

        return boxed(told)

    def first(arguments: list[Any]) -> Any:
        compiled.current_callable = made  # type: ignore[attr-defined]
        tell()
        return made(arguments)

    compiled.current_callable = first  # type: ignore[attr-defined]
    return compiled


def lookup_backend(name: str) -> Compiled:
    """The backend that torch knows by this name. Raises torch._dynamo.exc.InvalidBackend."""
    from torch._dynamo.backends.registry import lookup_backend as lookup

    return cast("Compiled", lookup(name))


def backend_names() -> list[str]:
    return sorted(torch._dynamo.list_backends(None))


def is_torch_error(error: BaseException) -> bool:
    """Whether the compiler raised it, and not the user's own code."""
    return isinstance(
        error,
        (
            torch._dynamo.exc.TorchDynamoException,
            torch._inductor.exc.InductorError,
            torch._inductor.exc.CppCompileError,
        ),
    )


def is_restart(error: BaseException) -> bool:
    """Whether Dynamo traces the frame anew for it: no failure, and nothing that was compiled until then runs."""
    return isinstance(error, torch._dynamo.exc.RestartAnalysis)


def qualified_target(node: Node) -> str:
    """ "aten.convolution.default", "torch.conv2d", "operator.getitem"; a method's or module's own name."""
    if isinstance(node.target, str):
        return node.target
    if isinstance(node.target, torch._ops.OpOverload):
        return str(node.target)
    from torch.fx.node import _get_qualified_name

    name = _get_qualified_name(node.target)
    return name.removeprefix("torch.ops.").replace("_operator.", "operator.")


@dataclass(frozen=True)
class Argument:
    """What a Dynamo placeholder stands for. `is_number`: a Python number that torch passes as a tensor."""

    is_number: bool = False
    is_static: bool = False


def argument_of(node: Node) -> Argument:
    graph_argument = node.meta.get("grapharg")
    static = node.meta.get("tensor_dict", {}).get("_dynamo_static_input_type") is not None
    return Argument(bool(getattr(graph_argument, "pass_arg_as_tensor", False)), static)


def real_inputs(gm: GraphModule) -> list[object]:
    """The values of a Dynamo graph's placeholders, in order, as of this compile; a backend itself is given fake
    tensors.
    """
    arguments = (node.meta.get("grapharg") for node in gm.graph.nodes if node.op == "placeholder")
    values = (argument.example if argument is not None else None for argument in arguments)
    return [concrete(value) for value in values]


def concrete(value: object) -> object:
    """A symbolic number as the one that it was traced with; anything else as it is."""
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return value.node.hint if value.node.has_hint() else None
    return value


def origins(node: Node) -> set[str]:
    """Names of the Dynamo nodes that this ATen node was traced from; empty where torch kept no trail."""

    def roots(sources: list[Any]) -> Iterator[str]:
        for source in sources:
            deeper = list(source.from_node or ())
            if deeper:
                yield from roots(deeper)
            else:
                yield str(source.name)

    return set(roots(node.meta.get("from_node") or []))


def tensor_meta(value: torch.Tensor) -> TensorMeta:
    dtype = str(value.dtype).removeprefix("torch.")
    strided = value.layout == torch.strided
    stride = tuple(dim_of(size) for size in value.stride()) if strided else ()
    return TensorMeta(dtype, tuple(dim_of(size) for size in value.shape), stride, str(value.device))


def storage_of(value: torch.Tensor) -> tuple[int, int | None]:
    """One number for all tensors that share memory, as long as they live, and that memory's bytes at hints.

    A tensor without a storage (sparse, or one of vmap's) has memory of its own. The bytes are None without a hint.
    """
    try:
        storage = value.untyped_storage()
    except NotImplementedError:
        return id(value), tensor_meta(value).nbytes
    return storage._cdata, hint_of(dim_of(storage.nbytes()))


def dim_of(size: int | torch.SymInt) -> Dim:
    """A size as a record; a symbol keeps its expression, hint and, where torch tells it, its range."""
    if isinstance(size, int):
        return size
    expression = size.node.expr
    if expression.is_number:
        return int(expression)
    low, high = _bounds(size)
    return Sym(str(expression), _hint(size), low, high)


def _hint(size: torch.SymInt) -> int | None:
    hint = size.node.hint if size.node.has_hint() else None
    return int(hint) if hint is not None and not isinstance(hint, torch.SymInt) else None


def _bounds(size: torch.SymInt) -> tuple[int | None, int | None]:
    if (environment := size.node.shape_env) is None:
        return None, None
    ranges = environment.bound_sympy(size.node.expr)
    if ranges is None:  # a nested tensor's ragged size has none
        return None, None
    low, high = (
        int(end) if end.is_Integer and abs(int(end)) < _NO_BOUND else None for end in (ranges.lower, ranges.upper)
    )
    return low, high


def op_name(target: object) -> str:
    """The name of an op of a graph, of every overload: "mm" (ATen's own), "my::op", "cond"; "" for what is no op."""
    if isinstance(target, torch._ops.HigherOrderOperator):
        return str(target.name())  # type: ignore[no-untyped-call]
    return target._schema.name.removeprefix("aten::") if isinstance(target, torch._ops.OpOverload) else ""


def is_computed(target: object) -> bool:
    """Whether an op of a graph makes new tensors; views, ops in place and the members of a tuple are old ones."""
    if isinstance(target, torch._ops.OpOverload):
        return all(result.alias_info is None for result in target._schema.returns)
    return isinstance(target, torch._ops.HigherOrderOperator)


def written(target: object) -> tuple[int, ...]:
    """The positions of the arguments that an op writes to."""
    if not isinstance(target, torch._ops.OpOverload):
        return ()
    arguments = enumerate(target._schema.arguments)
    return tuple(at for at, argument in arguments if argument.alias_info is not None and argument.alias_info.is_write)
