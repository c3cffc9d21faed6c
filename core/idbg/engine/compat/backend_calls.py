"""Where does Dynamo call the backend that a program asked for, and where Inductor its inner compile?

Both are met as they are called, so that also what was given to torch.compile long before is seen.
"""

import functools
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, cast

import torch
from torch._dynamo.output_graph import OutputGraph
from torch.fx import GraphModule

from idbg.engine.compat.lowering import Compiled, Compiler
from idbg.engine.compat.patched import patched

Around = Callable[[Compiler, GraphModule, list[object]], Compiled]
"""What is called in place of a backend: with the backend itself, and what it is to compile."""

_LINKS = ("_torchdynamo_orig_backend", "_torchdynamo_orig_callable")  # 2.14, and before


class _Met:
    """Stands for a backend while Dynamo calls it once; torch names the backend itself in its messages."""

    def __init__(self, own: Compiler, around: Around) -> None:
        self.own, self.around = own, around
        self.__name__ = getattr(own, "__name__", type(own).__name__)

    def __call__(self, gm: GraphModule, inputs: list[object], **_: object) -> Compiled:
        return self.around(self.own, gm, inputs)


def backend_calls_met(around: Around) -> AbstractContextManager[None]:
    """While it lasts, `around` is called in place of every backend."""

    def made(original: Callable[..., Compiled]) -> Callable[..., Compiled]:
        @functools.wraps(original)
        def call(graph: Any, gm: GraphModule, *inputs: Any) -> Compiled:
            own = graph.compiler_fn
            graph.compiler_fn = _Met(own, around)
            try:
                return original(graph, gm, *inputs)
            finally:
                graph.compiler_fn = own

        return call

    return patched(OutputGraph, "call_user_compiler", made)


def innermost(backend: object) -> object:
    """The backend below what torch wraps it in."""
    return _chain(backend)[-1]


def name_of(backend: Compiler) -> str:
    """As torch.compile was given it, if that was a name; else what Python calls it."""
    chain = _chain(backend)
    given = (name for each in chain if isinstance(name := getattr(each, "compiler_name", None), str))
    return next(given, getattr(chain[-1], "__name__", type(chain[-1]).__name__))


def _chain(backend: object) -> list[object]:
    """The backend as Dynamo calls it, what that wraps, and so on."""
    chain = [backend]
    while (inside := next((getattr(chain[-1], link) for link in _LINKS if hasattr(chain[-1], link)), None)) is not None:
        chain.append(inside)
    if isinstance(chain[-1], torch._TorchCompileWrapper):
        chain.append(chain[-1].compiler_fn)
    return chain


@contextmanager
def inner_compile_met(backend: Compiler, around: Callable[[Compiler], Compiler]) -> Any:
    """While it lasts, Inductor's inner compile is what `around` makes of it, if this backend lowers by Inductor."""
    if name_of(backend) != "inductor" and "torch._inductor.compile_fx" not in sys.modules:
        yield
        return
    from torch._inductor import compile_fx as home

    def made(original: Callable[..., Compiled]) -> Callable[..., Compiled]:
        @functools.wraps(original)
        def compile_fx(gm: GraphModule, inputs: Sequence[object], *given: object, **named: object) -> Compiled:
            if not given and "inner_compile" not in named:  # it calls itself, and a backend may have its own
                named["inner_compile"] = around(cast("Compiler", home.compile_fx_inner))
            return original(gm, inputs, *given, **named)

        return compile_fx

    with ExitStack() as stack:
        stack.enter_context(patched(home, "compile_fx", made))
        yield
