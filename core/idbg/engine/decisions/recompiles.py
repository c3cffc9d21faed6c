"""Why did each compiled version of a frame not fit a call: which guard, what did it expect, and what was there?"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, CodeType, FunctionType

import torch
from msgspec.structs import replace

from idbg.analysis.decisions.guard_text import GRAD_MODE, read_failed
from idbg.engine.capture.run import RunCapture
from idbg.engine.compat import tracing
from idbg.engine.compat.guard_failures import GuardFailure, guard_failures_heard
from idbg.engine.decisions.hearing import harmless

MOST_VERSIONS = 64  # of one frame whose failed guards are told; torch compiles one 8 times, if it is not asked for more
_MOST_ITEMS = 8
_MOST_CHARACTERS = 100


@contextmanager
def heard(capture: RunCapture) -> Iterator[None]:
    """While it lasts, what each failed guard found is kept for the recompile that follows."""

    def failed(failure: GuardFailure) -> None:
        known = capture.failed_guards.setdefault(tracing.current_frame(), [])
        if len(known) < MOST_VERSIONS:
            read = read_failed(failure.text)
            actual = read.failed.actual or _value(failure.value, read.ask)
            expected = read.failed.expected or ("off" if actual == "on" else "on" if actual == "off" else "")
            against = capture.named(failure.against)
            known.append(replace(read.failed, against=against, expected=expected, actual=actual))

    with guard_failures_heard(harmless(capture, "the reasons of recompiles")(failed)):
        yield


def _value(value: Callable[[str], object], ask: str) -> str:
    """What is there now, in words; "" where it cannot be known."""
    if not ask:
        return ""
    if ask == GRAD_MODE:
        return "on" if torch.is_grad_enabled() else "off"
    try:
        found = value(ask)
    except (LookupError, AttributeError, NameError, TypeError, ValueError) as error:  # there is none now: why, tells it
        return f"{type(error).__name__}: {error}"[:_MOST_CHARACTERS]
    return said(found)


def said(value: object) -> str:
    """A value in few words. No code of the program's is called for it: an object of its own is told by its type."""
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
    items = [said(item) for _, item in zip(range(_MOST_ITEMS), value, strict=False)]
    more = [f"… {len(value) - _MOST_ITEMS:,} more"] if len(value) > _MOST_ITEMS else []
    opened, closed = ("[", "]") if isinstance(value, list) else ("(", ")") if isinstance(value, tuple) else ("{", "}")
    return _shortened(opened + ", ".join(items + more) + closed)


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"
