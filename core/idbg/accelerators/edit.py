"""How is one rule of an accelerator's text changed, so that all else in it stays as it is, comments too?

Rules are named by their number: 0 is the first `[[rules]]` table. The text must be valid TOML. Every edit is read back:
where it would say anything but what was asked for, AcceleratorError is raised.
"""

import tomllib
from collections.abc import Callable

import msgspec

from idbg.accelerators import toml_text
from idbg.accelerators.toml_text import TomlPlace
from idbg.constraints import Constraint
from idbg.schema.errors import AcceleratorError

_Edit = Callable[[str, TomlPlace, object], str]


def count(text: str) -> int:
    """How many rules the text has."""
    return len(tomllib.loads(text).get("rules", []))


def set_key(text: str, number: int, key: str, value: object) -> str:
    """The text with one key of a rule set; one that is not there is added. A list keeps the lines that stay."""
    places = _places(text, number)
    place = next((place for place in places if place.key == key), None)
    header, *keys = places
    edits: list[_Edit] = [_with_items, _with_value]
    if place is None:
        place, edits = next((place for place in keys if place.key == "kind"), header), [_with_line(key)]
    wanted = _meaning(text)
    wanted["rules"][number][key] = _plain(value)
    for edit in edits:
        edited = edit(text, place, value)
        if _says(edited, wanted):
            return edited
    raise AcceleratorError(
        f'the key "{key}" of this rule is written in a way that cannot be edited here',
        hint="change it in the text of the file",
        line=place.line,
    )


def add_rule(text: str, kind: str, key: str, value: object) -> str:
    """The text with a rule more at its end."""
    head = f"{text.rstrip()}\n\n" if text.strip() else ""
    edited = f"{head}[[rules]]\nkind = {toml_text.spelled(kind)}\n{key} = {toml_text.spelled(value)}\n"
    wanted = _meaning(text)
    wanted["rules"] = [*wanted.get("rules", []), {"kind": kind, key: _plain(value)}]
    if not _says(edited, wanted):
        raise _on_one_line()
    return edited


def set_first(text: str, kind: str, key: str, value: object) -> str:
    """The text with one key of the first rule of this kind set; all else, comments too, stays as it is.

    A key that is not there is added to the rule, a rule that is not there to the end. The text must be valid TOML.
    """
    index = next(
        (number for number, rule in enumerate(tomllib.loads(text).get("rules", [])) if rule.get("kind") == kind), None
    )
    if index is None:
        return add_rule(text, kind, key, value)
    return set_key(text, index, key, value)


def apply(text: str, number: int, before: Constraint, after: Constraint) -> str:
    """The text with every key set in which the rule `after` differs from `before`."""
    for field in msgspec.structs.fields(after):
        value = getattr(after, field.name)
        if value != getattr(before, field.name) and value is not None:
            text = set_key(text, number, field.name, value)
    return text


def _places(text: str, number: int) -> list[TomlPlace]:
    """The header of a rule, then its keys."""
    places = [place for place in toml_text.places(text) if (place.table, place.number) == ("rules", number)]
    if not places:
        raise _on_one_line()
    return places


def _on_one_line() -> AcceleratorError:
    return AcceleratorError("rules on one line cannot be edited by key", hint="write each under its own [[rules]]")


def _meaning(text: str) -> dict[str, list[dict[str, object]]]:
    """What a text says; numbers with a point are spelled, so that 8.0 is not 8, and nan is nan."""
    return tomllib.loads(text, parse_float=lambda number: repr(float(number)))


def _plain(value: object) -> object:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return repr(value) if isinstance(value, float) else value


def _says(text: str, wanted: object) -> bool:
    try:
        return _meaning(text) == wanted
    except ValueError:
        return False


def _with_line(key: str) -> _Edit:
    def edit(text: str, after: TomlPlace, value: object) -> str:
        end = text.find("\n", after.end) if "\n" in text[after.end :] else len(text)
        return f"{text[:end]}\n{key} = {toml_text.spelled(value)}{text[end:]}"

    return edit


def _with_value(text: str, place: TomlPlace, value: object) -> str:
    return toml_text.replaced(text, place, toml_text.spelled(value))


def _with_items(text: str, place: TomlPlace, value: object) -> str:
    """The text with the value in place of the old one; of a list of strings, only what comes and goes is touched."""
    tokens = toml_text.tokens(text[place.start : place.end])
    strings = [at for at, token in enumerate(tokens) if token[0] in "\"'"]
    only_strings = tokens[0] == "[" and "[" not in tokens[1:] and all(token[0] in "\"'#[], \t\n" for token in tokens)
    if not isinstance(value, list | tuple) or not only_strings or not all(isinstance(item, str) for item in value):
        return _with_value(text, place, value)
    more = list(value)
    gone = []
    for at in strings:
        if more and tomllib.loads(f"item = {tokens[at]}")["item"] == more[0]:
            del more[0]
        else:
            gone.append(at)
    for at in reversed(gone):
        _cut(tokens, at)
    if more:
        _append(tokens, toml_text.spelled(more)[1:-1])
    return text[: place.start] + "".join(tokens) + text[place.end :]


def _cut(tokens: list[str], at: int) -> None:
    """Take an item out of a list, with the comma that is its own, and its line if nothing else stands there."""
    before, after = _next(tokens, at, -1), _next(tokens, at, 1)
    start, end = at, at + 1
    if tokens[after] == ",":
        end = _next(tokens, after, 1)
    elif tokens[before] == ",":
        start = _next(tokens, before, -1) + 1
    else:  # its comma, if it has one, stands on a line below
        comma = next((place for place in range(after, len(tokens)) if tokens[place][0] in "\"',"), at)
        if tokens[comma] == ",":
            del tokens[comma]
    before = _next(tokens, start, -1)
    after = _next(tokens, end - 1, 1)
    if tokens[before] == tokens[after] == "\n":
        start, end = before, after
    del tokens[start:end]


def _next(tokens: list[str], at: int, step: int) -> int:
    """The nearest token before (step -1) or after (1) one that is not blank; the list's brackets end the search."""
    at += step
    while not tokens[at].strip(" \t"):
        at += step
    return at


def _append(tokens: list[str], more: str) -> None:
    """Add items at the end of a list: on a line of their own if its bracket stands on one."""
    last = max((at for at, token in enumerate(tokens) if token[0] in "\"'"), default=0)
    if last and "," not in tokens[last:]:
        tokens.insert(last + 1, ",")
    end = len(tokens) - 1
    while not tokens[end - 1].strip():
        end -= 1
    own_line = "\n" in tokens[end:]
    tokens[end:] = ["\n    ", more, ",\n]"] if own_line else [" " if last else "", more, "]"]
