"""Register how records are shown as HTML in a notebook: records themselves know no page."""

from collections.abc import Callable
from typing import TypeVar, cast

Record = TypeVar("Record")
Renderer = Callable[[object], str]

_renderers: dict[type, Renderer] = {}


def register(kind: type[Record], renderer: Callable[[Record], str]) -> None:
    """Render records of this kind, and of its subclasses, by this function, as HTML that can stand in any page."""
    _renderers[kind] = cast("Renderer", renderer)


def html_of(record: object) -> str | None:
    """The record as HTML; None where no renderer is registered: a notebook then shows its `repr`."""
    renderer = next((_renderers[kind] for kind in type(record).__mro__ if kind in _renderers), None)
    return renderer(record) if renderer is not None else None
