"""Replace the backend that Dynamo calls, and the inner compile that Inductor calls.

Both are replaced at the call, so this works for functions that were given to torch.compile earlier.
"""

import importlib
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, cast

from torch.fx import GraphModule

from idbg.engine.compat.hooks import hooked
from idbg.engine.compat.lowering import Compiled, Compiler
from idbg.engine.compat.names import internals

Around = Callable[[Compiler, GraphModule, list[object]], Compiled]
"""Called in place of a backend: with the backend, the graph and its inputs."""

_LINKS = ("_torchdynamo_orig_backend", "_torchdynamo_orig_callable")  # 2.14, and before


class _Replacement:
    """Replaces a backend for one call. Torch's messages use its name, which is the backend's."""

    def __init__(self, backend: Compiler, around: Around) -> None:
        self.backend, self.around = backend, around
        self.__name__ = getattr(backend, "__name__", type(backend).__name__)

    def __call__(self, gm: GraphModule, inputs: list[object], **_: object) -> Compiled:
        return self.around(self.backend, gm, inputs)


def replace_backend_calls(around: Around) -> AbstractContextManager[None]:
    """While it lasts, `around` is called in place of every backend."""

    def call_user_compiler(call: Callable[..., Compiled], graph: Any, gm: GraphModule, *inputs: Any) -> Compiled:
        backend = graph.compiler_fn
        graph.compiler_fn = _Replacement(backend, around)
        try:
            return call(graph, gm, *inputs)
        finally:
            graph.compiler_fn = backend

    return hooked("backend calls", {"OutputGraph.call_user_compiler": call_user_compiler})


def with_arguments(backend: object, mode: object, options: object, dynamic: object) -> Compiler:
    """The backend as torch.compile calls it with these arguments."""
    return cast("Callable[..., Compiler]", internals._TorchCompileWrapper)(backend, mode, options, dynamic)


def innermost(backend: object) -> object:
    """The backend without torch's wrappers."""
    return _chain(backend)[-1]


def name_of(backend: Compiler) -> str:
    """The name given to torch.compile; for a function its Python name."""
    chain = _chain(backend)
    names = (name for each in chain if isinstance(name := getattr(each, "compiler_name", None), str))
    return next(names, getattr(chain[-1], "__name__", type(chain[-1]).__name__))


def _chain(backend: object) -> list[object]:
    """The backend as Dynamo calls it, the one that it wraps, and so on."""
    chain = [backend]
    while (inside := _wrapped(chain[-1])) is not None:
        chain.append(inside)
    return chain


def _wrapped(backend: object) -> object | None:
    """The backend that this one calls; of one that splits graphs for DistributedDataParallel, that of the parts."""
    for link in _LINKS:
        if (inside := getattr(backend, link, None)) is not None:
            return cast("object", inside)
    if isinstance(backend, internals._TorchCompileWrapper):
        return cast("object", backend.compiler_fn)
    splitting = getattr(backend, "__self__", None)
    return getattr(splitting, "backend_compile_fn", None) if type(splitting).__name__ == "DDPOptimizer" else None


def replace_inner_compile(backend: Compiler, around: Callable[[Compiler], Compiler]) -> AbstractContextManager[None]:
    """While it lasts, Inductor's inner compile is `around` of it, if this backend lowers by Inductor."""

    def compile_fx(
        call: Callable[..., Compiled], gm: GraphModule, inputs: Sequence[object], *args: object, **kwargs: object
    ) -> Compiled:
        if not args and "inner_compile" not in kwargs:  # it calls itself, and a backend may have its own
            inner = sys.modules["torch._inductor.compile_fx"].compile_fx_inner
            kwargs["inner_compile"] = around(cast("Compiler", inner))
        return call(gm, inputs, *args, **kwargs)

    if name_of(backend) == "inductor":
        importlib.import_module("torch._inductor.compile_fx")
    return hooked("inner compile", {"compile_fx": compile_fx})
