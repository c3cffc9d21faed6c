"""Read an accelerator from its TOML text, and write one.

A text is read once: the editor, the form, the session, the checks and the warnings each ask for the same text after an
edit, and get the same accelerator.
"""

import tomllib
from collections.abc import Sequence
from functools import lru_cache
from itertools import count

import msgspec

from idbg.accelerators import toml_text
from idbg.accelerators.model import Accelerator, Numerics
from idbg.accelerators.tables import check_values, decoded, unknown
from idbg.constraints import Constraint, broken_kinds, kind_named, kinds
from idbg.constraints.unknown import Unknown
from idbg.schema.errors import AcceleratorError

LARGEST = 1 << 20  # characters, or bytes of a file: rules are written by hand, a bigger file is the wrong file

_MOST_RULES = 1_000
_KEYS = ("name", "description", "rules", "numerics")
_KEPT = 8  # texts: the one before and the one after an edit, those of the runs that are shown


def parse(text: str) -> Accelerator:
    """The accelerator that this TOML text describes. Raises AcceleratorError, with the line that is wrong."""
    outcome = _outcome(text)
    if isinstance(outcome, AcceleratorError):  # another each time: an exception gathers the frames that it passes
        raise AcceleratorError(outcome.message, hint=outcome.hint, line=outcome.line)
    return outcome


@lru_cache(maxsize=_KEPT)
def _outcome(text: str) -> Accelerator | AcceleratorError:
    try:
        return _read(text)
    except AcceleratorError as error:
        return AcceleratorError(error.message, hint=error.hint, line=error.line)


def _read(text: str) -> Accelerator:
    if len(text) > LARGEST:
        raise too_large()
    data = _loaded(text)

    def line(key: str) -> int:
        return toml_text.find_line(text, "", 0, key) or _header(text, key)

    check_values(data, line)
    for key in data:
        if key not in _KEYS:
            raise unknown(f'there is no key "{key}" here', key, _KEYS, line(key))
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
    if (rule_type := kind_named(kind)) is None:
        raise _unknown_kind(kind, line("kind"))
    return decoded(table, rule_type, f'a rule of kind "{kind}"', line)


def _numerics(table: object, text: str) -> Numerics:
    def line(key: str) -> int:
        return toml_text.find_line(text, "numerics", 0, key) or _header(text, "numerics")

    if not isinstance(table, dict):
        raise AcceleratorError("numerics must be one table", hint="write [numerics] above its keys", line=line(""))
    check_values(table, line)
    return decoded(table, Numerics, "[numerics]", line)


def _unknown_kind(kind: str, line: int) -> AcceleratorError:
    broken = broken_kinds()
    if kind in broken:
        return AcceleratorError(
            f'the plug-in for rules of kind "{kind}" is broken: {broken[kind]}', hint="fix it", line=line
        )
    return unknown(f'there is no kind of rule "{kind}"', kind, list(kinds()), line)


def _header(text: str, table: str) -> int:
    """The line of the first table or key of this name, 0 if there is none."""
    return next((place.line for place in toml_text.places(text) if table in (place.table, place.key)), 0)


def _quoted_line(text: str, line: int) -> str:
    lines = text.splitlines()
    quoted = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    return f"line {line}: {quoted[:80]}" if quoted else f"at line {line}"


def too_large(what: str = "this") -> AcceleratorError:
    """The error of a text or a file that is larger than rules are."""
    return AcceleratorError(f"{what} is no accelerator file: it is larger than 1 MB", hint="rules take a few kilobytes")
