"""Shorten an answer, and say what was left out."""

from collections.abc import Iterator

import msgspec

from idbg.format.glyphs import MARKS

LIMIT = 12_000
"""Characters of an answer's JSON at most: about 4,000 tokens."""
_LINE = 240  # characters
_NAME = 80  # characters of a key
_MAX_SENTENCES = 8  # of what was left out
_STEPS = ((200, 9000), (80, 4000), (40, 2000), (20, 800), (10, 400), (5, 200), (3, 100), (1, 60), (0, 30))
"""The items of a list or table, and the characters of a text, that stay: the first step that fits is used."""


def bounded(facts: dict[str, object], limit: int = LIMIT) -> tuple[dict[str, object], list[str]]:
    """The facts in at most `limit` characters of JSON, and a sentence for each place where something is left out."""
    left: list[str] = []
    for items, characters in _STEPS:
        left = []
        cut = _cut(facts, "", max(items, 40), items, characters, left)
        assert isinstance(cut, dict)
        if len(msgspec.json.encode(cut)) <= limit:
            return cut, _sentences(left)
    return {}, ["everything: it is too large for an answer"]


def _cut(value: object, path: str, keys: int, items: int, characters: int, left: list[str]) -> object:
    match value:
        case str() if len(value) > characters:
            left.append(f"{path or 'text'}: {characters:,} of {len(value):,} characters are shown")
            return value[:characters] + MARKS["ellipsis"]
        case dict():
            if len(value) > keys:
                left.append(f"{path or 'facts'}: {keys:,} of {len(value):,} are shown")
            some = list(value.items())[:keys]
            if any(len(key) > _NAME for key, _ in some):
                left.append(f"{path or 'facts'}: {_NAME} characters of a name are shown")
            named = ((key[:_NAME], each) for key, each in some)
            return {key: _cut(each, f"{path}.{key}".lstrip("."), items, items, characters, left) for key, each in named}
        case list():
            if len(value) > items:
                left.append(f"{path}: {items:,} of {len(value):,} are shown")
            return [_cut(each, f"{path}[]", max(items, 12), items, characters, left) for each in value[:items]]
        case _:
            return value


def _sentences(left: list[str]) -> list[str]:
    """Each sentence once: the items of a list often have the same."""
    once = list(dict.fromkeys(left))
    return once if len(once) <= _MAX_SENTENCES else [*once[:_MAX_SENTENCES], f"and {len(once) - _MAX_SENTENCES} more"]


def as_text(value: object, indent: str = "") -> Iterator[str]:
    """The facts as lines of text, without null and empty values."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _field(key, each, indent)
    elif isinstance(value, list):
        for each in value:
            if (short := _in_a_line(each)) is not None:
                yield f"{indent}- {short}"
                continue
            lines = list(as_text(each, f"{indent}  "))
            yield from (f"{indent}- {line.strip()}" if not at else line for at, line in enumerate(lines))
    elif isinstance(value, str) and "\n" in value:
        yield from (f"{indent}{line}" for line in value.splitlines())
    else:
        yield f"{indent}{_word(value)}"


def _field(key: str, value: object, indent: str) -> Iterator[str]:
    if value is None or value == "" or value == [] or value == {}:
        return
    if isinstance(value, list) and all(not isinstance(each, dict | list) for each in value):
        yield f"{indent}{key}: {', '.join(map(_word, value))}"
    elif isinstance(value, dict | list) or (isinstance(value, str) and "\n" in value):
        yield f"{indent}{key}:"
        yield from as_text(value, f"{indent}  ")
    else:
        yield f"{indent}{key}: {_word(value)}"


def _in_a_line(value: object) -> str | None:
    """A small table as "name relu_1, op call_function"; None where it needs more than a line."""
    if not isinstance(value, dict):
        return None
    pieces = []
    for key, each in value.items():
        if each is None or each == "" or each == []:
            continue
        if isinstance(each, list) and not any(isinstance(one, dict | list) for one in each):
            pieces.append(f"{key} {' '.join(map(_word, each))}")
        elif isinstance(each, dict | list):
            return None
        else:
            pieces.append(f"{key} {_word(each)}")
    line = ", ".join(pieces)
    return line if len(line) <= _LINE and "\n" not in line else None


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
