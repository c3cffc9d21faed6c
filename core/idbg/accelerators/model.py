"""What can the hardware not do, where is that written, and how is it changed?

An accelerator is a TOML file: a name, a description, and any number of `[[rules]]` tables, each of a `kind` that names
a class in `idbg.constraints`; and, for a mock backend that computes as the hardware would, one `[numerics]` table
(`idbg.accelerators.numerics`). A preset is such a file in `presets/`, or an entry point `idbg.accelerators` of another
package that holds the file's path, or an Accelerator. Both front ends load it: its module imports no torch.
"""

import re
import stat
import tomllib
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from itertools import count
from pathlib import Path
from typing import Literal, TypeVar, get_args, get_origin

import msgspec

from idbg import plugins
from idbg.accelerators import edit, toml_text
from idbg.accelerators.numerics import Numerics
from idbg.config import places
from idbg.constraints import BadValue, Constraint, broken_kinds, kind_named, kinds
from idbg.constraints.unknown import Unknown
from idbg.schema.errors import AcceleratorError, SettingsError
from idbg.schema.programs import OUR_BACKENDS

PRESETS = Path(__file__).parent / "presets"

_LARGEST = 1 << 20  # characters, or bytes of a file: rules are written by hand, a bigger file is the wrong file
_MOST_RULES = 1_000
_MOST = 2**63 - 1  # sizes are 64-bit numbers
_KEYS = ("name", "description", "rules", "numerics")
_TYPES = {
    "array": "a list",
    "str": "a string",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "null": "None",
}

_Table = TypeVar("_Table", bound=msgspec.Struct)


class Accelerator(msgspec.Struct, frozen=True):
    """The hardware's rules. Without rules, everything is accepted."""

    name: str = "unnamed"
    description: str = ""
    rules: tuple[Constraint, ...] = ()
    numerics: Numerics | None = None


def parse(text: str) -> Accelerator:
    """The accelerator that this TOML text describes. Raises AcceleratorError, with the line that is wrong."""
    if len(text) > _LARGEST:
        raise _too_large()
    data = _loaded(text)

    def line(key: str) -> int:
        return toml_text.find_line(text, "", 0, key) or _header(text, key)

    check_values(data, line)
    for key in data:
        if key not in _KEYS:
            raise _unknown(f'there is no key "{key}" here', key, _KEYS, line(key))
    head: dict[str, str] = {}
    for key in ("name", "description"):
        value = data.get(key, "")
        if not isinstance(value, str):
            raise AcceleratorError(f"{key} must be a string", hint=f'{key} = "..."', line=line(key))
        head[key] = value
    return Accelerator(
        head["name"] or "unnamed",
        head["description"],
        _rules(data.get("rules", []), text),
        _numerics(data["numerics"], text) if "numerics" in data else None,
    )


def _loaded(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except ValueError as error:
        message, line = toml_text.syntax_error(error, text)
        raise AcceleratorError(f"not valid TOML: {message}", hint=_quoted_line(text, line), line=line) from None
    except RecursionError:
        raise AcceleratorError("not valid TOML: nested too deeply", hint="rules are flat tables") from None


def unparse(accelerator: Accelerator) -> str:
    """TOML text that `parse` reads back as this accelerator."""
    head = {"name": accelerator.name, "description": accelerator.description}
    lines = [f"{key} = {toml_text.spelled(value)}" for key, value in head.items()]
    tables: list[tuple[str, msgspec.Struct]] = [("[[rules]]", rule) for rule in accelerator.rules]
    if accelerator.numerics is not None:
        tables.insert(0, ("[numerics]", accelerator.numerics))
    for header, table in tables:
        lines += ["", header]
        lines += [
            f"{key} = {toml_text.spelled(value)}"
            for key, value in msgspec.to_builtins(table).items()
            if value is not None
        ]
    return "\n".join(lines) + "\n"


def find(name_or_path: str) -> tuple[str, str]:
    """The TOML text of a preset or a file, and the path it came from. Raises AcceleratorError if there is none."""
    if name_or_path.endswith(".toml") or "/" in name_or_path or "\\" in name_or_path:
        return _read(places.expanded(name_or_path))
    preset = PRESETS / f"{name_or_path}.toml"
    if preset.is_file():
        return _read(preset)
    if name_or_path in plugins.names("idbg.accelerators"):
        return _plugged(name_or_path)
    near = get_close_matches(name_or_path, names(), n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise AcceleratorError(
        f'there is no accelerator "{name_or_path}"',
        hint=f"{hint}There are: {', '.join(names())}; or give the path of a .toml file",
    )


def names() -> list[str]:
    """Every preset that `find` knows by name: our own first, then those of plug-ins."""
    own = sorted(path.stem for path in PRESETS.glob("*.toml"))
    return own + sorted(set(plugins.names("idbg.accelerators")) - set(own))


def is_preset(name: str) -> bool:
    """Whether `name` is one of `names()`; plug-ins are looked for only where it is none of ours."""
    own = "/" not in name and (PRESETS / f"{name}.toml").is_file()
    return own or name in plugins.names("idbg.accelerators")


def default_for(backend: str) -> str:
    """The accelerator that a backend is for where nobody names one: its own package's of the same name, else mock."""
    of_others = backend not in OUR_BACKENDS
    return backend if of_others and backend in plugins.names("idbg.accelerators") else "mock"


def with_value(text: str, kind: str, key: str, value: object) -> str:
    """The text with one key of the first rule of this kind set; all else, comments too, stays as it is.

    A key that is not there is added to the rule, a rule that is not there to the end. The text must be valid TOML.
    """
    index = next(
        (number for number, rule in enumerate(tomllib.loads(text).get("rules", [])) if rule.get("kind") == kind), None
    )
    if index is None:
        return edit.add_rule(text, kind, key, value)
    return edit.set_key(text, index, key, value)


def from_environment(text: str, environ: Mapping[str, str]) -> str:
    """The text with MOCK_ALIGNMENT and MOCK_MAX_MEMORY applied. Raises SettingsError for a bad value."""
    if alignment := environ.get("MOCK_ALIGNMENT", "").strip():
        text = with_value(text, "alignment", "multiple", _number("MOCK_ALIGNMENT", alignment, least=1))
    if memory := environ.get("MOCK_MAX_MEMORY", "").strip():
        limit = float("inf") if memory.lower() == "inf" else _number("MOCK_MAX_MEMORY", memory, least=0)
        text = with_value(text, "memory", "max_bytes", limit)
    return text


def _number(variable: str, value: str, *, least: int) -> int:
    try:
        number = int(value)
    except ValueError:
        number = least - 1
    if not least <= number <= _MOST:
        inf = " or inf" if variable == "MOCK_MAX_MEMORY" else ""
        raise SettingsError(
            f"{variable} is {value!r}", hint=f"set it to a whole number, {least} or more{inf}, or unset it"
        )
    return number


def decode(data: bytes) -> str:
    """The text of an accelerator file. Raises AcceleratorError, with the line that is not UTF-8."""
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise AcceleratorError("this is not UTF-8 text", hint="save the file as UTF-8", line=line) from None


def _read(path: Path) -> tuple[str, str]:
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):  # a pipe or a device may have no end
            what = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
            raise AcceleratorError(f"{path} cannot be read: it is {what}", hint="give the path of a .toml file")
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        raise AcceleratorError(f"there is no file {path}", hint=f"presets are: {', '.join(names())}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise AcceleratorError(f"{path} cannot be read: {reason}", hint="give the path of a .toml file") from None
    if len(data) > _LARGEST:
        raise _too_large(str(path))
    try:
        return decode(data), str(path)
    except AcceleratorError as error:
        raise AcceleratorError(f"{path}:{error.line}: {error.message}", hint=error.hint, line=error.line) from None


def _too_large(what: str = "this") -> AcceleratorError:
    return AcceleratorError(f"{what} is no accelerator file: it is larger than 1 MB", hint="rules take a few kilobytes")


def _plugged(name: str) -> tuple[str, str]:
    loaded = plugins.load("idbg.accelerators")
    held = loaded.found.get(name)
    if isinstance(held, str | Path):
        return _read(Path(held))
    if isinstance(held, Accelerator):
        return unparse(held), name
    why = loaded.broken.get(name, f"its entry point holds a {type(held).__name__}, not a path or an Accelerator")
    raise AcceleratorError(
        f'the accelerator "{name}" of another package cannot be used: {why}', hint="mend or uninstall that package"
    )


def _rules(tables: object, text: str) -> tuple[Constraint, ...]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise AcceleratorError(
            "rules must be tables", hint="write [[rules]] above each rule", line=_header(text, "rules")
        )
    if len(tables) > _MOST_RULES:
        raise AcceleratorError(
            f"this file has {len(tables):,} rules; it may have at most {_MOST_RULES:,}",
            hint="write one rule for many: ops takes globs",
            line=toml_text.find_line(text, "rules", _MOST_RULES) or _header(text, "rules"),
        )
    rules: list[Constraint] = []
    for index, table in enumerate(tables):
        rule = _rule(table, index, text)
        if any(rule.name == other.name for other in rules):
            if "name" in table:
                line = toml_text.find_line(text, "rules", index, "name")
                raise AcceleratorError(f'two rules are named "{rule.name}"', hint="give each its own name", line=line)
            rule = msgspec.structs.replace(rule, name=_free_name(rule.kind, rules))
        rules.append(rule)
    if rules and not any(isinstance(rule, Unknown) for rule in rules):
        rules.append(Unknown())
    return tuple(rules)


def _free_name(kind: str, rules: Sequence[Constraint]) -> str:
    taken = {rule.name for rule in rules}
    return next(name for number in count(2) if (name := f"{kind}-{number}") not in taken)


def _rule(table: dict[str, object], index: int, text: str) -> Constraint:
    def line(key: str = "") -> int:
        return toml_text.find_line(text, "rules", index, key) or _header(text, "rules")

    check_values(table, line)
    kind = table.get("kind")
    if kind is None:
        raise AcceleratorError("this rule has no kind", hint=f"kinds are: {', '.join(kinds())}", line=line())
    if not isinstance(kind, str):
        raise AcceleratorError("kind must be a string", hint='kind = "..."', line=line("kind"))
    if (found := kind_named(kind)) is None:
        raise _unknown_kind(kind, line("kind"))
    return _decoded(table, found, f'a rule of kind "{kind}"', line)


def _numerics(table: object, text: str) -> Numerics:
    def line(key: str) -> int:
        return toml_text.find_line(text, "numerics", 0, key) or _header(text, "numerics")

    if not isinstance(table, dict):
        raise AcceleratorError("numerics must be one table", hint="write [numerics] above its keys", line=line(""))
    check_values(table, line)
    return _decoded(table, Numerics, "[numerics]", line)


def check_values(table: Mapping[str, object], line: Callable[[str], int]) -> None:
    """Refuse what no rule takes: characters that no terminal shows as they are, and numbers past 64 bits."""
    for key, value in table.items():
        for item in (key, *(value if isinstance(value, list) else (value,))):
            if isinstance(item, int) and abs(item) > _MOST:
                inf = ", or inf for no limit" if key == "max_bytes" else ""
                raise AcceleratorError(f"{key} is too large", hint=f"it can be {_MOST:,} at most{inf}", line=line(key))
            if isinstance(item, str) and (character := _hidden(item, "\n" if key == "description" else "")):
                named = f"the character U+{ord(character):04X} ({unicodedata.name(character, 'control')})"
                where = "a key" if item is key else key
                raise AcceleratorError(f"{where} holds {named}, which is not shown", hint="take it out", line=line(key))


def _hidden(text: str, allowed: str) -> str:
    """The first character that is no text: codes for terminals, directions of writing, line ends; "" if none is."""
    hidden = ("Cc", "Cf", "Zl", "Zp")
    return next((each for each in text if unicodedata.category(each) in hidden and each not in allowed), "")


def _decoded(table: dict[str, object], kind: type[_Table], what: str, line: Callable[[str], int]) -> _Table:
    """The struct that a table of the file stands for. `what` names the table, `line` tells where a key of it is."""
    known = [field.name for field in msgspec.structs.fields(kind)]
    if tag := kind.__struct_config__.tag_field:
        known.insert(0, tag)
    for key in table:
        if key not in known:
            raise _unknown(f'{what} has no key "{key}"', key, known, line(key))
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, BadValue):
            bad = error.__cause__
            raise AcceleratorError(bad.message, hint=bad.hint, line=line(bad.key)) from None
        raise wrong_type(error, kind, what, line) from None


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
    choices = _choices({field.name: field.type for field in msgspec.structs.fields(kind)}.get(key))
    if invalid := re.search(r"Invalid enum value '(.*)' - at", text):
        return _unknown(f'{given} "{invalid[1]}"', invalid[1], choices, line(key))
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


def _choices(annotation: object) -> list[str]:
    """The strings that an annotation allows, however deep its Literal is."""
    if get_origin(annotation) is Literal:
        return [choice for choice in get_args(annotation) if isinstance(choice, str)]
    return [choice for inner in get_args(annotation) for choice in _choices(inner)]


def _unknown(message: str, given: str, known: Sequence[str], line: int) -> AcceleratorError:
    near = get_close_matches(given, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
    return AcceleratorError(message, hint=hint, line=line)


def _unknown_kind(kind: str, line: int) -> AcceleratorError:
    broken = broken_kinds()
    if kind in broken:
        return AcceleratorError(
            f'the plug-in for rules of kind "{kind}" is broken: {broken[kind]}', hint="mend it", line=line
        )
    return _unknown(f'there is no kind of rule "{kind}"', kind, list(kinds()), line)


def _header(text: str, table: str) -> int:
    """The line of the first table or key of this name, 0 if there is none."""
    return next((place.line for place in toml_text.places(text) if table in (place.table, place.key)), 0)


def _quoted_line(text: str, line: int) -> str:
    lines = text.splitlines()
    quoted = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    return f"line {line}: {quoted[:80]}" if quoted else f"at line {line}"
