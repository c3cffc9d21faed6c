"""Edit the rules in an accelerator's text; everything else in it stays as it is, comments too.

Rules are named by their number: 0 is the first `[[rules]]` table. The text must be valid TOML. Every edit of a key is
read back: where its meaning is not the requested one, AcceleratorError is raised. The form, the editor, the
commands, the environment's variables and the repros all edit by these.
"""

import tomllib

import msgspec

from idbg.accelerators import toml_text
from idbg.accelerators.parse import parse
from idbg.accelerators.toml_text import TextEdit, TomlPlace, places
from idbg.accelerators.values import stepped
from idbg.constraints import Constraint, kinds
from idbg.schema.errors import AcceleratorError
from idbg.schema.graphs import DTYPES

# what a new rule of a kind begins with: it accepts nearly everything, and + and - go from there
_STARTS: dict[str, dict[str, object]] = {
    "alignment": {"multiple": 1},
    "constant_operand": {"position": 1, "ops": ["convolution"]},
    "dtype": {"allowed": [*DTYPES]},
    "layout": {"formats": ["contiguous"]},
    "leading_dims": {"free": 8},
    "matmul_tile": {"k": 1024},
    "max_dim": {"max": 65536},
    "memory": {"max_bytes": 1 << 34},
    "peak_memory": {"max_bytes": 1 << 34},
    "rank": {"max": 8},
    "unsupported_ops": {"deny": []},
    "weights_memory": {"max_bytes": 1 << 34},
    "window": {"max_height": 64},
}


def count(text: str) -> int:
    """How many rules the text has."""
    return len(tomllib.loads(text).get("rules", []))


def set_key(text: str, number: int, key: str, value: object) -> str:
    """The text with one key of a rule set; one that is not there is added. A list keeps the lines that stay."""
    header, *keys = _places(text, number)
    by_key, spelled = {place.key: place for place in keys}, toml_text.spelled(value)
    if place := by_key.get(key):
        listed = _listed(text[place.start : place.end], value)
        edits = [] if listed is None else [text[: place.start] + listed + text[place.end :]]
        edits.append(toml_text.replaced(text, place, spelled))
    else:
        place = by_key.get("kind", header)
        end = text.find("\n", place.end) if "\n" in text[place.end :] else len(text)
        edits = [f"{text[:end]}\n{key} = {spelled}{text[end:]}"]
    wanted = _meaning(text)
    wanted["rules"][number][key] = _plain(value)
    for edited in edits:
        if _means(edited, wanted):
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
    if not _means(edited, wanted):
        raise _on_one_line()
    return edited


def add_new(text: str, kind: str) -> str:
    """The text with a rule of a kind more, which begins with values that refuse as little as can be.

    Raises AcceleratorError for a kind of another package whose first values are not known.
    """
    start = _STARTS.get(kind) or {
        field.name: _first(field) for field in msgspec.structs.fields(kinds()[kind]) if field.required
    }
    default = next(field.default for field in msgspec.structs.fields(kinds()[kind]) if field.name == "severity")
    pairs = [*start.items()] or [("severity", default)]
    number = count(text)
    text = add_rule(text, kind, *pairs[0])
    for key, value in reversed(pairs[1:]):
        text = set_key(text, number, key, value)
    return checked(text)


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


def write(text: str, number: int, rule: Constraint, key: str, value: object) -> str | None:
    """The text with one key of a rule set, or taken out with None; None where nothing changes. A rule that is there
    without being written (`unknown`) is written. Raises AcceleratorError if the text is not valid then."""
    if number >= count(text):
        if value is None:
            return None
        edited = add_rule(text, rule.kind, key, value)
    elif value is None:
        edited = remove_key(text, number, key)
    else:
        try:
            edited = set_key(text, number, key, value)
        except TypeError:
            raise AcceleratorError(f"{key} cannot be that", hint="give a number, a word, or a list of them") from None
    return checked(edited) if edited != text else None


def remove_rule(text: str, number: int) -> str:
    """The text without one rule, and without the comment that stands right above it."""
    rule = _places(text, number)
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


def remove_key(text: str, number: int, key: str) -> str:
    """The text without the lines of one key of a rule; as it is if the rule has no such key."""
    place = next((place for place in _places(text, number) if place.key == key), None)
    if place is None:
        return text
    lines = text.split("\n")
    return "\n".join(lines[: place.line - 1] + lines[text.count("\n", 0, place.end) + 1 :])


def rule_text(text: str, number: int) -> str:
    """One rule as it stands in the text."""
    rule = _places(text, number)
    start = text.rfind("\n", 0, rule[0].end) + 1
    return text[start : rule[-1].end]


def rename(text: str, name: str) -> str:
    """The text with another name of the accelerator."""
    place = next((place for place in toml_text.places(text) if (place.table, place.key) == ("", "name")), None)
    if place is None:
        return f"name = {toml_text.spelled(name)}\n{text}"
    if tomllib.loads(f"v = {text[place.start : place.end]}")["v"] == name:
        return text
    return toml_text.replaced(text, place, toml_text.spelled(name))


def checked(text: str) -> str:
    """The text, if it is valid. Raises AcceleratorError otherwise."""
    parse(text)
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


def _means(text: str, wanted: object) -> bool:
    try:
        return _meaning(text) == wanted
    except ValueError:
        return False


def _first(field: msgspec.structs.FieldInfo) -> object:
    """A value to begin with for a key of another package's rule."""
    of_type: dict[object, object] = {int: 1, float: 1.0, str: "", bool: False}
    return of_type.get(field.type, [])


# ---------------------------------------------------------------- strings of a list


def _listed(spelled: str, wanted: object) -> str | None:
    """The list that is spelled so, with these strings in it: only what comes and goes is touched. None where either is
    no list of strings."""
    if not isinstance(wanted, list | tuple) or not all(isinstance(item, str) for item in wanted):
        return None
    tokens = toml_text.tokens(spelled)
    if tokens[0] != "[" or "[" in tokens[1:] or not all(token[0] in "\"'#[], \t\n" for token in tokens):
        return None
    strings = [at for at, token in enumerate(tokens) if token[0] in "\"'"]
    more = list(wanted)
    gone = []
    for at in strings:
        if more and tomllib.loads(f"item = {tokens[at]}")["item"] == more[0]:
            del more[0]
        else:
            gone.append(at)
    for at in reversed(gone):
        _cut_item(tokens, at)
    if more:
        _append_items(tokens, toml_text.spelled(more)[1:-1])
    return "".join(tokens)


def _cut_item(tokens: list[str], at: int) -> None:
    """Take an item out of a list, with the comma that is its own, and its line if nothing else stands there."""
    before, after = _next_token(tokens, at, -1), _next_token(tokens, at, 1)
    start, end = at, at + 1
    if tokens[after] == ",":
        end = _next_token(tokens, after, 1)
    elif tokens[before] == ",":
        start = _next_token(tokens, before, -1) + 1
    else:  # its comma, if it has one, stands on a line below
        comma = next((place for place in range(after, len(tokens)) if tokens[place][0] in "\"',"), at)
        if tokens[comma] == ",":
            del tokens[comma]
    before = _next_token(tokens, start, -1)
    after = _next_token(tokens, end - 1, 1)
    if tokens[before] == tokens[after] == "\n":
        start, end = before, after
    del tokens[start:end]


def _next_token(tokens: list[str], at: int, step: int) -> int:
    """The nearest token before (step -1) or after (1) one that is not blank; the list's brackets end the search."""
    at += step
    while not tokens[at].strip(" \t"):
        at += step
    return at


def _append_items(tokens: list[str], more: str) -> None:
    """Add items at the end of a list: on a line of their own if its bracket stands on one."""
    last = max((at for at, token in enumerate(tokens) if token[0] in "\"'"), default=0)
    if last and "," not in tokens[last:]:
        tokens.insert(last + 1, ",")
    end = len(tokens) - 1
    while not tokens[end - 1].strip():
        end -= 1
    own_line = "\n" in tokens[end:]
    tokens[end:] = ["\n    ", more, ",\n]"] if own_line else [" " if last else "", more, "]"]


_OFF = "\nenabled = false"


def step(text: str, line: int, *, up: bool) -> TextEdit | None:
    """The next (or previous) value of the key on this 1-based line; None where the line has no such value."""
    table = _table_around(text, line)
    place = next((place for place in table if place.line == line and place.key), None)
    if place is None:
        return None
    spelled = text[place.start : place.end]
    try:
        value: object = tomllib.loads(f"v = {spelled}")["v"]
    except (ValueError, RecursionError):
        return None
    kind = next((text[other.start : other.end] for other in table if other.key == "kind"), "").strip("\"'")
    new = stepped(kind if place.table == "rules" else "", place.key, value, up=up)
    return None if new == value else TextEdit(place.start, place.end, _respelled(spelled, new))


def toggle(text: str, line: int) -> TextEdit | None:
    """Switch the rule around this 1-based line off, or on again, which takes out the line that switched it off.

    None outside of all rules.
    """
    rule = _table_around(text, line)
    if not rule or rule[0].key or rule[0].table != "rules":
        return None
    by_key = {place.key: place for place in rule}
    enabled = by_key.get("enabled")
    end = text.find("\n", by_key.get("kind", rule[0]).end)
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


def _table_around(text: str, line: int) -> list[TomlPlace]:
    """The header and the keys of the table that this line is in."""
    table: list[TomlPlace] = []
    for place in places(text):
        if not place.key and place.line > line:
            break
        table = [*table, place] if place.key else [place]
    return table
