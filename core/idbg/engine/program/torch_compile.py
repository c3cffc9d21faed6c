"""What does torch.compile do in the program that runs here? It compiles for the target."""

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

import torch
from torch.fx import GraphModule

from idbg import plugins
from idbg.accelerators import adapter as adapters
from idbg.config.options import INDUCTOR, family
from idbg.engine import backends
from idbg.engine.capture.run import current
from idbg.engine.compat import dynamo, settings
from idbg.engine.compat.lowering import Compiled
from idbg.engine.program.in_force import Again
from idbg.schema import events
from idbg.schema.programs import Target


@dataclass
class CompileCalls:
    """How often the program called torch.compile, and the backends that it asked for and did not get, as told."""

    count: int = 0
    not_theirs: set[str] = field(default_factory=set)

    def hear(self, backend: object, target: Target) -> None:
        """Tell once of each backend of the program's own that is not the target's."""
        name = backend if isinstance(backend, str) else getattr(backend, "__name__", type(backend).__name__)
        capture = current()
        if backend in (None, INDUCTOR, target.backend) or name in self.not_theirs or capture is None:
            return
        self.not_theirs.add(name)
        hint = f"; --backend {name} gives it that" if isinstance(backend, str) else ""
        text = f"the program asks for the backend {name}, and is compiled for {target.backend} instead{hint}"
        capture.emit(events.Noted(level="warning", text=text))


class CurrentBackend:
    """What a program's torch.compile is given: the backend of the run in hand, also if an earlier run called it.

    `options` are for the target's backend, `arguments` those of a torch.compile that names a backend of its own.
    """

    __name__ = "idbg"

    def __init__(self, options: dict[str, object], arguments: Mapping[str, object]) -> None:
        self.options, self.arguments = options, arguments

    def __call__(self, gm: GraphModule, inputs: list[object], **_: object) -> Compiled:
        capture = current()
        return capture.lower(gm, inputs, self.options, self.arguments) if capture and capture.lower else gm.forward


_TORCH_COMPILE = torch.compile
_CHECKED = ("backend", "mode", "options", "dynamic")  # what torch.compile looks at before anything is called
_GUARD_FILTER = "guard_filter_fn"
# what is called before the first call, with and without gradients, of what the program compiled: (model, args, kwargs,
# and the arguments of its torch.compile, where they name a backend of its own)
BeforeFirst = Callable[[Compiled, tuple[object, ...], dict[str, object], Mapping[str, object]], None]


@contextmanager
def torch_compile_replaced(
    target: Target, calls: CompileCalls, before_first: BeforeFirst | None = None, again: Again = lambda: None
) -> Iterator[None]:
    """While it lasts, every torch.compile compiles for the target, whatever backend it asks for, unless nobody chose
    the target's.

    Its mode and options still hold where the target lowers through Inductor and has none of its own, and its options
    where it asks for the target's own backend. `again` puts the target's settings in force once more.
    """
    original = torch.compile
    compiled_by = cast("Callable[..., Compiled]", original)
    made: dict[str, CurrentBackend] = {}

    def compile_for_target(model: Compiled | None = None, *, disable: bool = False, **kwargs: object) -> object:
        if model is None:
            return lambda function: compile_for_target(function, disable=disable, **kwargs)
        _check_arguments(compiled_by, kwargs)
        if disable:
            return compiled_by(model, disable=True, **kwargs)
        calls.count += 1
        again()
        if kwargs.get("fullgraph") and (capture := current()) is not None:
            capture.outcomes.fullgraph = True
        dynamic = target.dynamic if target.dynamic is not None else cast("bool | None", kwargs.pop("dynamic", None))
        kwargs.pop("dynamic", None)
        backend, mode = kwargs.pop("backend", None), cast("str | None", kwargs.pop("mode", None))
        given = dict(cast("Mapping[str, object] | None", kwargs.pop("options", None)) or {})
        if _GUARD_FILTER in given:  # Dynamo's, whatever the backend
            kwargs["options"] = {_GUARD_FILTER: given.pop(_GUARD_FILTER)}
        own = {"backend": backend, "mode": mode, "options": given or None, "dynamic": dynamic}
        own = own if backends.is_own(backend) else {}
        if not (own and target.own_backend):
            calls.hear(backend, target)
        options = _holding(given, mode, backend, dynamic, target) | _of_target(target, dynamic)
        # one object for equal options, or Dynamo compiles again
        key = repr((sorted(options.items()), sorted(own.items()), id(backend) if own else 0))
        chosen = made.setdefault(key, CurrentBackend(options, own))
        compiled = compiled_by(model, backend=chosen, dynamic=dynamic, **kwargs)
        return _announced(compiled, model, own, before_first) if before_first else compiled

    torch.compile = compile_for_target  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.compile = original


@contextmanager
def original_torch_compile() -> Iterator[None]:
    """Inside of `torch_compile_replaced`: torch's own torch.compile."""
    replaced, torch.compile = torch.compile, _TORCH_COMPILE
    try:
        yield
    finally:
        torch.compile = replaced


def _check_arguments(compiled_by: Callable[..., object], kwargs: Mapping[str, object]) -> None:
    """Raise what torch.compile itself raises for these arguments before anything is called: for an option, a mode or a
    backend that does not exist. Backends that only idbg knows by name are not torch's to check.
    """
    if all(kwargs.get(name) is None for name in ("backend", "mode", "options")):
        return  # nothing can be wrong, and torch would import Inductor, which the target may not need
    backend = kwargs.get("backend")
    if isinstance(backend, str) and backend in backends.names() and backend not in dynamo.backend_names():
        return
    given = {name: kwargs[name] for name in _CHECKED if name in kwargs}
    if isinstance(given.get("options"), dict):
        given["options"] = dict(cast("dict[str, object]", given["options"]))  # torch takes some out of it
    compiled_by(_nothing, **given)


def _nothing() -> None:
    """What is wrapped, and never called."""


def _holding(
    given: dict[str, object], mode: str | None, backend: object, dynamic: bool | None, target: Target
) -> dict[str, object]:
    """Of what the program gave to its torch.compile, what holds for the target."""
    if family(target.backend) != INDUCTOR and target.backend not in plugins.names(adapters.GROUP):
        return given if backend == target.backend else {}
    known = settings.options()
    mode = None if target.mode else mode
    asked = {name.replace("-", "_"): value for name, value in (settings.mode_options(mode, dynamic) | given).items()}
    return {name: value for name, value in asked.items() if name in known}


def _of_target(target: Target, dynamic: bool | None) -> dict[str, object]:
    """The options of the target: those of its mode, and its own."""
    mode = target.mode if family(target.backend) == INDUCTOR else None
    return settings.mode_options(mode or None, dynamic) | target.options


def _announced(compiled: Compiled, model: Compiled, own: Mapping[str, object], before_first: BeforeFirst) -> Compiled:
    """`compiled`, whose first calls with and without gradients are announced before they are made."""
    announced: set[bool] = set()

    def tell(args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        if torch.is_grad_enabled() not in announced:
            announced.add(torch.is_grad_enabled())
            before_first(model, args, kwargs, own)

    if isinstance(compiled, torch.nn.Module):
        compiled.register_forward_pre_hook(lambda _, args, kwargs: tell(args, kwargs), with_kwargs=True)
        return compiled

    @functools.wraps(compiled)
    def function(*args: object, **kwargs: object) -> object:
        tell(args, kwargs)
        return compiled(*args, **kwargs)

    return function
