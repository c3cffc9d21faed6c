"""Step the value on one line of the text, or switch the rule around it off and on."""

import tomllib

from idbg.accelerators import toml_text
from idbg.accelerators.toml_text import TextEdit, TomlPlace, places
from idbg.accelerators.values import stepped

_OFF = "\nenabled = false"


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


def _table_around(text: str, line: int) -> list[TomlPlace]:
    """The header and the keys of the table that this line is in."""
    table: list[TomlPlace] = []
    for place in places(text):
        if not place.key and place.line > line:
            break
        table = [*table, place] if place.key else [place]
    return table
