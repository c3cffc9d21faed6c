"""What does one key do to the rule, or the value, on a line of an accelerator's TOML?"""

from typing import NamedTuple

from idbg.records import SEVERITIES
from idbg.toml_text import Place, places

_OFF = "\nenabled = false"


class Change(NamedTuple):
    """Replace the characters `start` to `end` (exclusive) of the text."""

    start: int
    end: int
    text: str


def step(text: str, line: int, *, up: bool) -> Change | None:
    """The next (or previous) value of the key on this 1-based line; None where the line has no such value.

    A number is doubled or halved, a severity goes up or down its list, true becomes false.
    """
    place = next((place for place in places(text) if place.line == line and place.key), None)
    if place is None:
        return None
    value = text[place.start : place.end]
    new = _stepped(place.key, value, up=up)
    return Change(place.start, place.end, new) if new not in ("", value) else None


def toggle(text: str, line: int) -> Change | None:
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
        return Change(end, end + len(_OFF), "")
    if enabled is not None:
        return Change(enabled.start, enabled.end, _other(text[enabled.start : enabled.end]))
    return Change(end, end, _OFF)


def _table_around(text: str, line: int) -> list[Place]:
    """The header and the keys of the table that this line is in."""
    table: list[Place] = []
    for place in places(text):
        if not place.key and place.line > line:
            break
        table = [*table, place] if place.key else [place]
    return table


def _stepped(key: str, value: str, *, up: bool) -> str:
    if value in ("true", "false"):
        return _other(value)
    if key == "severity" and value.strip("\"'") in SEVERITIES:
        names: list[str] = [*SEVERITIES]
        index = names.index(value.strip("\"'")) + (-1 if up else 1)
        return f'"{names[index]}"' if 0 <= index < len(names) else value
    digits = value.replace("_", "")
    if not digits.isdigit():
        return ""
    number = int(digits)
    new = max(number * 2, 1) if up else number // 2 or min(number, 1)
    return f"{new:_}" if "_" in value else str(new)


def _other(value: str) -> str:
    return "true" if value == "false" else "false"
