"""How is one rule of an accelerator's text changed, so that all else in it stays as it is, comments too?

Rules are named by their number: 0 is the first `[[rules]]` table. The text must be valid TOML.
"""

import re
import tomllib

import msgspec

from idbg import toml_text
from idbg.constraints import Constraint
from idbg.errors import AcceleratorError
from idbg.toml_text import Place


def count(text: str) -> int:
    """How many rules the text has."""
    return len(tomllib.loads(text).get("rules", []))


def set_key(text: str, number: int, key: str, value: object) -> str:
    """The text with one key of a rule set; one that is not there is added. A list keeps the lines that stay."""
    places = _places(text, number)
    place = next((place for place in places if place.key == key), None)
    if place is not None:
        return _replaced(text, place, value)
    after = next(place.end for place in places if place.key in ("kind", ""))
    after = max([place.end for place in places if place.key == "kind"], default=after)
    end = text.find("\n", after)
    head, tail = (text, "") if end < 0 else (text[:end], text[end:])
    return f"{head}\n{key} = {toml_text.spelled(value)}{tail}"


def add_rule(text: str, kind: str, key: str, value: object) -> str:
    """The text with a rule more at its end."""
    gap = "\n" if text.strip() else ""
    return f'{text.rstrip()}\n{gap}[[rules]]\nkind = "{kind}"\n{key} = {toml_text.spelled(value)}\n'.lstrip("\n")


def apply(text: str, number: int, before: Constraint, after: Constraint) -> str:
    """The text with every key set in which the rule `after` differs from `before`."""
    for field in msgspec.structs.fields(after):
        value = getattr(after, field.name)
        if value != getattr(before, field.name) and value is not None:
            text = set_key(text, number, field.name, value)
    return text


def _places(text: str, number: int) -> list[Place]:
    places = [place for place in toml_text.places(text) if (place.table, place.number) == ("rules", number)]
    if not places:
        raise AcceleratorError("rules on one line cannot be edited by key", hint="write each under its own [[rules]]")
    return places


def _replaced(text: str, place: Place, value: object) -> str:
    old = text[place.start : place.end]
    if isinstance(value, list | tuple) and old.startswith("["):
        items = tomllib.loads(f"v = {old}")["v"]
        if all(isinstance(item, str) for item in (*items, *value)):
            return text[: place.start] + _relisted(old, items, list(value)) + text[place.end :]
    return toml_text.replaced(text, place, toml_text.spelled(value))


def _relisted(spelled: str, items: list[str], wanted: list[str]) -> str:
    """A list of strings with items taken out, and others added at its end, where they stand."""
    for item in items:
        if item not in wanted:
            quoted = f"(?:{re.escape(toml_text.spelled(item))}|'{re.escape(item)}')"
            spelled, done = re.subn(rf"{quoted}[ \t]*,?[ \t]*", "", spelled, count=1)
            if not done:
                return toml_text.spelled(wanted)
    more = [item for item in wanted if item not in items]
    return _lengthened(spelled, toml_text.spelled(more)[1:-1]) if more else spelled


def _lengthened(spelled: str, more: str) -> str:
    """A list with items added at its end: on a line of their own if the list has several."""
    body = spelled[:-1].rstrip()
    lines = "\n" in spelled[len(body) :]
    last = max((found.end() for found in _ITEM.finditer(body) if found[0][0] != "#"), default=0)
    if last and "," not in re.sub(r"#[^\n]*", "", body[last:]):
        body = body[:last] + "," + body[last:]
    if lines:
        return f"{body}\n    {more},\n]"
    return f"{body}{' ' if last else ''}{more}]"


_ITEM = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'[^'\n]*'|#[^\n]*")
