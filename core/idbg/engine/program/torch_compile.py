"""Replace torch.compile in the program that runs here: it compiles for the target."""

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
from idbg.engine.capture.run import Lower, current
from idbg.engine.compat import dynamo, settings
from idbg.engine.compat.lowering import Compiled
from idbg.engine.program.target import Reapply
from idbg.schema import events
from idbg.schema.programs import Target


@dataclass
class CompileCalls:
    """How often the program called torch.compile, and the backends that it named and did not get."""

    count: int = 0
    replaced: set[str] = field(default_factory=set)

    def note(self, backend: object, target: Target) -> None:
        """Note a backend of the program's own that is not the target's, once each."""
        name = backend if isinstance(backend, str) else getattr(backend, "__name__", type(backend).__name__)
        capture = current()
        if backend in (None, INDUCTOR, target.backend) or name in self.replaced or capture is None:
            return
        self.replaced.add(name)
        hint = f"; --backend {name} gives it that" if isinstance(backend, str) else ""
        text = f"the program asks for the backend {name}, and is compiled for {target.backend} instead{hint}"
        capture.emit(events.Noted(level="warning", text=text))


class CurrentBackend:
    """The backend that a program's torch.compile is given: that of the current run, also if an earlier run called it.

    `options` are for the target's backend; `arguments` are those of a torch.compile that names a backend of its own.
    """

    __name__ = "idbg"

    def __init__(self, options: dict[str, object], arguments: Mapping[str, object]) -> None:
        self.options, self.arguments = options, arguments
        if (own := arguments.get("backend")) is not None:  # torch's messages name it
            self.__name__ = own if isinstance(own, str) else getattr(own, "__name__", type(own).__name__)
        self._lower: Lower | None = None  # of the last run

    def __call__(self, gm: GraphModule, inputs: list[object], **_: object) -> Compiled:
        if (capture := current()) is None:  # after its run: an attribution calls what the program compiled again
            lower = self._lower
        else:
            lower = capture.lower
            self._lower = lower or self._lower
        return lower(gm, inputs, self.options, self.arguments) if lower else gm.forward


_TORCH_COMPILE = torch.compile
_CHECKED = ("backend", "mode", "options", "dynamic")  # what torch.compile looks at before anything is called
_GUARD_FILTER = "guard_filter_fn"


@dataclass(frozen=True)
class DynamoSettings:
    """Settings of a torch.compile that are Dynamo's, whatever the backend."""

    dynamic: bool | None = None
    guard_filter: object = None


@dataclass(frozen=True)
class ProgramCall:
    """A call of what the program `compiled`, by `backend`, of `model`: the `number`th with or without gradients, from 1
    on. `of_dynamo`: what else its torch.compile got for Dynamo.
    """

    model: Compiled
    compiled: Compiled
    backend: CurrentBackend
    args: tuple[object, ...]
    kwargs: dict[str, object]
    number: int
    of_dynamo: DynamoSettings


BeforeCall = Callable[[ProgramCall], None]


@contextmanager
def torch_compile_replaced(
    target: Target, calls: CompileCalls, before_call: BeforeCall | None = None, reapply: Reapply = lambda: None
) -> Iterator[None]:
    """While it lasts, every torch.compile compiles for the target, whatever backend it names, unless the target's
    backend was not chosen.

    Its mode and options still hold if the target lowers through Inductor and has none of its own, and its options if it
    names the target's backend. `reapply` applies the target's settings again.
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
        reapply()
        if kwargs.get("fullgraph") and (capture := current()) is not None:
            capture.outcomes.fullgraph = True
        dynamic = target.dynamic if target.dynamic is not None else cast("bool | None", kwargs.pop("dynamic", None))
        kwargs.pop("dynamic", None)
        backend, mode = kwargs.pop("backend", None), cast("str | None", kwargs.pop("mode", None))
        own_options = dict(cast("Mapping[str, object] | None", kwargs.pop("options", None)) or {})
        guard_filter = own_options.pop(_GUARD_FILTER, None)
        if guard_filter is not None:  # Dynamo's, whatever the backend
            kwargs["options"] = {_GUARD_FILTER: guard_filter}
        own = {"backend": backend, "mode": mode, "options": own_options or None, "dynamic": dynamic}
        own = own if backends.is_own(backend) else {}
        if not (own and target.own_backend):
            calls.note(backend, target)
        options = _holding(own_options, mode, backend, dynamic, target) | _of_target(target, dynamic)
        # one object for equal options, or Dynamo compiles again
        key = repr((sorted(options.items()), sorted(own.items()), id(backend) if own else 0))
        chosen = made.setdefault(key, CurrentBackend(options, own))
        compiled = compiled_by(model, backend=chosen, dynamic=dynamic, **kwargs)
        dynamo.note_call(compiled)
        of_dynamo = DynamoSettings(dynamic, guard_filter)
        return _announced(compiled, model, chosen, before_call, of_dynamo) if before_call else compiled

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
    """Raise what torch.compile itself raises for these arguments before anything is called: for an unknown option, mode
    or backend. Backends that only idbg knows by name are not checked.
    """
    if all(kwargs.get(name) is None for name in ("backend", "mode", "options")):
        return  # nothing can be wrong, and torch would import Inductor, which the target may not need
    backend = kwargs.get("backend")
    if isinstance(backend, str) and backend in backends.names() and backend not in dynamo.backend_names():
        return
    checked = {name: kwargs[name] for name in _CHECKED if name in kwargs}
    if isinstance(checked.get("options"), dict):
        checked["options"] = dict(cast("dict[str, object]", checked["options"]))  # torch takes some out of it
    compiled_by(_nothing, **checked)


def _nothing() -> None:
    """Is wrapped and never called."""


def _holding(
    own_options: dict[str, object], mode: str | None, backend: object, dynamic: bool | None, target: Target
) -> dict[str, object]:
    """The program's own options that hold for the target."""
    if family(target.backend) != INDUCTOR and target.backend not in plugins.names(adapters.GROUP):
        return own_options if backend == target.backend else {}
    known = settings.options()
    mode = None if target.mode else mode
    options = {
        name.replace("-", "_"): value for name, value in (settings.mode_options(mode, dynamic) | own_options).items()
    }
    return {name: value for name, value in options.items() if name in known}


def _of_target(target: Target, dynamic: bool | None) -> dict[str, object]:
    """The options of the target: those of its mode, and its own."""
    mode = target.mode if family(target.backend) == INDUCTOR else None
    return settings.mode_options(mode or None, dynamic) | target.options


def _announced(
    compiled: Compiled, model: Compiled, backend: CurrentBackend, before_call: BeforeCall, of_dynamo: DynamoSettings
) -> Compiled:
    """`compiled`, with its calls announced before they are made, counted with and without gradients."""
    counts = {True: 0, False: 0}
    announcing = False

    def tell(args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        nonlocal announcing
        if announcing or torch.compiler.is_compiling():
            return
        counts[torch.is_grad_enabled()] += 1
        announcing = True
        try:
            before_call(ProgramCall(model, compiled, backend, args, kwargs, counts[torch.is_grad_enabled()], of_dynamo))
        finally:
            announcing = False

    def called(*_: object) -> None:
        if (capture := current()) is not None and not announcing:
            capture.compared.clear()

    if isinstance(compiled, torch.nn.Module):
        compiled.register_forward_pre_hook(lambda _, args, kwargs: tell(args, kwargs), with_kwargs=True)
        compiled.register_forward_hook(called, always_call=True)
        if (context := getattr(compiled, "dynamo_ctx", None)) is not None:
            compiled.dynamo_ctx = _AnnouncingContext(context, backend, before_call, of_dynamo)  # type: ignore[assignment]
        return compiled

    @functools.wraps(compiled)
    def function(*args: object, **kwargs: object) -> object:
        tell(args, kwargs)
        try:
            return compiled(*args, **kwargs)
        finally:
            called()

    return function


@dataclass(frozen=True)
class _AnnouncingContext:
    """Stands for the context of a compiled module, with which a library compiles other methods of the module:
    Lightning does not call the compiled module, but its `training_step`.
    """

    context: Callable[[Compiled], Compiled]
    backend: CurrentBackend
    before_call: BeforeCall
    of_dynamo: DynamoSettings

    def __call__(self, function: Compiled) -> Compiled:
        return _announced(self.context(function), function, self.backend, self.before_call, self.of_dynamo)

    def __getattr__(self, name: str) -> object:
        return getattr(self.context, name)

    def __reduce__(self) -> tuple[object, ...]:
        return _itself, (self.context,)


def _itself(context: object) -> object:
    return context
