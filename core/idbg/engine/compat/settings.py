"""List torch's settings and Inductor's options, and set them for a while."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType, NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin

import torch
import torch.compiler.config

from idbg.engine.compat.names import find, instead_of, internals
from idbg.schema.programs import OptionValue

MODULES: dict[str, ModuleType] = {
    "dynamo": internals._dynamo.config,
    "functorch": internals._functorch.config,
    "compiler": torch.compiler.config,
    "fx": internals.fx.experimental._config,
}
"""By the first word of a setting's name; Inductor's are options."""

READ_BY_DYNAMO = ("freezing",)
"""Options of Inductor that Dynamo reads as it traces: torch.compile(options=...) sets them too late, to no effect."""
_SET: dict[str, ModuleType] = {**MODULES, "inductor": internals._inductor.config}

OURS = {
    "functorch.enable_autograd_cache",
    "functorch.force_non_lazy_backward_lowering",
    "compiler.cache_key_tag",
}
"""Those that `tracing.observed` sets while a frame compiles."""

_STANCES = (
    "default",
    "eager_then_compile",
    "aot_eager_then_compile",
    "force_eager",
    "eager_on_recompile",
    "fail_on_recompile",
)  # 2.11 names its own in a docstring alone


def names() -> set[str]:
    """Every setting, as "dynamo.recompile_limit"; none that is private to torch."""
    return {
        f"{word}.{name}"
        for word, module in MODULES.items()
        for name in module._config
        if not name.startswith("_") and name != "TYPE_CHECKING"
    }


def kind_of(name: str) -> object:
    """The type of the setting's values: a class, or a typing construct."""
    word, _, own = name.partition(".")
    return MODULES[word].get_type(own)


def value_of(name: str) -> object:
    """The setting's value, in this thread."""
    word, _, own = name.partition(".")
    return getattr(_SET[word], own)


def stances() -> tuple[str, ...]:
    """All that torch.compiler.set_stance takes."""
    return get_args(find("torch._dynamo.eval_frame.StanceStr", None)) or _STANCES


@instead_of(())
def modes() -> tuple[str, ...]:
    """All that torch.compile(mode=...) takes."""
    return tuple(internals._inductor.list_mode_options())


class TemporarySettings:
    """Settings that are set for a while. If the program changes one meanwhile, its value is restored."""

    def __init__(self, values: Mapping[str, OptionValue]) -> None:
        self._values = dict(values)
        self._before: dict[str, object] = {}
        self._thread = threading.current_thread()

    def set(self) -> None:
        """Set all, for this thread (from 2.14 on each has its own values)."""
        for name, value in self._values.items():
            now = value_of(name)
            if threading.current_thread() is self._thread and (name not in self._before or now != value):
                self._before[name] = now
            _set(name, value)

    def overridden(self) -> dict[str, object]:
        """Settings with another value than the one set, by the program or the environment, with that value."""
        return {name: now for name, value in self._values.items() if (now := value_of(name)) != value}

    def restore(self) -> None:
        """Restore each to the value without us."""
        for name, before in self._before.items():
            if value_of(name) == self._values[name]:
                _set(name, before)


def _set(name: str, value: object) -> None:
    word, _, own = name.partition(".")
    setattr(_SET[word], own, value)


@contextmanager
def stance(name: str) -> Iterator[None]:
    """While it lasts, torch.compiler.set_stance(name)."""
    with torch.compiler.set_stance(cast("Any", name)):
        yield


def default_of(name: str) -> object:
    """The setting's default: torch reads some from the environment."""
    word, _, own = name.partition(".")
    return MODULES[word]._config[own].default


def plain(value: object) -> OptionValue:
    """The value if it is a literal; None for others, such as a function."""
    if isinstance(value, (list, tuple)) and all(isinstance(each, (bool, int, float, str)) for each in value):
        return list(value)
    return value if isinstance(value, (bool, int, float, str)) else None


def choices_of(kind: object) -> tuple[OptionValue, ...]:
    """All values of a setting of this kind, if they are few."""
    if kind is bool:
        return (True, False)
    if kind is NoneType or kind is None:
        return (None,)
    if get_origin(kind) is Literal:
        return get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        parts = [choices_of(each) for each in get_args(kind)]
        return tuple(choice for part in parts for choice in part) if all(parts) else ()
    return ()


def kind_in_words(kind: object) -> str:
    """The type as text: "bool", "int | None", "'a' | 'b'"."""
    if kind is NoneType or kind is None:
        return "None"
    if get_origin(kind) is Literal:
        return " | ".join(map(repr, get_args(kind)))
    if get_origin(kind) in (Union, UnionType):
        return " | ".join(map(kind_in_words, get_args(kind)))
    return kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")


@instead_of(set())
def options() -> set[str]:
    """The names of all settings that torch.compile(options=...) takes."""
    return set(internals._inductor.list_options())


def option_type(name: str) -> object:
    """The type of the option's values by torch's settings: a class, or a typing construct."""
    return internals._inductor.config.get_type(name)  # type: ignore[attr-defined]


@instead_of({})
def mode_options(mode: str | None, dynamic: bool | None) -> dict[str, object]:
    """The Inductor options of a torch.compile mode."""
    if mode in (None, "default"):
        return {}
    return dict(internals._inductor.list_mode_options(mode, dynamic))


def option_default(name: str) -> object:
    """The option's default: torch reads some from the environment."""
    return internals._inductor.config._config[name].default  # type: ignore[attr-defined]
