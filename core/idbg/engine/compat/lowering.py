"""How is a graph lowered: through AOTAutograd, through Inductor?"""

from collections.abc import Callable, Mapping
from typing import cast

from torch.fx import GraphModule

Compiled = Callable[..., object]
"""What runs a graph."""

Compiler = Callable[..., Compiled]
"""What makes it of a graph module and its inputs, as Dynamo and AOTAutograd call a backend."""


def compile_fx(gm: GraphModule, inputs: list[object], inner: Compiler, options: Mapping[str, object]) -> Compiled:
    """Inductor's whole pipeline, with `inner` called on each ATen graph in place of `compile_fx_inner`."""
    from torch._inductor.compile_fx import compile_fx as inductor

    return cast("Compiler", inductor)(gm, inputs, inner_compile=inner, config_patches=dict(options) or None)


def compile_fx_inner(gm: GraphModule, inputs: list[object], **kwargs: object) -> Compiled:
    """Inductor's own compile of one ATen graph; `kwargs` are as it hands them to an `inner`."""
    from torch._inductor.compile_fx import compile_fx_inner as inductor

    return cast("Compiler", inductor)(gm, inputs, **kwargs)


def aot_autograd(forward: Compiler, backward: Compiler, inference: Compiler) -> Compiler:
    """A Dynamo backend that traces to ATen without decompositions and hands each graph to its compiler."""
    from torch._dynamo.backends.common import aot_autograd as aot

    return cast("Compiler", aot(fw_compiler=forward, bw_compiler=backward, inference_compiler=inference))


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

        def told(*arguments: object) -> object:
            tell()
            return compiled(list(arguments)) if getattr(compiled, "_boxed_call", False) else compiled(*arguments)

        return boxed(told)

    def first(arguments: list[object]) -> object:
        compiled.current_callable = made  # type: ignore[attr-defined]
        tell()
        return made(arguments)

    compiled.current_callable = first  # type: ignore[attr-defined]
    return compiled
