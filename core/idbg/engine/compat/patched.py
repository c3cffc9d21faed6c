"""How does another function stand in for one of torch's while a run lasts?"""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from idbg.engine.compat.tracing import trace_log


@contextmanager
def patched(owner: Any, name: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """`owner.name` is what `around` makes of it, until the block is left. A static or class method stays one; where
    this torch has no such name, nothing is done.
    """
    original = vars(owner).get(name)
    if original is None:
        yield
        return
    kind = type(original) if isinstance(original, (staticmethod, classmethod)) else None
    made = around(original.__func__ if kind else original)
    setattr(owner, name, kind(made) if kind else made)
    try:
        yield
    finally:
        setattr(owner, name, original)


@contextmanager
def when_lowering(patches: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """`patches` is entered once Inductor is imported, which takes 0.8 s: not at all where nothing is lowered by it."""
    with ExitStack() as stack:
        tap = _Imported(lambda: stack.enter_context(patches()))
        tap.look()
        logger = trace_log()
        logger.addHandler(tap)
        try:
            yield
        finally:
            logger.removeHandler(tap)


class _Imported(logging.Handler):
    """Torch traces something between the import and whatever is to be patched: each of its phases."""

    def __init__(self, then: Callable[[], None]) -> None:
        super().__init__()
        self.then: Callable[[], None] | None = then

    def emit(self, record: logging.LogRecord) -> None:
        self.look()

    def look(self) -> None:
        """Call it, once, if Inductor is there."""
        module = sys.modules.get("torch._inductor.compile_fx")
        if self.then is not None and module is not None and not module.__spec__._initializing:  # type: ignore[union-attr]
            then, self.then = self.then, None
            then()
