"""What does one key do to a rule, or to one of its values, in an accelerator's TOML?"""

import tomllib
from typing import NamedTuple, get_args, get_origin

import msgspec

from idbg.accelerators import toml_text
from idbg.accelerators.toml_text import TomlPlace, places
from idbg.constraints import kinds
from idbg.schema.errors import AcceleratorError
from idbg.schema.graphs import DTYPES
from idbg.schema.violations import SEVERITIES

_OFF = "\nenabled = false"
_DIMS = ("all", "last", "last 2")
# small counts; every other number goes from one power of 2 to the next
_BY_ONE = {("rank", "max"), ("rank", "min"), ("leading_dims", "free"), ("constant_operand", "position")}


class TextEdit(NamedTuple):
    """Replace the characters `start` to `end` (exclusive) of the text."""

    start: int
    end: int
    text: str

    def of(self, text: str) -> str:
        """The text with the change made."""
        return text[: self.start] + self.text + text[self.end :]


def difference(before: str, after: str) -> TextEdit:
    """The smallest single change that makes one text of the other."""
    shorter = min(len(before), len(after))
    start = next((place for place in range(shorter) if before[place] != after[place]), shorter)
    same = next((back for back in range(shorter - start) if before[-1 - back] != after[-1 - back]), shorter - start)
    return TextEdit(start, len(before) - same, after[start : len(after) - same])


def step(text: str, line: int, *, up: bool) -> TextEdit | None:
    """The next (or previous) value of the key on this 1-based line; None where the line has no such value."""
    here = list(places(text))
    place = next((place for place in here if place.line == line and place.key), None)
    if place is None:
        return None
    spelled = text[place.start : place.end]
    try:
        value: object = tomllib.loads(f"v = {spelled}")["v"]
    except tomllib.TOMLDecodeError:
        return None
    new = stepped(_kind_around(text, here, place), place.key, value, up=up)
    return None if new == value else TextEdit(place.start, place.end, _respelled(spelled, new))


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


def choices(kind: str, key: str) -> tuple[str, ...]:
    """The strings that a key of a rule can be or hold; empty if any string will do."""
    if key == "severity":
        return SEVERITIES
    if (kind, key) == ("dtype", "allowed"):
        return tuple(DTYPES)
    if key == "dims":
        return _DIMS
    types = {field.name: field.type for field in msgspec.structs.fields(kinds()[kind])} if kind in kinds() else {}
    return _literals(types.get(key))


def _literals(annotation: object) -> tuple[str, ...]:
    """The strings that an annotation allows: those of Literal, and of a tuple of it."""
    inner = get_args(annotation)
    if get_origin(annotation) is tuple:
        return _literals(inner[0])
    return tuple(choice for choice in inner if isinstance(choice, str))


def _number(place: tuple[str, str], value: int, *, up: bool) -> int:
    if place in _BY_ONE:
        return value + 1 if up else max(value - 1, 0)
    if value < (0 if up else 2):
        return value
    return 1 << value.bit_length() if up else 1 << (value - 1).bit_length() - 1


def _respelled(before: str, value: object) -> str:
    """The value as TOML, in the manner of what stood there."""
    if "_" in before and isinstance(value, int):
        return f"{value:_}"
    return f"'{value}'" if before.startswith("'") else toml_text.spelled(value)


def _kind_around(text: str, here: list[TomlPlace], place: TomlPlace) -> str:
    """The kind of the rule that this key is of; "" outside of all rules."""
    table = (place.table, place.number)
    spelled = (text[other.start : other.end] for other in here if (*other[:2], other.key) == (*table, "kind"))
    return next(spelled, "").strip("\"'") if place.table == "rules" else ""


def toggle(text: str, line: int) -> TextEdit | None:
    """Switch the rule around this 1-based line off, or on again, which takes out the line that switched it off.

    None outside of all rules.
    """
    rule = _table_around(text, line)
    if not rule or rule[0].key or rule[0].table != "rules":
        return None
    enabled = next((place for place in rule if place.key == "enabled"), None)
    after = next((place for place in rule if place.key == "kind"), rule[0])
    end = text.find("\n", after.end)
    end = len(text) if end < 0 else end
    if text.startswith(_OFF, end) and text[end + len(_OFF) :][:1] in ("", "\n"):
        return TextEdit(end, end + len(_OFF), "")
    if enabled is not None:
        return TextEdit(enabled.start, enabled.end, "true" if text[enabled.start : enabled.end] == "false" else "false")
    return TextEdit(end, end, _OFF)


def without_rule(text: str, number: int) -> str:
    """The text without one rule, and without the comment that stands right above it."""
    rule = _rule(text, number)
    lines = text.split("\n")
    header = first = rule[0].line - 1
    while first and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    if first == 0:
        first = header  # what a file begins with is about the file
    end = text.count("\n", 0, rule[-1].end) + 1
    if end < len(lines) and not lines[end].strip():
        end += 1
    return "\n".join(lines[:first] + lines[end:])


def rule_text(text: str, number: int) -> str:
    """One rule as it stands in the text."""
    rule = _rule(text, number)
    start = text.rfind("\n", 0, rule[0].end) + 1
    return text[start : rule[-1].end]


def without_key(text: str, number: int, key: str) -> str:
    """The text without the lines of one key of a rule; as it is if the rule has no such key."""
    place = next((place for place in _rule(text, number) if place.key == key), None)
    if place is None:
        return text
    lines = text.split("\n")
    return "\n".join(lines[: place.line - 1] + lines[text.count("\n", 0, place.end) + 1 :])


def _rule(text: str, number: int) -> list[TomlPlace]:
    rule = [place for place in places(text) if (place.table, place.number) == ("rules", number)]
    if not rule:
        raise AcceleratorError("rules on one line cannot be edited by key", hint="write each under its own [[rules]]")
    return rule


def _table_around(text: str, line: int) -> list[TomlPlace]:
    """The header and the keys of the table that this line is in."""
    table: list[TomlPlace] = []
    for place in places(text):
        if not place.key and place.line > line:
            break
        table = [*table, place] if place.key else [place]
    return table
