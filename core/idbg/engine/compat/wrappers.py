"""When does code that Inductor wrote come into this process, and from which line of the user's is each of its lines?

Run on torch 2.14.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


@contextmanager
def loaded(told: Callable[[ModuleType], None]) -> Iterator[None]:
    """Tell of each module of Python that Inductor loads, of its caches too, before anything of it is called."""
    from torch._inductor.codecache import PyCodeCache

    original = PyCodeCache.__dict__["load_by_key_path"]

    def load_by_key_path(cls: type[PyCodeCache], *args: Any, **kwargs: Any) -> ModuleType:
        module: ModuleType = original.__func__(cls, *args, **kwargs)
        told(module)
        return module

    PyCodeCache.load_by_key_path = classmethod(load_by_key_path)  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        PyCodeCache.load_by_key_path = original  # type: ignore[method-assign]


def users_line(wrapper: str, line: int) -> tuple[str, int]:
    """The user's file and line that a 1-based line of a wrapper comes from; ("", 0) where torch does not know."""
    from torch._inductor.codecache import PyCodeCache

    frames = PyCodeCache.stack_frames_for_code(wrapper, line)
    return (str(frames[-1]["filename"]), int(frames[-1]["line"])) if frames else ("", 0)
