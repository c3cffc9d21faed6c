"""How does a record show itself in a notebook? Who knows how says so here: records know no page."""

from collections.abc import Callable
from typing import TypeVar, cast

Record = TypeVar("Record")
Draw = Callable[[object], str]

_draws: dict[type, Draw] = {}


def draw(kind: type[Record], by: Callable[[Record], str]) -> None:
    """Have records of this kind, and of those made of it, drawn by this, as HTML that can stand in any page."""
    _draws[kind] = cast("Draw", by)


def drawn(record: object) -> str | None:
    """The record as HTML; None where nobody has said how: a notebook then shows its `repr`."""
    by = next((_draws[kind] for kind in type(record).__mro__ if kind in _draws), None)
    return by(record) if by is not None else None
