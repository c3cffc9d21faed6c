"""The rows of the form of an accelerator's rules, and the text that a key makes of one of them."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from idbg.accelerators import edit, toml_text, values
from idbg.accelerators.parse import parse
from idbg.constraints import Constraint, Findings, FindingsChange
from idbg_tui.panes.rules import words


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
        """Whether the list holds the choice; of any other row, whether the rule is on."""
        return self.choice in getattr(self.rule, self.key) if self.choice else self.rule.enabled


class Count(NamedTuple):
    """The violations of one rule, and what the last edit changed."""

    violations: int = 0
    came: int = 0
    went: int = 0

    @property
    def change_words(self) -> str:
        """ " (+2 -1)"; "" where the last edit changed nothing."""
        return f" (+{self.came} -{self.went})" if self.came or self.went else ""


def read(text: str) -> Form:
    """The form of a text. Raises AcceleratorError where the text is not valid."""
    rules = parse(text).rules
    lines = {(place.number, place.key): place.line for place in toml_text.places(text) if place.table == "rules"}
    return Form(text, rules, lines)


def rows(form: Form, opened: Container[tuple[str, str]]) -> Iterator[FormRow]:
    """The rows: (rule name, "") in `opened` shows the keys of a rule, (rule name, key) what a list can hold."""
    for number, rule in enumerate(form.rules):
        yield FormRow(number, rule)
        if (rule.name, "") not in opened:
            continue
        for key in words.keys(rule):
            row = FormRow(number, rule, key)
            yield row
            if (rule.name, key) in opened:
                yield from (FormRow(number, rule, key, choice) for choice in values.options(rule, key))


def counts(checked: Iterable[tuple[Findings, FindingsChange]]) -> dict[str, Count]:
    """Rule name -> its violations over several graphs. A rule that is off is there only where an
    edit has switched it off, with what that took away.
    """
    by_rule: dict[str, Count] = {}
    for findings, change in checked:
        came, went = ({group.rule.name: 0 for group in groups} for groups in change)
        for groups, sums in ((change.appeared, came), (change.went, went)):
            for group in groups:
                sums[group.rule.name] += group.count
        for name in {**findings.by_rule, **came, **went}:
            count, so_far = findings.by_rule.get(name, 0), by_rule.get(name, Count())
            came_now, went_now = so_far.came + came.get(name, 0), so_far.went + went.get(name, 0)
            by_rule[name] = Count(so_far.violations + count, came_now, went_now)
    return by_rule


def total(counts: Mapping[str, Count]) -> Count:
    """All rules' counts together."""
    return Count(*map(sum, zip(*counts.values(), strict=True))) if counts else Count()


# what keys do: each gives a text, or None where nothing changes


def toggled(form: Form, row: FormRow) -> str | None:
    """The rule off or on; for a value that a list can hold, out of it or in; for true and false the other one."""
    if row.choice:
        held = getattr(row.rule, row.key)
        now = [item for item in held if item != row.choice] if row.on else [*held, row.choice]
        return edit.write(form.text, row.number, row.rule, row.key, now)
    if isinstance(getattr(row.rule, row.key, None), bool):
        return stepped(form, row, up=True)
    line = form.lines.get((row.number, ""))
    change = edit.toggle(form.text, line) if line else None
    if change is None:
        return edit.write(form.text, row.number, row.rule, "enabled", not row.rule.enabled)
    return edit.checked(change.of(form.text))


def stepped(form: Form, row: FormRow, *, up: bool) -> str | None:
    """The next (or previous) value of the row's key; for a rule, of the first of its own keys that has one."""
    keys = [row.key] if row.key else words.own_keys(row.rule)
    for key in keys:
        value = getattr(row.rule, key)
        new = values.stepped(row.rule.kind, key, value, up=up)
        line = form.lines.get((row.number, key))
        change = edit.step(form.text, line, up=up) if line else None
        if change is not None:  # in the manner of what stands there: a step back gives the text as it was
            return edit.checked(change.of(form.text))
        if new != value:
            return edit.write(form.text, row.number, row.rule, key, new)
        if isinstance(value, int):
            return None  # at its end: the next key is not what was meant
    return None


def typed_value(form: Form, row: FormRow, typed: str) -> str | None:
    """The text with what the user typed as the value of the row's key. Raises AcceleratorError if it is not valid."""
    if typed.strip() == values.spelled(row.rule, row.key):
        return None
    return edit.write(form.text, row.number, row.rule, row.key, values.typed(row.rule, row.key, typed))


def removed(form: Form, row: FormRow) -> str | None:
    """The text without the row's rule; None for a rule that is there without being written."""
    if row.number >= edit.count(form.text):
        return None
    return edit.checked(edit.remove_rule(form.text, row.number))
