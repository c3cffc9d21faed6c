"""Load the extensions that other packages install, and list those that fail to import."""

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

from idbg.schema.errors import exception_text


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
                self.broken[point.name] = f"{type(error).__name__}: {exception_text(error)}"


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
