"""Look up Dynamo's backends, and what it has compiled."""

import inspect
from contextlib import AbstractContextManager
from typing import cast

import torch
import torch._dynamo

from idbg.engine.compat.lowering import Compiler


def lookup_backend(name: str) -> Compiler:
    """The backend that torch knows by this name. Raises torch._dynamo.exc.InvalidBackend."""
    from torch._dynamo.backends.registry import lookup_backend as lookup

    return cast("Compiler", lookup(name))


def backend_names() -> list[str]:
    """Every backend that torch knows by name, also those of tests, sorted."""
    return sorted(torch._dynamo.list_backends(None))


def takes_options(backend: Compiler) -> bool:
    """Whether torch.compile(options=...) reaches this backend."""
    from torch._dynamo.backends.common import AotAutograd

    if isinstance(backend, AotAutograd):
        return False  # it logs that it ignores them
    try:
        parameters = inspect.signature(backend).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(each.name == "options" or each.kind is each.VAR_KEYWORD for each in parameters)


def is_compiled(model: object) -> bool:
    """Whether it is a result of torch.compile."""
    return isinstance(model, torch._dynamo.OptimizedModule) or hasattr(model, "_torchdynamo_orig_callable")


def nothing_compiled() -> AbstractContextManager[object]:
    """While it lasts, compiled functions run in eager."""
    return cast("AbstractContextManager[object]", torch.compiler.set_stance("force_eager"))
