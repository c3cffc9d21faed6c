"""Record why each compiled version of a frame does not match a call: the guard, the expected and the actual value."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import BuiltinFunctionType, CodeType, FunctionType

import torch
from msgspec.structs import replace

from idbg.analysis.decisions.guards import GRAD_MODE, read_failed
from idbg.engine.capture.run import RunCapture
from idbg.engine.compat import tracing
from idbg.engine.compat.guards import GuardFailure, observe_guard_failures

MAX_VERSIONS = 64  # of one frame, whose failed guards are recorded; torch's default limit is 8 compiles
_MAX_ITEMS = 8
_MAX_CHARACTERS = 100


def record(capture: RunCapture) -> AbstractContextManager[None]:
    """While it lasts, failed guards are stored for the event of the recompile that follows."""

    def failed(failure: GuardFailure) -> None:
        known = capture.failed_guards.setdefault(tracing.current_frame(), [])
        if len(known) < MAX_VERSIONS:
            read = read_failed(failure.text)
            actual = read.failed.actual or _value(failure.value, read.ask)
            expected = read.failed.expected or ("off" if actual == "on" else "on" if actual == "off" else "")
            against = capture.named(failure.against)
            known.append(replace(read.failed, against=against, expected=expected, actual=actual))

    return observe_guard_failures(capture.feature("guard failures"), failed)


def _value(value: Callable[[str], object], source: str) -> str:
    """The value now, as text; "" where it is unknown."""
    if not source:
        return ""
    if source == GRAD_MODE:
        return "on" if torch.is_grad_enabled() else "off"
    try:
        found = value(source)
    except (
        LookupError,
        AttributeError,
        NameError,
        TypeError,
        ValueError,
    ) as error:  # there is no value now: the error says why
        return f"{type(error).__name__}: {error}"[:_MAX_CHARACTERS]
    return described(found)


def described(value: object) -> str:
    """A value as a short text. It calls no code of the program's: an object of the program's is shown by its type."""
    if value is None or type(value) in (bool, int, float, complex):
        return repr(value)
    if type(value) in (str, bytes):
        return _shortened(repr(value))
    if isinstance(value, type):
        return value.__qualname__
    if isinstance(value, torch.Tensor):
        return f"a tensor {str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, torch.dtype | torch.device | torch.Size):
        return str(value)
    if type(value) in (list, tuple, set, frozenset, dict):
        return _items(value)
    if isinstance(value, CodeType):
        return f"{value.co_qualname} (line {value.co_firstlineno})"
    if isinstance(value, FunctionType | BuiltinFunctionType):
        return value.__qualname__
    return f"a {type(value).__qualname__}"


def _items(value: object) -> str:
    assert isinstance(value, list | tuple | set | frozenset | dict)
    items = [described(item) for _, item in zip(range(_MAX_ITEMS), value, strict=False)]
    more = [f"… {len(value) - _MAX_ITEMS:,} more"] if len(value) > _MAX_ITEMS else []
    opened, closed = ("[", "]") if isinstance(value, list) else ("(", ")") if isinstance(value, tuple) else ("{", "}")
    return _shortened(opened + ", ".join(items + more) + closed)


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"
