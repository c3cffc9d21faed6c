"""Declare how a record is written in a report: which of its attributes, under which keys, beside what is computed."""

from collections.abc import Callable
from functools import cache, cached_property
from inspect import getattr_static
from operator import attrgetter
from typing import ClassVar, TypeVar, get_type_hints

import msgspec

from idbg.schema.strict_json import like


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A record as it is written. Its body has the keys that are computed; `@keys_of` declares the others."""

    paths: ClassVar[dict[str, str]] = {}
    """Key -> attributes of the source, of those that are called otherwise there."""


_Written = TypeVar("_Written", bound=Written)


def keys_of(source: type, keys: str) -> Callable[[type[_Written]], type[_Written]]:
    """Gives the class these keys, in this order: "key" is the class's own or an attribute of `source`, whose type it
    has, and "key=some.attribute" is elsewhere in `source`. The class's own keys have no defaults.
    """

    def declare(kind: type[_Written]) -> type[_Written]:
        own: dict[str, object] = kind.__annotations__
        paths = {key: path or key for key, _, path in (each.partition("=") for each in keys.split())}
        types = {key: own[key] if key in own else _type_of(source, path) for key, path in paths.items()} | own
        renamed = {key: path for key, path in paths.items() if key not in own and key != path}
        body = {"__doc__": kind.__doc__, "paths": kind.paths | renamed}
        return msgspec.defstruct(  # type: ignore[return-value]
            kind.__name__, types.items(), bases=kind.__bases__, namespace=body, module=kind.__module__, kw_only=True
        )

    return declare


def written(kind: type[_Written], source: object, /, **computed: object) -> _Written:
    """The source as this kind has it, with what is computed."""
    renamed = {key: attrgetter(path)(source) for key, path in kind.paths.items() if key not in computed}
    return like(kind, source, **renamed, **computed)


def _type_of(source: object, path: str) -> object:
    for name in path.split("."):
        held = getattr_static(source, name, None)
        if isinstance(held, property | cached_property):
            getter = held.fget if isinstance(held, property) else held.func
            source = get_type_hints(getter, include_extras=True)["return"]
        else:
            source = _hints(source)[name]
    return source


_hints = cache(lambda source: get_type_hints(source, include_extras=True))
