"""What a line of a compiler's text says of where it comes from."""

from typing import NamedTuple

Place = tuple[str, int]
"""A file and a line in it, 1-based."""


class Mark(NamedTuple):
    """Names that may be nodes', and places in the user's program: of each group of `places` the first known counts."""

    names: tuple[str, ...] = ()
    places: tuple[tuple[Place, ...], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.names or self.places)


NOWHERE = Mark()
Marks = dict[int, Mark]
"""The marks of a text's lines, 1-based."""


def joined(marks: "list[Mark]") -> Mark:
    """All that these say, each once."""
    if len(marks) == 1:
        return marks[0]
    names = dict.fromkeys(name for mark in marks for name in mark.names)
    places = dict.fromkeys(group for mark in marks for group in mark.places)
    return Mark(tuple(names), tuple(places))
