"""Which rows does the form of an accelerator's rules have, and what text does a key make of one of them?"""

import tomllib
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, get_args, get_origin

import msgspec

from idbg.accelerators import edit, toml_text
from idbg.accelerators.parse import parse
from idbg.checking.relax import Relaxation
from idbg.constraints import Constraint, Findings, FindingsChange, kinds
from idbg.schema.errors import AcceleratorError
from idbg.schema.graphs import DTYPES
from idbg_tui.panes.rules import steps, words

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


@dataclass(frozen=True)
class Form:
    """A valid text, its rules, and the 1-based line of each key ("" for the header) of each rule that is written."""

    text: str
    rules: tuple[Constraint, ...]
    lines: dict[tuple[int, str], int]

    def line(self, row: "FormRow") -> int:
        """Where in the text a row stands: its key, else its rule; 0 if the text does not have it."""
        return self.lines.get((row.number, row.key)) or self.lines.get((row.number, ""), 0)

    def at(self, line: int) -> tuple[int, str]:
        """The rule and the key ("" for its header) that this 1-based line belongs to; the first rule above all."""
        before = [place for place, start in self.lines.items() if start <= line]
        return max(before, key=self.lines.__getitem__, default=(0, ""))


@dataclass(frozen=True)
class FormRow:
    """One row: a rule, one of its keys (`key`), or one of the values that a list can hold (`choice`)."""

    number: int
    rule: Constraint
    key: str = ""
    choice: str = ""

    @property
    def place(self) -> tuple[str, str, str]:
        """What the row is, in every text."""
        return self.rule.name, self.key, self.choice

    @property
    def on(self) -> bool:
        return self.choice in getattr(self.rule, self.key) if self.choice else self.rule.enabled


class Count(NamedTuple):
    """The violations of one rule, and what the last edit changed."""

    found: int = 0
    came: int = 0
    went: int = 0


def read(text: str) -> Form:
    """The form of a text. Raises AcceleratorError where the text is not valid."""
    rules = parse(text).rules
    lines = {(place.number, place.key): place.line for place in toml_text.places(text) if place.table == "rules"}
    return Form(text, rules, lines)


def rows(form: Form, opened: Container[tuple[str, str]]) -> list[FormRow]:
    """The rows: (rule name, "") in `opened` shows the keys of a rule, (rule name, key) what a list can hold."""
    return list(_rows(form, opened))


def _rows(form: Form, opened: Container[tuple[str, str]]) -> Iterator[FormRow]:
    for number, rule in enumerate(form.rules):
        yield FormRow(number, rule)
        if (rule.name, "") not in opened:
            continue
        for key in words.keys(rule):
            row = FormRow(number, rule, key)
            yield row
            if (rule.name, key) in opened:
                yield from (FormRow(number, rule, key, choice) for choice in options(row))


def options(row: FormRow) -> tuple[str, ...]:
    """What the list of a row can hold; empty if it is no list, or one that holds anything."""
    return steps.choices(row.rule.kind, row.key) if _is_list(row) else ()


def has_globs(row: FormRow) -> bool:
    """Whether the row's value is a list of any names, which are typed with commas between them."""
    return _is_list(row) and not options(row)


def _is_list(row: FormRow) -> bool:
    annotation = next((field.type for field in msgspec.structs.fields(row.rule) if field.name == row.key), None)
    return any(get_origin(part) is tuple for part in (annotation, *get_args(annotation))) and row.key != "dims"


def counts(checked: Iterable[tuple[Findings, FindingsChange]]) -> dict[str, Count]:
    """Rule name -> its violations over several graphs; a rule that was not asked is not there."""
    found: dict[str, Count] = {}
    for findings, change in checked:
        came, went = ({group.rule.name: 0 for group in groups} for groups in change)
        for groups, sums in ((change.appeared, came), (change.went, went)):
            for group in groups:
                sums[group.rule.name] += group.count
        for name, count in findings.by_rule.items():
            so_far = found.get(name, Count())
            found[name] = Count(so_far.found + count, so_far.came + came.get(name, 0), so_far.went + went.get(name, 0))
    return found


# what keys do: each gives a text, or None where nothing changes


def toggled(form: Form, row: FormRow) -> str | None:
    """The rule off or on; for a value that a list can hold, out of it or in; for true and false the other one."""
    if row.choice:
        held = getattr(row.rule, row.key)
        now = [item for item in held if item != row.choice] if row.on else [*held, row.choice]
        return written(form, row, row.key, now)
    if isinstance(getattr(row.rule, row.key, None), bool):
        return stepped(form, row, up=True)
    line = form.lines.get((row.number, ""))
    change = steps.toggle(form.text, line) if line else None
    if change is None:
        return written(form, row, "enabled", not row.rule.enabled)
    return checked(change.of(form.text))


def stepped(form: Form, row: FormRow, *, up: bool) -> str | None:
    """The next (or previous) value of the row's key; for a rule, of the first of its own keys that has one."""
    keys = [row.key] if row.key else words.own_keys(row.rule)
    for key in keys:
        value = getattr(row.rule, key)
        new = steps.stepped(row.rule.kind, key, value, up=up)
        line = form.lines.get((row.number, key))
        change = steps.step(form.text, line, up=up) if line else None
        if change is not None:  # in the manner of what stands there: a step back gives the text as it was
            return checked(change.of(form.text))
        if new != value:
            return written(form, row, key, new)
        if isinstance(value, int):
            return None  # at its end: the next key is not what was meant
    return None


def given(form: Form, row: FormRow, typed: str) -> str | None:
    """The text with what the user typed as the value of the row's key. Raises AcceleratorError if it is not valid."""
    types = {field.name: field.type for field in msgspec.structs.fields(row.rule)}
    typed = typed.strip()
    if typed == spelled(row):
        return None
    if types[row.key] is str:
        return written(form, row, row.key, typed)
    if not typed:
        return written(form, row, row.key, None)
    listed = has_globs(row) and not typed.startswith("[")
    try:
        value: object = tomllib.loads(f"v = [{typed}]" if listed else f"v = {typed}")["v"]
    except tomllib.TOMLDecodeError:
        value = [name for part in typed.split(",") if (name := part.strip(" \"'"))] if listed else typed
    return written(form, row, row.key, value)


def spelled(row: FormRow) -> str:
    """The row's value as a user would type it."""
    value = getattr(row.rule, row.key)
    if has_globs(row):
        return ", ".join(map(str, value or ()))
    return "" if value is None else value if isinstance(value, str) else toml_text.spelled(value)


def written(form: Form, row: FormRow, key: str, value: object) -> str | None:
    """The text with one key of a rule set, or taken out with None. Raises AcceleratorError if that is not valid."""
    if (row.number, "") not in form.lines and row.number >= edit.count(form.text):
        text = edit.add_rule(form.text, row.rule.kind, key, value)  # a rule that is there without being written
    elif value is None:
        text = steps.without_key(form.text, row.number, key)
    else:
        try:
            text = edit.set_key(form.text, row.number, key, value)
        except TypeError:
            raise AcceleratorError(f"{key} cannot be that", hint="give a number, a word, or a list of them") from None
    return checked(text) if text != form.text else None


def relaxed(text: str, relaxations: Iterable[Relaxation]) -> str:
    """The text with these changes made. Raises AcceleratorError if it is not valid."""
    for relaxation in relaxations:
        form = read(text)
        row = next((FormRow(at, rule) for at, rule in enumerate(form.rules) if rule.name == relaxation.rule.name), None)
        if row is None:
            continue
        if relaxation.relaxed is None:
            text = written(form, row, "enabled", False) or text
        else:
            text = checked(edit.apply(text, row.number, relaxation.rule, relaxation.relaxed))
    return text


def added(text: str, kind: str) -> str:
    """The text with a rule of a kind more. Raises AcceleratorError for a kind whose first values are not known."""
    start = _STARTS.get(kind) or {
        field.name: _first(field) for field in msgspec.structs.fields(kinds()[kind]) if field.required
    }
    default = next(field.default for field in msgspec.structs.fields(kinds()[kind]) if field.name == "severity")
    pairs = [*start.items()] or [("severity", default)]
    number = edit.count(text)
    text = edit.add_rule(text, kind, *pairs[0])
    for key, value in reversed(pairs[1:]):
        text = edit.set_key(text, number, key, value)
    return checked(text)


def removed(form: Form, row: FormRow) -> str | None:
    """The text without the row's rule; None for a rule that is there without being written."""
    if row.number >= edit.count(form.text):
        return None
    return checked(steps.without_rule(form.text, row.number))


def checked(text: str) -> str:
    """The text, if it is valid. Raises AcceleratorError otherwise."""
    parse(text)
    return text


def _first(field: msgspec.structs.FieldInfo) -> object:
    """A value to begin with for a key of another package's rule."""
    of_type: dict[object, object] = {int: 1, float: 1.0, str: "", bool: False}
    return of_type.get(field.type, [])
