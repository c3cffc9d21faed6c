"""Draw the form of the rules, and map its keys to edits."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from idbg.accelerators import edit
from idbg.accelerators.values import has_globs, options, spelled
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS
from idbg.schema.errors import AcceleratorError
from idbg_tui.messages import CopyRequest, Flash
from idbg_tui.panes.rules import form as rule_form
from idbg_tui.panes.rules import words as rule_words
from idbg_tui.panes.rules.form import Count, Form, FormRow
from idbg_tui.widgets.item_list import ItemList
from idbg_tui.widgets.lines import StyledRow as Pieces
from idbg_tui.widgets.lines import clip, fit

_LIMIT = 20  # cells of a rule's limit, that stay when its severity's word gives way to its sign
_NAME = 18  # cells of a rule's name where there is little room
_KEY = 12  # cells of a key's
_TYPED = 80  # characters of a list that can still be typed in one line

_NO_VALUE = "no further value here: enter writes any"
_CHANGES: dict[str, tuple[Callable[[Form, FormRow], str | None], str]] = {
    "switch": (rule_form.toggled, "nothing to switch here"),
    "step(True)": (partial(rule_form.stepped, up=True), _NO_VALUE),
    "step(False)": (partial(rule_form.stepped, up=False), _NO_VALUE),
    "remove": (rule_form.removed, "{rule} is there without being written: space switches it off"),
}
"""What actions make of the text, and why where they make nothing of it."""


class RuleRows(ItemList[FormRow]):
    """One row a rule; an open one has a row for each key below it, and an open list one for each value it can hold."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "switch", "switch on or off", show=False),
        Binding("plus,ctrl+up", "step(True)", "raise the value", show=False),
        Binding("underscore,ctrl+down", "step(False)", "lower the value", show=False),
        Binding("right,l", "inward", "unfold, go inside", show=False),
        Binding("left,h", "close", "fold, go outside", show=False),
        Binding("ctrl+x,delete", "remove", "take the rule or key out (undo brings it back)", show=False),
        Binding("escape", "close", "fold, go outside", show=False),
    ]

    @dataclass
    class ValueRequest(Message):
        """The user wants to type the value of a row's key."""

        form: Form
        row: FormRow

    @dataclass
    class LineRequest(Message):
        """The user wants to write at this 1-based line of the text."""

        line: int

    def __init__(self, edit: Callable[[str], object]) -> None:
        """`edit` takes another text. No message: the next key of a burst must find the text that this one made."""
        super().__init__()
        self._edit = edit
        self.form = Form("", (), {})
        self.empty = "no rules: everything is accepted; A adds one"
        self.wrong = 0  # the line of a mistake in the text: the rows are those of the last good one
        self._counts: dict[str, Count] = {}
        self._warned: set[tuple[int, str]] = set()
        self._opened: set[tuple[str, str]] = set()
        self._names = self._severities = self._limits = 0  # cells of the longest

    # ---------------------------------------------------------------- what is shown

    def show_text(self, text: str) -> None:
        """Show the rules of a text; where it has a mistake, the last good ones stay, and cannot be changed."""
        try:
            form = rule_form.read(text)
        except AcceleratorError as error:
            self.wrong = error.line or 1
            self.rows_changed()
            return
        self.wrong = 0
        if len(form.rules) == len(self.form.rules):  # a rule with another name is still the same row
            names = {old.name: new.name for old, new in zip(self.form.rules, form.rules, strict=True)}
            self._opened = {(names.get(name, name), key) for name, key in self._opened}
        self.form = form
        self._lay()

    def show_counts(self, counts: dict[str, Count], warned: Collection[int]) -> None:
        """Show how many violations each rule finds, and mark the rules and keys on these lines of the text."""
        self._counts, self._warned = counts, {self.form.at(line) for line in warned}
        self.repaint_changes()

    @property
    def text_line(self) -> int:
        """The 1-based line of the cursor's row in the text; the first where the text does not have it."""
        row = self.chosen
        return (self.form.line(row) if row else 0) or 1

    def select_line(self, line: int) -> None:
        """Put the cursor on the rule that this 1-based line is in."""
        number, key = self.form.at(line)
        ours = [at for at, row in enumerate(self.items) if row.number == number and row.key in ("", key)]
        self.place_cursor(ours[-1 if key else 0] if ours else 0)

    def select_last(self) -> None:
        """Open the last rule that is written, and put the cursor on it."""
        rule = self.form.rules[edit.count(self.form.text) - 1]
        self._opened.add((rule.name, ""))
        self._lay()
        self.place_cursor(self._place_of((rule.name, "", "")))

    def _lay(self) -> None:
        """Make the rows anew, with the cursor on the row where it was."""
        self._names = max((len(rule.name) for rule in self.form.rules), default=0)
        self._severities = max((len(rule.severity) for rule in self.form.rules), default=0)
        summaries = (len(rule_words.summary(rule)) for rule in self.form.rules)
        self._limits = min(max(summaries, default=0), _LIMIT)
        self.show_items(list(rule_form.rows(self.form, self._opened)), self.empty)

    def key(self, item: FormRow) -> object:
        return item.place

    def searched(self, index: int) -> str:
        """All that a row says of its rule, and the rule's kind."""
        if not self.items:
            return ""
        row, rule = self.items[index], self.items[index].rule
        if row.key:
            return f"{row.key} {row.choice or rule_words.value_words(rule, row.key)}"
        return f"{rule.name} {rule.kind} {SEVERITY_SIGNS[rule.severity]} {rule.severity} {rule_words.summary(rule)}"

    def draw(self, item: FormRow, width: int) -> Pieces:
        if item.choice:
            return [(f"       {MARKS['on' if item.on else 'off']} ", "accent"), (item.choice, "" if item.on else "dim")]
        return self._key(item, width) if item.key else self._rule(item, width)

    def _rule(self, row: FormRow, width: int) -> Pieces:
        rule, dim = row.rule, not row.on or bool(self.wrong)
        fold = MARKS["open" if (rule.name, "") in self._opened else "closed"]
        warned = "!" if row.number in {number for number, _ in self._warned} else " "
        start: Pieces = [
            (f"{fold} ", "dim"),
            (MARKS["on" if row.on else "off"], "dim" if dim else "accent"),
            (warned, "fallback"),
            (fit(rule.name, min(self._names, max(_NAME, width // 3))), "dim" if dim else "strong"),
        ]
        end, sign = self._count(row), f" {SEVERITY_SIGNS[rule.severity]} "
        room = width - sum(len(text) for text, _ in (*start, *end)) - len(sign) - 1
        if room - self._severities > self._limits:  # its sign has the severity too; the limit is nowhere else
            sign += f"{rule.severity:{self._severities}} "
            room -= self._severities + 1
        start = [*start, (sign, "dim" if dim else rule.severity)]
        return [*start, (fit(clip(rule_words.summary(rule), room), room) + " ", "dim" if dim else ""), *end]

    def _count(self, row: FormRow) -> Pieces:
        """ " 12 +3 -1": right-aligned, what changed in columns of its own where anything did."""
        numbers = max((len(f"{count.violations:,}") for count in self._counts.values()), default=0)
        changes = max((len(_change(count)) for count in self._counts.values()), default=0)
        count = self._counts.get(row.rule.name)
        if count is None:
            return [(" " * (numbers + changes), "")]
        number = f"{count.violations:,}".rjust(numbers)
        return [(number, row.rule.severity if count.violations else "dim"), (_change(count).ljust(changes), "accent")]

    def _key(self, row: FormRow, width: int) -> Pieces:
        listed = bool(options(row.rule, row.key))
        fold = MARKS["open" if (row.rule.name, row.key) in self._opened else "closed"] if listed else " "
        mark = "!" if (row.number, row.key) in self._warned else " "
        start = f"   {fold} "
        value = rule_words.value_words(row.rule, row.key)
        style = "" if (row.number, row.key) in self.form.lines and not self.wrong else "dim"
        room = width - len(start) - _KEY - 2
        return [(start, "dim"), (mark, "fallback"), (f"{row.key:{_KEY}} ", style), (clip(value, room), style)]

    # ---------------------------------------------------------------- what keys do

    def _changed(self, action: str, row: FormRow) -> str | Flash:
        """The text that an action makes of a row; where there is none, why."""
        change, unchanged = _CHANGES[action]
        try:
            if self.wrong:
                hint = "] goes there, Z takes the last edit back"
                raise AcceleratorError(f"line {self.wrong} of the text has a mistake", hint=hint)
            text = change(self.form, row)
        except AcceleratorError as error:
            return Flash(error.in_one_line, "error")
        return text if text is not None else Flash(unchanged.format(rule=row.rule.name))

    def why_off(self, action: str) -> str:
        """Why an action changes nothing where the cursor is; "" where it does, and of others."""
        row = self.chosen
        changed = self._changed(action, row) if action in _CHANGES and row is not None else ""
        return changed.text if isinstance(changed, Flash) else ""

    def _change(self, action: str) -> bool:
        """Put the text in force that an action makes; flash why not where there is none."""
        row = self.chosen
        changed = self._changed(action, row) if row is not None else None
        if isinstance(changed, str):
            self._edit(changed)
            self.show_text(changed)
        elif changed is not None:
            self.post_message(changed)
        return isinstance(changed, str)

    def action_switch(self) -> None:
        self._change("switch")

    def action_step(self, up: bool) -> None:
        self._change(f"step({up})")

    def action_remove(self) -> None:
        row = self.chosen
        if row is None:
            return
        self.place_cursor(self._place_of((row.rule.name, "", "")))
        if self._change("remove"):
            self.post_message(Flash(f"{row.rule.name} is taken out: Z brings it back"))

    def action_open(self) -> None:
        """Open or fold what the row holds; else write its value. What is on or off is switched by space alone."""
        row = self.chosen
        if row is None:
            return
        if not row.choice and (not row.key or options(row.rule, row.key)):
            self._fold(row, unfold=(row.rule.name, row.key) not in self._opened)
        elif row.choice or isinstance(getattr(row.rule, row.key), bool):
            self.post_message(Flash("space switches it"))
        elif has_globs(row.rule, row.key) and len(spelled(row.rule, row.key)) > _TYPED:
            self.post_message(self.LineRequest(self.text_line))
        elif self.wrong:
            self.action_switch()  # which says why nothing can be written
        else:
            self.post_message(self.ValueRequest(self.form, row))

    def action_inward(self) -> None:
        row = self.chosen
        if row is None or row.choice:
            return
        if (row.rule.name, row.key) in self._opened:
            self.action_move(1)
        elif not row.key or options(row.rule, row.key):
            self._fold(row, unfold=True)

    def action_close(self) -> None:
        """Fold what is open here, or what the row is in; a search is ended first."""
        if self._finder:
            self.action_forget()
            return
        row = self.chosen
        if row is None:
            return
        key = row.key if row.choice or (row.rule.name, row.key) in self._opened else ""
        self._fold(FormRow(row.number, row.rule, key), unfold=False)

    def _fold(self, row: FormRow, *, unfold: bool) -> None:
        place = row.rule.name, row.key
        self._opened = self._opened | {place} if unfold else self._opened - {place}
        self.cursor = self._place_of(row.place)
        self._lay()
        self.post_message(self.Moved(self, self.cursor))

    def _place_of(self, place: tuple[str, str, str]) -> int:
        return next(at for at, row in enumerate(self.items) if row.place == place)

    def action_copy(self) -> None:
        row = self.chosen
        if row is not None and (row.number, "") in self.form.lines:
            self.post_message(CopyRequest(edit.rule_text(self.form.text, row.number), "the rule"))


def _change(count: Count) -> str:
    """ " +3 -1": what the last edit changed."""
    words = [f"+{count.came:,}"] if count.came else []
    words += [f"-{count.went:,}"] if count.went else []
    return "".join(f" {word}" for word in words)
