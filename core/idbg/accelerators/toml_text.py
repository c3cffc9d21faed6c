"""Find the lines and spans of keys in a TOML text, for errors and edits."""

import math
import re
import tomllib
from collections.abc import Iterator
from typing import NamedTuple

_PART = r"(?:[A-Za-z0-9_\-]+|\"(?:\\.|[^\"\\\n])*\"|'[^'\n]*')"
_PATH = rf"[ \t]*({_PART}(?:[ \t]*\.[ \t]*{_PART})*)[ \t]*"
_HEADER = re.compile(rf"[ \t]*\[\[?{_PATH}\]")
_KEY = re.compile(rf"{_PATH}=[ \t]*")
_TOKEN = re.compile(
    r"""
    \"{3}(?:\\.|[^\\])*?\"{3,5} | '{3}.*?'{3,5}    # strings over several lines; two quotes may end their text
    | "(?:\\.|[^"\\\n])*" | '[^'\n]*'            # strings on one
    | \#[^\n]* | [\[{] | [\]}] | , | \n | [ \t\r]+ | [^\s"'\#\[\]{},]+
    """,
    re.DOTALL | re.VERBOSE,
)


class TomlPlace(NamedTuple):
    """A key (or, with key "", a table's header): its 1-based line, and for a key the span of its value in the text.

    `number` counts the tables of that name: 0 for the first `[[rules]]`, 1 for the second.
    """

    table: str
    number: int
    key: str
    line: int
    start: int
    end: int


class TextEdit(NamedTuple):
    """Replace the characters `start` to `end` (exclusive) of the text."""

    start: int
    end: int
    text: str

    def of(self, text: str) -> str:
        """The text with the edit made."""
        return text[: self.start] + self.text + text[self.end :]


class SyntaxErrorAt(NamedTuple):
    """What is wrong in words without a place, and the 1-based line of it."""

    message: str
    line: int


def syntax_error(error: ValueError, text: str) -> SyntaxErrorAt:
    """What tomllib says is wrong, in words without its place, and the 1-based line of the place."""
    if not isinstance(error, tomllib.TOMLDecodeError):  # Python's own, of a number that it does not read
        digits = max(re.finditer(r"[0-9_]+", text), key=lambda number: len(number[0]))
        message = f"a number is too long: it has {sum(map(str.isdigit, digits[0])):,} digits"
        return SyntaxErrorAt(message, text.count("\n", 0, digits.start()) + 1)
    message, _, place = str(error).partition(" (at ")
    line = re.search(r"line (\d+)", place)
    last = text.rstrip("\n").count("\n") + 1
    return SyntaxErrorAt(message, min(int(line[1]), last) if line else last)


def places(text: str) -> Iterator[TomlPlace]:
    """Every header and key of a text that tomllib takes, in order; inline tables are one value."""
    table, seen, position, line = "", {"": 0}, 0, 1
    while position < len(text):
        after = text.find("\n", position) + 1 or len(text)
        if key := _KEY.match(text, position):
            end, after = _value_end(text, key.end())
            yield TomlPlace(table, seen[table], _name(key[1]), line, key.end(), end)
        elif header := _HEADER.match(text, position):
            table = _name(header[1])
            seen[table] = seen.get(table, -1) + 1
            yield TomlPlace(table, seen[table], "", line, header.end(), header.end())
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


def replaced(text: str, place: TomlPlace, value: str) -> str:
    """The text with another value at this place; a comment behind it stays in its column if it can."""
    head, tail = text[: place.start] + value, text[place.end :]
    gap = len(tail) - len(tail.lstrip(" "))
    if gap and tail[gap : gap + 1] == "#" and "\n" not in text[place.start : place.end]:
        gap = max(gap + place.end - place.start - len(value), 1)
    return head + " " * gap + tail.lstrip(" ")


def difference(before: str, after: str) -> TextEdit:
    """The smallest single edit that makes one text of the other."""
    shorter = min(len(before), len(after))
    start = next((place for place in range(shorter) if before[place] != after[place]), shorter)
    same = next((back for back in range(shorter - start) if before[-1 - back] != after[-1 - back]), shorter - start)
    return TextEdit(start, len(before) - same, after[start : len(after) - same])


def tokens(spelled: str) -> list[str]:
    """The strings, comments, brackets, commas, blanks and line ends of a value: joined they are the value."""
    return [token[0] for token in _TOKEN.finditer(spelled)]


def _name(spelled: str) -> str:
    """A key or a header without its quotes and escapes."""
    if '"' not in spelled and "'" not in spelled:
        return re.sub(r"[ \t]", "", spelled)
    parts: list[str] = []
    table: object = tomllib.loads(f"{spelled} = 0")
    while isinstance(table, dict):
        ((part, table),) = table.items()
        parts.append(part)
    return ".".join(parts)


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
