"""The values that a key of a rule can hold: the next one, and those typed by hand."""

import tomllib
from typing import get_args, get_origin

import msgspec

from idbg.accelerators import toml_text
from idbg.accelerators.tables import literal_choices
from idbg.constraints import Constraint, kinds
from idbg.schema.graphs import DTYPES
from idbg.schema.violations import SEVERITIES

_DIMS = ("all", "last", "last 2")
# small counts; every other number goes from one power of 2 to the next
_BY_ONE = {("rank", "max"), ("rank", "min"), ("leading_dims", "free"), ("constant_operand", "position")}


def choices(kind: str, key: str) -> tuple[str, ...]:
    """The strings that a key of a rule can be or hold; empty if any string will do."""
    if key == "severity":
        return SEVERITIES
    if (kind, key) == ("dtype", "allowed"):
        return tuple(DTYPES)
    if key == "dims":
        return _DIMS
    types = {field.name: field.type for field in msgspec.structs.fields(kinds()[kind])} if kind in kinds() else {}
    return tuple(literal_choices(types.get(key)))


def options(rule: Constraint, key: str) -> tuple[str, ...]:
    """What the list of a key can hold; empty if it is no list, or one that holds anything."""
    return choices(rule.kind, key) if _is_list(rule, key) else ()


def has_globs(rule: Constraint, key: str) -> bool:
    """Whether the key's value is a list of any names, which are typed with commas between them."""
    return _is_list(rule, key) and not options(rule, key)


def stepped(kind: str, key: str, value: object, *, up: bool) -> object:
    """The next (or previous) value of one key; the same where there is no next one.

    A number goes to the next power of 2, a rank by 1; a severity up or down its list, another choice around its own.
    """
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return _number((kind, key), value, up=up)
    known = choices(kind, key)
    if not isinstance(value, str) or value not in known:
        return value
    if key == "severity":
        return known[max(0, min(known.index(value) + (-1 if up else 1), len(known) - 1))]
    return known[(known.index(value) + (1 if up else -1)) % len(known)]


def spelled(rule: Constraint, key: str) -> str:
    """The key's value as a user would type it."""
    value = getattr(rule, key)
    if has_globs(rule, key):
        return ", ".join(map(str, value or ()))
    return "" if value is None else value if isinstance(value, str) else toml_text.spelled(value)


def typed(rule: Constraint, key: str, text: str) -> object:
    """The value that a user means who typed this for a key; None for nothing, which takes the key out."""
    types = {field.name: field.type for field in msgspec.structs.fields(rule)}
    text = text.strip()
    if types[key] is str:
        return text
    if not text:
        return None
    listed = has_globs(rule, key) and not text.startswith("[")
    try:
        value: object = tomllib.loads(f"v = [{text}]" if listed else f"v = {text}")["v"]
    except (ValueError, RecursionError):
        return [name for part in text.split(",") if (name := part.strip(" \"'"))] if listed else text
    return value


def _is_list(rule: Constraint, key: str) -> bool:
    annotation = next((field.type for field in msgspec.structs.fields(rule) if field.name == key), None)
    return any(get_origin(part) is tuple for part in (annotation, *get_args(annotation))) and key != "dims"


def _number(place: tuple[str, str], value: int, *, up: bool) -> int:
    if place in _BY_ONE:
        return value + 1 if up else max(value - 1, 0)
    if value < (0 if up else 2):
        return value
    return 1 << value.bit_length() if up else 1 << (value - 1).bit_length() - 1
