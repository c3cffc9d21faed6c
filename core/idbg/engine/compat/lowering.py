"""Lower a graph through AOTAutograd or Inductor."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, cast

from torch.fx import GraphModule

from idbg.engine.compat.hooks import hooked
from idbg.engine.compat.names import internals
from idbg.engine.compat.stages import copy_of
from idbg.schema.graphs import Part

Compiled = Callable[..., object]
"""Runs a graph."""

Compiler = Callable[..., Compiled]
"""Compiles a graph module with its inputs, as Dynamo and AOTAutograd call a backend."""


def compile_fx(gm: GraphModule, inputs: list[object], inner: Compiler, options: Mapping[str, object]) -> Compiled:
    """Inductor's whole pipeline, with `inner` called on each ATen graph in place of `compile_fx_inner`."""
    return cast("Compiler", internals._inductor.compile_fx.compile_fx)(
        gm, inputs, inner_compile=inner, config_patches=dict(options) or None
    )


def compile_fx_inner(gm: GraphModule, inputs: list[object], **kwargs: object) -> Compiled:
    """Inductor's own compile of one ATen graph; `kwargs` are as it hands them to an `inner`."""
    return cast("Compiler", internals._inductor.compile_fx.compile_fx_inner)(gm, inputs, **kwargs)


def aot_autograd(forward: Compiler, backward: Compiler, inference: Compiler) -> Compiler:
    """A Dynamo backend that traces to ATen without decompositions and hands each graph to its compiler."""
    return cast(
        "Compiler",
        internals._dynamo.backends.common.aot_autograd(
            fw_compiler=forward, bw_compiler=backward, inference_compiler=inference
        ),
    )


def boxed(function: Compiled) -> Compiled:
    """AOTAutograd's calling convention: one list of arguments, which the callee may empty."""
    return cast("Compiled", internals._functorch._aot_autograd.utils.make_boxed_func(function))


def on_first_call(compiled: Compiled, called: Callable[[], None]) -> Compiled:
    """`compiled`, with `called` run at the first call. Later calls cost nothing where Inductor compiled it."""
    original = getattr(compiled, "current_callable", None)
    if original is None:

        def each(*arguments: object) -> object:
            called()
            return compiled(list(arguments)) if getattr(compiled, "_boxed_call", False) else compiled(*arguments)

        return boxed(each)

    def first(arguments: list[object]) -> object:
        compiled.current_callable = original  # type: ignore[attr-defined]
        called()
        return original(arguments)

    compiled.current_callable = first  # type: ignore[attr-defined]
    return compiled


Watched = Callable[[Part, GraphModule, Compiler, Compiled], Callable[[list[object], Callable[[], object]], object]]
"""Gets a graph, its compiler and the compiled part. Returns what is called in place of each call of the part, with
the arguments and the call itself."""

_COMPILERS: dict[str, Part] = {"fw_compiler": "forward", "bw_compiler": "backward", "inference_compiler": "inference"}


def observe_aot_parts(watched: Watched) -> AbstractContextManager[None]:
    """While it lasts, `watched` gets each graph that AOTAutograd gives to a backend's compilers."""

    def aot_module_simplified(call: Callable[..., object], *args: Any, **kwargs: Any) -> object:
        compilers = {
            name: _around(kwargs[name], part, watched) for name, part in _COMPILERS.items() if kwargs.get(name)
        }
        return call(*args, **{**kwargs, **compilers})

    return hooked("AOTAutograd parts", {"aot_module_simplified": aot_module_simplified})


def _around(compiler: Compiler, part: Part, watched: Watched) -> Compiler:
    def compile(gm: GraphModule, inputs: list[object]) -> Compiled:
        graph = copy_of(gm)
        compiled = compiler(gm, inputs)
        around = watched(part, graph, compiler, compiled)

        def call(arguments: list[object]) -> object:
            return around(arguments, lambda: called(compiled, arguments))

        call._boxed_call = True  # type: ignore[attr-defined]
        return cast("Compiled", call)

    return compile


def called(compiled: Compiled, arguments: list[object]) -> object:
    """Call a compiled graph by its own convention: a boxed one may empty the list."""
    if getattr(compiled, "_boxed_call", False):
        return compiled(arguments)
    return compiled(*arguments)
