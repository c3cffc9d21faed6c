"""Classify torch's exceptions.

Where another version of torch lacks a name, the answer is "unknown", never an error of idbg.
"""

import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points

import torch

from idbg.analysis.raised_text import UNHANDLED
from idbg.engine.compat.dynamo import lookup_backend
from idbg.engine.compat.fx import concrete
from idbg.engine.compat.names import find, instead_of, internals
from idbg.engine.compat.torch_types import tree_leaves, tree_map

_TRACERS = ("_get_fake_value_impl", "get_fake_value")  # of torch._dynamo.utils: they run an op on fake tensors
_MAX_BYTES = 1 << 28  # of real tensors made to try an op
_OTHER_RESULT = re.compile(r"^Error in op: torch\.ops\.(\w+)\.(\w+)\.\w+$", re.MULTILINE)


def is_torch_error(error: BaseException) -> bool:
    """Whether the compiler raised it, and not the user's own code."""
    return isinstance(
        error,
        (
            internals._dynamo.exc.TorchDynamoException,
            internals._inductor.exc.InductorError,
            internals._inductor.exc.CppCompileError,
        ),
    )


def compiler_output(error: BaseException) -> str:
    """What a compiler printed as it failed; the whole traceback where it is no C++ compiler's error."""
    if isinstance(error, internals._inductor.exc.CppCompileError):
        return str(error.output)
    return "".join(traceback.format_exception(error))


def is_restart(error: BaseException) -> bool:
    """Whether Dynamo restarts the trace for it: no failure, and code compiled until then is dropped."""
    return isinstance(error, internals._dynamo.exc.RestartAnalysis)


@dataclass(frozen=True)
class TracedCall:
    """An op that Dynamo ran on fake tensors: the FX opcode and target, and its arguments."""

    op: str
    target: object
    args: Sequence[object]
    kwargs: Mapping[str, object]


def traced_call(error: BaseException) -> TracedCall | None:
    """The op on fake tensors that raised this; None for another exception."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        known = frame.f_locals if frame.f_code.co_name in _TRACERS else {}
        if isinstance(node := known.get("node"), torch.fx.Node) and "args" in known and "kwargs" in known:
            return TracedCall(node.op, node.target, known["args"], known["kwargs"])
    return None


def lowered_node(error: BaseException) -> torch.fx.Node | None:
    """The post-grad node whose lowering raised this; None for another exception."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        is_lowering = frame.f_code.co_name == "run_node" and frame.f_globals.get("__name__") == "torch._inductor.graph"
        if is_lowering and isinstance(node := frame.f_locals.get("n"), torch.fx.Node):
            return node
    return None


@instead_of(None)
def made_real(call: TracedCall) -> Callable[[], object] | None:
    """The same call on real tensors of zeros; None where it is impossible, or needs too much memory."""
    tensors = [leaf for leaf in tree_leaves((call.args, call.kwargs)) if isinstance(leaf, torch.Tensor)]
    sizes = [_bytes(tensor) for tensor in tensors]
    if any(size is None for size in sizes) or sum(filter(None, sizes)) > _MAX_BYTES:
        return None
    args, kwargs = tree_map(_real, (tuple(call.args), dict(call.kwargs)))
    if call.op == "call_method" and args:
        return lambda: getattr(args[0], str(call.target))(*args[1:], **kwargs)
    if call.op == "call_function" and callable(call.target):
        target = call.target
        return None if isinstance(target, internals._ops.HigherOrderOperator) else lambda: target(*args, **kwargs)
    return None


def _bytes(tensor: torch.Tensor) -> int | None:
    sizes = [concrete(size) for size in tensor.shape]
    if tensor.layout != torch.strided or not all(isinstance(size, int) for size in sizes):
        return None
    count = 1
    for size in sizes:
        count *= size if isinstance(size, int) else 0
    return count * tensor.element_size()


def _real(value: object) -> object:
    if not isinstance(value, torch.Tensor):
        return concrete(value)
    shape = [size for size in map(concrete, value.shape) if isinstance(size, int)]
    stride = [step for step in map(concrete, value.stride()) if isinstance(step, int)]
    real = torch.empty_strided(shape, stride, dtype=value.dtype, device=value.device)
    real.zero_()
    return real.requires_grad_() if value.requires_grad and value.is_leaf else real


def op_with_other_result(error: BaseException) -> str:
    """The op ("my::op") that returned another shape, stride or dtype than its fake kernel, which is why compiled code
    raised this; "" for another exception.
    """
    found = _OTHER_RESULT.search(str(error)) if isinstance(error, (AssertionError, RuntimeError)) else None
    return f"{found[1]}::{found[2]}" if found else ""


def traced_stack(error: BaseException) -> tuple[traceback.FrameSummary, ...]:
    """The program's frames at which Dynamo was, outermost first; () where the exception has none."""
    return tuple(getattr(error, "real_stack", None) or ())


def refused_stack(error: BaseException) -> tuple[traceback.FrameSummary, ...]:
    """The program's frames at which Dynamo was as it refused to trace on; () for another exception."""
    return traced_stack(error) if isinstance(error, internals._dynamo.exc.Unsupported) else ()


def is_raised_in_traced_code(error: BaseException) -> bool:
    """Whether it represents an exception that the program raises in traced code."""
    return isinstance(error, internals._dynamo.exc.ObservedException)


def is_wrapper(error: BaseException) -> bool:
    """Whether it only wraps an exception of a backend."""
    return isinstance(error, internals._dynamo.exc.BackendCompilerFailed)


def is_unhandled(error: BaseException) -> bool:
    """Whether torch reports an exception that the program raises and does not catch."""
    return isinstance(error, internals._dynamo.exc.Unsupported) and str(error).startswith(UNHANDLED)


def is_of_several_compiles(links: Sequence[BaseException]) -> bool:
    """Whether the recompile limit was hit (`fail_on_recompile_limit_hit`): no single compile fails so."""
    kind = find("torch._dynamo.exc.FailOnRecompileLimitHit", ())
    return any(isinstance(link, kind) or "fail_on_recompile_limit_hit" in str(link) for link in links)


@instead_of("torch")
def module_of_backend(name: str) -> str:
    """The module of the function that torch calls for this backend, or of its compilers."""
    for entry in entry_points(group="torch_dynamo_backends", name=name):
        return entry.module
    compiler: object = lookup_backend(name)
    compiler = getattr(compiler, "kwargs", {}).get("fw_compiler") or compiler  # AOTAutograd wraps the backend
    compiler = getattr(compiler, "func", compiler)  # a partial
    return str(getattr(compiler, "__module__", None) or type(compiler).__module__)
