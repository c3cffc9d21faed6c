"""Which ATen graphs is a backend given by AOTAutograd, and what does it make of them? Run on torch 2.14 and 2.11."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from torch.fx import GraphModule

from idbg.engine.compat.lowering import Compiled, Compiler
from idbg.engine.compat.stages import copy_of
from idbg.schema.graphs import Part

Watched = Callable[[Part, GraphModule, Compiler, Compiled], Callable[[list[object], Callable[[], object]], object]]
"""Is given a part's graph, what compiles it and what that made; gives what is called around each call of it, with the
arguments and the call itself."""

_WAY_IN = "aot_module_simplified"
_COMPILERS: dict[str, Part] = {"fw_compiler": "forward", "bw_compiler": "backward", "inference_compiler": "inference"}


@contextmanager
def aot_parts(watched: Watched) -> Iterator[None]:
    """While it lasts, each graph that AOTAutograd hands to a backend's compilers is told."""
    from torch._dynamo.backends import common

    namespace = vars(common)  # where AOTAutograd's way in is looked up
    original = cast("Callable[..., object]", namespace[_WAY_IN])

    def simplified(*args: Any, **kwargs: Any) -> object:
        told = {name: _told(kwargs[name], part, watched) for name, part in _COMPILERS.items() if kwargs.get(name)}
        return original(*args, **{**kwargs, **told})

    namespace[_WAY_IN] = simplified
    try:
        yield
    finally:
        namespace[_WAY_IN] = original


def _told(compiler: Compiler, part: Part, watched: Watched) -> Compiler:
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
    """Call what a compiler made in the way that it wants: a boxed one may empty the list."""
    if getattr(compiled, "_boxed_call", False):
        return compiled(arguments)
    return compiled(*arguments)
