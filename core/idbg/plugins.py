"""Load the extensions that other packages install, list those that fail to import, and call them with a time limit."""

import threading
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

from idbg.schema.errors import typed_text

Result = TypeVar("Result")


class Loaded:
    """What a group's entry points hold, and for those that failed to import, the error in words."""

    def __init__(self, points: "tuple[EntryPoint, ...]") -> None:
        self.values: dict[str, object] = {}
        self.broken: dict[str, str] = {}
        for point in points:
            try:
                self.values[point.name] = point.load()
            # Broad on purpose: a plug-in is code of others, and any failure of it must stop nothing else.
            except (Exception, SystemExit) as error:
                self.broken[point.name] = typed_text(error)


@lru_cache(maxsize=8)
def load(group: str) -> Loaded:
    """Every entry point of this group ("idbg.constraints", "idbg.accelerators", ...), imported once."""
    return Loaded(points(group))


@lru_cache(maxsize=8)
def names(group: str) -> tuple[str, ...]:
    """The names in this group; imports none of them."""
    return tuple(point.name for point in points(group))


def points(group: str) -> "tuple[EntryPoint, ...]":
    """What is installed in this group, nothing of it imported."""
    # not before it is needed: importing this, and reading a hundred packages' metadata, takes 0.02 s
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


class NoAnswer(TimeoutError):
    """A plug-in takes too long."""


def within(seconds: float, function: Callable[[], Result]) -> Result:
    """What a plug-in's function returns. Raises what it raises, and NoAnswer if it takes longer: its thread is then
    left behind.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            results.append(function())
        # Broad on purpose: it is raised again in the thread that waits.
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call, name="plug-in", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise NoAnswer(f"no answer within {seconds:g} s")
    return results[0]
