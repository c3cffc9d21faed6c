"""Decode a table of a rules file into its struct, with errors that name the line.

A table's `line` gives the 1-based line of one of its keys, and of its header for the key "".
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeVar, get_args, get_origin

import msgspec

from idbg.constraints import BadValue
from idbg.format.spelling import did_you_mean
from idbg.schema.errors import AcceleratorError

LARGEST_NUMBER = 2**63 - 1  # sizes are 64-bit numbers

_TYPES = {
    "array": "a list",
    "str": "a string",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "null": "None",
}

_Table = TypeVar("_Table", bound=msgspec.Struct)


def decoded(table: dict[str, object], kind: type[_Table], what: str, line: Callable[[str], int]) -> _Table:
    """The struct that a table of the file stands for. `what` names the table, `line` tells where a key of it is."""
    known = [field.name for field in msgspec.structs.fields(kind)]
    if tag := kind.__struct_config__.tag_field:
        known.insert(0, tag)
    for key in table:
        if key not in known:
            raise unknown(f'{what} has no key "{key}"', key, known, line(key))
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, BadValue):
            bad = error.__cause__
            raise AcceleratorError(bad.message, hint=bad.hint, line=line(bad.key)) from None
        raise wrong_type(error, kind, what, line) from None


def check_values(table: Mapping[str, object], line: Callable[[str], int]) -> None:
    """Refuse what no rule takes: characters that no terminal shows as they are, and numbers past 64 bits."""
    for key, value in table.items():
        for item in (key, *(value if isinstance(value, list) else (value,))):
            if isinstance(item, int) and abs(item) > LARGEST_NUMBER:
                inf = ", or inf for no limit" if key == "max_bytes" else ""
                raise AcceleratorError(
                    f"{key} is too large", hint=f"it can be {LARGEST_NUMBER:,} at most{inf}", line=line(key)
                )
            if isinstance(item, str) and (character := _hidden(item, "\n" if key == "description" else "")):
                named = f"the character U+{ord(character):04X} ({unicodedata.name(character, 'control')})"
                where = "a key" if item is key else key
                raise AcceleratorError(f"{where} holds {named}, which is not shown", hint="take it out", line=line(key))


def _hidden(text: str, allowed: str) -> str:
    """The first character that is no text: codes for terminals, directions of writing, line ends; "" if none is."""
    hidden = ("Cc", "Cf", "Zl", "Zp")
    return next((each for each in text if unicodedata.category(each) in hidden and each not in allowed), "")


def wrong_type(
    error: msgspec.ValidationError, kind: type[msgspec.Struct], what: str, line: Callable[[str], int]
) -> AcceleratorError:
    """msgspec's error ("Expected `int`, got `str` - at `$.multiple`") in the file's words."""
    text = str(error)
    if missing := re.search(r"required field `(\w+)`", text):
        message = f'{what} needs "{missing[1]}"'
        return AcceleratorError(message, hint=f"add {missing[1]} = ...", line=line("kind"))
    place = re.search(r"`\$\.(\w+)(\[)?", text)
    key, inside = (place[1], bool(place[2])) if place else ("", False)
    given = f"{key} {'holds' if inside else 'is'}"
    choices = literal_choices({field.name: field.type for field in msgspec.structs.fields(kind)}.get(key))
    if invalid := re.search(r"Invalid enum value '(.*)' - at", text):
        return unknown(f'{given} "{invalid[1]}"', invalid[1], choices, line(key))
    types = re.search(r"Expected `(.+?)`.*?, got `(.+?)`", text)
    if types is None:
        return AcceleratorError(text, hint=f"look at {key}", line=line(key))
    if (types[1].removesuffix(" | null"), types[2]) == ("int", "float"):
        must = f"{key} must {'hold whole numbers' if inside else 'be a whole number'}"
        return AcceleratorError(must, hint="write 8, not 8.0", line=line(key))
    quoted = " or ".join(f'"{choice}"' for choice in choices)
    wanted = [
        quoted if name == "str" and choices else _TYPES.get(name, name)
        for name in types[1].split(" | ")
        if name != "null"  # TOML has none: the key is left out
    ]
    hint = f"it must {'hold' if inside else 'be'} {' or '.join(wanted)}"
    return AcceleratorError(f"{given} {_TYPES.get(types[2], types[2])}", hint=hint, line=line(key))


def literal_choices(annotation: object) -> list[str]:
    """The strings that an annotation allows, however deep its Literal is."""
    if get_origin(annotation) is Literal:
        return [choice for choice in get_args(annotation) if isinstance(choice, str)]
    return [choice for inner in get_args(annotation) for choice in literal_choices(inner)]


def unknown(message: str, given: str, known: Sequence[str], line: int) -> AcceleratorError:
    """The error of a word that is none of those known: it names the nearest, or all."""
    return AcceleratorError(message, hint=did_you_mean(given, known, f"there are: {', '.join(known)}"), line=line)
