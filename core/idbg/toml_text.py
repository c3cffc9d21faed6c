"""Where in a TOML text does each key stand, so that an error can name its line and an edit can leave the rest alone?"""

import math
import re
import tomllib
from collections.abc import Iterator
from typing import NamedTuple

_HEADER = re.compile(r"[ \t]*(\[\[?)[ \t]*([^\]\n]+?)[ \t]*\]")
_KEY = re.compile(r"[ \t]*([A-Za-z0-9_.\-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*=[ \t]*")
_TOKEN = re.compile(
    r"""
    \"{3}(?:\\.|[^\\])*?\"{3} | '{3}.*?'{3}        # strings over several lines
    | "(?:\\.|[^"\\\n])*" | '[^'\n]*'            # strings on one
    | \#[^\n]* | [\[{] | [\]}] | \n | [ \t\r]+ | [^\s"'\#\[\]{}]+
    """,
    re.DOTALL | re.VERBOSE,
)


class Place(NamedTuple):
    """A key (or, with key "", a table's header): its 1-based line, and for a key the span of its value in the text.

    `number` counts the tables of that name: 0 for the first `[[rules]]`, 1 for the second.
    """

    table: str
    number: int
    key: str
    line: int
    start: int
    end: int


class SyntaxErrorAt(NamedTuple):
    message: str
    line: int


def syntax_error(error: tomllib.TOMLDecodeError, text: str) -> SyntaxErrorAt:
    """What tomllib says is wrong, in words without its place, and the 1-based line of the place."""
    message, _, place = str(error).partition(" (at ")
    line = re.search(r"line (\d+)", place)
    last = text.rstrip("\n").count("\n") + 1
    return SyntaxErrorAt(message, min(int(line[1]), last) if line else last)


def places(text: str) -> Iterator[Place]:
    """Every header and key of a text that tomllib takes, in order; inline tables are one value."""
    table, seen, position, line = "", {"": 0}, 0, 1
    while position < len(text):
        after = text.find("\n", position) + 1 or len(text)
        if key := _KEY.match(text, position):
            end, after = _value_end(text, key.end())
            yield Place(table, seen[table], key[1].strip("\"'"), line, key.end(), end)
        elif header := _HEADER.match(text, position):
            table = header[2]
            seen[table] = seen.get(table, -1) + 1
            yield Place(table, seen[table], "", line, header.end(), header.end())
        line += text.count("\n", position, after)
        position = after


def find_line(text: str, table: str, number: int, key: str = "") -> int:
    """The line of a key; of its table's header if the key is not there; 0 if the table is not there either."""
    line = 0
    for place in places(text):
        if (place.table, place.number) == (table, number) and place.key in ("", key):
            line = place.line
            if place.key == key:
                return line
    return line


def spelled(value: object) -> str:
    """A value as TOML: strings, booleans, numbers (inf too) and lists of them. Raises TypeError for anything else."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value)
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda char: f"\\u{ord(char[0]):04x}", escaped) + '"'
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(spelled, value)) + "]"
    raise TypeError(f"TOML has no spelling for {type(value).__name__}")


def replaced(text: str, place: Place, value: str) -> str:
    """The text with another value at this place; a comment behind it stays in its column if it can."""
    head, tail = text[: place.start] + value, text[place.end :]
    gap = len(tail) - len(tail.lstrip(" "))
    if gap and tail[gap : gap + 1] == "#" and "\n" not in text[place.start : place.end]:
        gap = max(gap + place.end - place.start - len(value), 1)
    return head + " " * gap + tail.lstrip(" ")


def _value_end(text: str, start: int) -> tuple[int, int]:
    """Where the value that starts here ends, and where the next line starts."""
    depth, end = 0, start
    for token in _TOKEN.finditer(text, start):
        first = token[0][0]
        if first == "\n" and depth == 0:
            return end, token.end()
        depth += (token[0] in "[{") - (token[0] in "]}")
        if not (first in "# \t\r\n" and depth == 0):
            end = token.end()
    return end, len(text)
