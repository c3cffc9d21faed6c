"""Which extensions have other packages installed, and which of them do not work?"""

from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

from idbg.errors import said


class Loaded:
    """What a group's entry points hold, and for those that failed to import, the error in words."""

    def __init__(self, points: tuple[EntryPoint, ...]) -> None:
        self.found: dict[str, object] = {}
        self.broken: dict[str, str] = {}
        for point in points:
            try:
                self.found[point.name] = point.load()
            # Broad on purpose: a plug-in is code of others, and any failure of it must stop nothing else.
            except (Exception, SystemExit) as error:
                self.broken[point.name] = f"{type(error).__name__}: {said(error)}"


@lru_cache(maxsize=8)
def load(group: str) -> Loaded:
    """Every entry point of this group ("idbg.constraints", "idbg.accelerators", ...), imported once."""
    return Loaded(tuple(entry_points(group=group)))


@lru_cache(maxsize=8)
def names(group: str) -> tuple[str, ...]:
    """The names in this group; imports none of them."""
    return tuple(point.name for point in entry_points(group=group))
