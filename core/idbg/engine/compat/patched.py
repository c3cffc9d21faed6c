"""How does another function stand in for one of torch's while a run lasts?"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def patched(owner: Any, name: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """`owner.name` is what `around` makes of it, until the block is left. A static method stays one; where this torch
    has no such name, nothing is done.
    """
    original = vars(owner).get(name)
    if original is None:
        yield
        return
    made = around(original.__func__ if isinstance(original, staticmethod) else original)
    setattr(owner, name, staticmethod(made) if isinstance(original, staticmethod) else made)
    try:
        yield
    finally:
        setattr(owner, name, original)
