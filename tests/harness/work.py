"""Count the work that code does, where a duration would depend on how busy the machine is."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")


def lines_run(do: Callable[[], Result]) -> tuple[Result, int]:
    """What `do` returns, and how many lines of Python it ran: of a loop each turn counts, of C nothing does."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        result = do()
    finally:
        sys.settrace(before)
    return result, count
