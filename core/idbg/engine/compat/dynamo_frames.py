"""Where does Dynamo decide what becomes of a Python frame, and what is asked of it there?

Run on torch 2.11 and 2.14. Torch's functions are stood in for while a run lasts; what they give is what they gave.
"""

import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import torch._dynamo.config
import torch._dynamo.convert_frame

convert_frame: Any = torch._dynamo.convert_frame

_SKIPFILE = "frame is in the Dynamo skipfiles list"
_NO_TENSOR = "no tensor-related objects found in frame"
_NOT_TOLD = ""  # by versions that say nothing of it
_MOST_CALLERS = 1000


@contextmanager
def replaced(owner: Any, name: str, new: object) -> Iterator[None]:
    """While it lasts, `owner.name` is `new`."""
    original = getattr(owner, name)
    setattr(owner, name, new)
    try:
        yield
    finally:
        setattr(owner, name, original)


@contextmanager
def made_heard(hear: Callable[[CodeType, CodeType], None]) -> Iterator[None]:
    """Tell each code that Dynamo compiled, and the code that it made of it."""

    def made(code: CodeType, new_code: CodeType) -> None:
        hear(code, new_code)

    handle = convert_frame.register_bytecode_hook(made)
    try:
        yield
    finally:
        handle.remove()


def caller(compiled: Mapping[int, str]) -> str:
    """What `compiled` has for the innermost code, by its id, that is running below a compile; "" for none."""
    frame: FrameType | None = sys._getframe()
    for _ in range(_MOST_CALLERS):
        if frame is None:
            break
        if name := compiled.get(id(frame.f_code)):
            return name
        frame = frame.f_back
    return ""


@contextmanager
def skips_heard(hear: Callable[[CodeType, str], None]) -> Iterator[None]:
    """Tell each code that Dynamo was asked for and left as it is, and why."""
    handles = hasattr(convert_frame.CatchErrorsWrapper, "_handle_skip")
    with _skips_handled(hear) if handles else _skips_returned(hear):
        yield


@contextmanager
def _skips_handled(hear: Callable[[CodeType, str], None]) -> Iterator[None]:
    original = convert_frame.CatchErrorsWrapper._handle_skip

    @functools.wraps(original)
    def handle(self: Any, result: Any, frame: Any) -> object:
        if result.skip_reason is not None and result.guarded_code is None:
            hear(frame.f_code, result.skip_reason)
        return original(self, result, frame)

    with replaced(convert_frame.CatchErrorsWrapper, "_handle_skip", handle):
        yield


@contextmanager
def _skips_returned(hear: Callable[[CodeType, str], None]) -> Iterator[None]:
    """Of a version that says nothing but that there is no code."""
    original = convert_frame.CatchErrorsWrapper.__call__

    def call(self: Any, frame: Any, *args: Any) -> object:
        result: Any = original(self, frame, *args)
        if result.guarded_code is None and result.apply_to_code:
            hear(frame.f_code, _why_left(frame))
        return result

    # torch looks for who called it above all frames of this file
    call.__code__ = call.__code__.replace(co_filename=str(convert_frame.__file__))
    with replaced(convert_frame.CatchErrorsWrapper, "__call__", call):
        yield


def _why_left(frame: Any) -> str:
    if convert_frame.trace_rules.check(frame.f_code):
        return _SKIPFILE
    return _NOT_TOLD if convert_frame.has_tensor_in_frame(frame) else _NO_TENSOR


@contextmanager
def suppressed_heard(hear: Callable[[BaseException, CodeType], None]) -> Iterator[None]:
    """Tell each error for which torch runs a frame in eager."""
    original = convert_frame.format_error_msg

    @functools.wraps(original)
    def said(error: Any, code: CodeType, *args: Any, **kwargs: Any) -> str:
        hear(error, code)
        return str(original(error, code, *args, **kwargs))

    with replaced(convert_frame, "format_error_msg", said):
        yield


def limits() -> tuple[int, int]:
    """How often a frame may be compiled: for alike objects, and in all."""
    config = torch._dynamo.config
    return config.recompile_limit, config.accumulated_recompile_limit


def makes_dynamic() -> bool:
    """Whether what changed between calls is compiled as dynamic now: not with `dynamic=False`."""
    return bool(torch._dynamo.config.automatic_dynamic_shapes)


def suppresses_errors() -> bool:
    """Whether torch runs a frame in eager that does not compile."""
    return bool(torch._dynamo.config.suppress_errors)
