"""Register plain PyTorch functions as references of the user's own ops and Triton kernels."""

from collections.abc import Callable
from typing import Any, TypeVar, overload

from torch.fx import Node

from idbg.engine.compat import fx, mutations
from idbg.schema.errors import BadInput

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)

_FUNCTIONS: dict[object, Function] = {}  # op name or Triton function -> the user's function


@overload
def reference(kernel_or_op: object) -> Callable[[F], F]: ...
@overload
def reference(kernel_or_op: object, function: F) -> F: ...
def reference(kernel_or_op: object, function: F | None = None) -> F | Callable[[F], F]:
    """Compare an op or a Triton kernel of your own with a function of plain PyTorch ops; also usable as a decorator.

    `kernel_or_op` is a `@triton.jit` function (autotuned or not), the result of `torch.library.custom_op`, or an op or
    its name ("my::op"). The function is called as the op is; for a kernel, with all its arguments by name. It returns
    what the op returns, and writes in place to what the op or the kernel writes to. It is also called in float64, so it
    must accept any dtype. For a `triton_op`, whose kernels the compiler sees one by one, register references of its
    kernels. Returns the function. Raises BadInput for a `triton_op`, and for anything that is neither an op nor a
    Triton kernel.
    """
    key = _key(kernel_or_op)

    def register(function: F) -> F:
        _FUNCTIONS[key] = function
        return function

    return register if function is None else register(function)


def reference_of(node: Node) -> Function | None:
    """The user's reference of this node, to be called as the node's op is; None if there is none."""
    kernel = mutations.triton_kernel(node)
    if kernel is None:
        return _FUNCTIONS.get(fx.op_name(node.target)) if _FUNCTIONS else None
    function = _FUNCTIONS.get(kernel)
    if function is None:
        return None

    def call(*, kwargs: dict[str, Any], **_: object) -> None:
        function(**mutations.triton_arguments(node, kwargs))

    return call


def unreferenced(node: Node) -> str:
    """The name of the user's Triton kernel that this node launches without a reference; "" for others."""
    kernel = mutations.triton_kernel(node)
    return str(getattr(kernel, "__name__", kernel)) if kernel is not None and kernel not in _FUNCTIONS else ""


def _key(kernel_or_op: object) -> object:
    if isinstance(kernel_or_op, str) and "::" in kernel_or_op:
        return _checked(kernel_or_op.removeprefix("aten::"))
    if name := mutations.name_of_op(kernel_or_op):
        return _checked(name)
    kernel = mutations.jit_function(kernel_or_op)
    if kernel is None:
        raise BadInput(
            f"idbg.reference takes a Triton kernel or a custom op, not {str(kernel_or_op)[:80]!r}",
            hint='give the @triton.jit function, what torch.library.custom_op made, or its name "my::op"',
        )
    return kernel


def _checked(op: str) -> str:
    kernels = mutations.kernels_of_triton_op(op)
    if kernels is not None:
        raise BadInput(
            f"{op} is a triton_op: the compiler sees its kernels and not the op, whose reference has no effect",
            hint=f"give a reference of each of its kernels: {', '.join(kernels) or 'its @triton.jit functions'}",
        )
    return op
