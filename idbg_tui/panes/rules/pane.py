"""The pane Rules: the rules in force, their text, and an editor for both."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from idbg.accelerators import edit, values
from idbg.checking.relax import relaxed_text
from idbg.constraints import kinds
from idbg.format.amounts import counted
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS
from idbg.schema.errors import AcceleratorError
from idbg_tui.messages import Flash
from idbg_tui.panes.rules import form as rule_form
from idbg_tui.panes.rules import summary
from idbg_tui.panes.rules import words as rule_words
from idbg_tui.panes.rules.editor import TomlEditor
from idbg_tui.panes.rules.form import Count
from idbg_tui.panes.rules.form_rows import RuleRows
from idbg_tui.panes.rules.summary import RunSummary
from idbg_tui.panes.rules.text import RuleText
from idbg_tui.panes.rules.views import DiffRows, RelaxRows
from idbg_tui.panes.searchable import SearchablePane
from idbg_tui.state import queries, stages
from idbg_tui.state.state import State
from idbg_tui.widgets.clicks import choice
from idbg_tui.widgets.lines import Lines, clip
from idbg_tui.widgets.picker import Picker
from idbg_tui.widgets.prompt import Prompt

RulesView = Literal["form", "text", "relax", "diff"]
Hints = tuple[tuple[str, str], ...]

_COMMON: Hints = (("Z", "undo"), ("^y", "redo"), ("^s", "save"), ("S", "save as new"))
VIEW_HINTS: dict[RulesView, Hints] = {
    "form": (
        ("space", "on/off"),
        ("+ _", "value"),
        ("enter", "open"),
        ("[ ]", "form, TOML, what would it take, diff"),
        ("A", "add"),
        ("^x", "delete"),
        ("/", "find"),
        *_COMMON,
        ("h l", "fold"),
    ),
    "text": (
        ("enter", "edit"),
        ("[ ]", "form, TOML, what would it take, diff"),
        ("+ _", "value"),
        ("space", "on/off"),
        ("A", "add"),
        *_COMMON,
    ),
    "relax": (
        ("space", "change it so"),
        ("A", "all of them"),
        ("H", "every severity"),
        ("[ ]", "view"),
        ("esc", "back"),
    ),
    "diff": (("[ ]", "view"), ("esc", "back"), ("y", "copy"), *_COMMON),
}
"""What the footer says of the keys of each view."""
_EDITING: Hints = (("esc", "ends editing"), ("^s", "save"), ("^z", "undo"), ("^y", "redo"))


class RulesPane(RuleText, SearchablePane):
    """The accelerator's rules as a form or as TOML, edited in place; what it would take; what was edited.

    The last good rules hold while what is typed is wrong.
    """

    ID = "rules"
    HINTS: Hints = VIEW_HINTS["form"]
    DEFAULT_CSS = """
    RulesPane { layout: vertical; }
    RulesPane > TomlEditor, RulesPane > Lines { height: 1fr; }
    RulesPane > #about { height: 2; padding: 0 1; color: $foreground 60%; }
    RulesPane > #status { height: auto; max-height: 3; padding: 0 1; color: $foreground 60%; display: none; }
    RulesPane > #status.-shown { display: block; }
    RulesPane > #status.-warned { color: $text-warning; }
    RulesPane > #status.-wrong { color: $text-error; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "view(-1)", "the view before", show=False),
        Binding("right_square_bracket", "view(1)", "the next view", show=False),
        Binding("escape", "back", "back to the form", show=False),
        Binding("A", "add", "add a rule", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.form, self.relax, self.diff = RuleRows(self.editor.become), RelaxRows(), DiffRows()
        self.summary = RunSummary()
        self.view: RulesView = "form"
        self._state: State | None = None
        self._seen: tuple[object, ...] = ()
        self._rules_seen = -1

    def compose(self) -> ComposeResult:
        for view, widget in self._views.items():
            widget.display = view == self.view
            yield widget
        self.summary.display = False
        yield self.summary
        yield Static(id="about", markup=False)
        yield Prompt()
        yield Static(id="status", markup=False)

    @property
    def _views(self) -> dict[RulesView, Widget]:
        return {"form": self.form, "text": self.editor, "relax": self.relax, "diff": self.diff}

    def shown_widget(self) -> Widget:
        return self.summary if self.is_summary else self._views[self.view]

    @property
    def is_summary(self) -> bool:
        """Whether the run in short stands in the place of a form without rules."""
        return self.view == "form" and self._state is not None and queries.is_without_rules(self._state)

    def _show_widgets(self) -> None:
        """Display the shown view alone; the focus stays in the pane."""
        focused, shown = self.has_focus_within, self.shown_widget()
        if shown.display:
            return
        for widget in (*self._views.values(), self.summary):
            widget.display = widget is shown
        self.HINTS = self._hints
        if focused:
            shown.focus()

    @property
    def _hints(self) -> Hints:
        if not self.is_summary:
            return VIEW_HINTS[self.view]
        return summary.HINTS if self._state is not None and self._state.live else summary.SAVED

    # ---------------------------------------------------------------- what is shown

    def on_resize(self) -> None:
        self._show_about()
        self._show_title()

    def show(self, state: State) -> None:
        """Take the text that is in force (unless it would overwrite unsaved edits), its error, and what it changed."""
        if not self.is_mounted:
            return
        self._state = state
        if state.versions.rules != self._rules_seen:
            self._rules_seen = state.versions.rules
            self.take(state)
            refused = self.document.refused
            self.editor.mark_wrong(refused.line if refused else 0)
            self.editor.mark_warned(frozenset(warning.line for warning in self.document.warnings))
            self.show_problems()
            self.form.show_text(self.document.text)
        seen = (state.versions.rules, tuple(map(id, queries.level(state))))
        if seen != self._seen:
            self._seen = seen
            self._show_checked(state)
        self._show_widgets()
        if self.is_summary:
            self.summary.show_run(state)
        self._show_title()

    def _show_checked(self, state: State) -> None:
        """Show what the rules find in the graphs on the screen."""
        counts = self._counts(state)
        self.form.show_counts(counts, [warning.line for warning in self.document.warnings])
        self.border_subtitle = Content(self._subtitle(rule_form.total(counts)) if counts else "")
        self._show_about()
        if self.view == "relax":
            self.relax.show_for(self._state)

    def _counts(self, state: State) -> dict[str, Count]:
        if state.accelerator is None:
            return {}
        graphs = queries.level(state)
        return rule_form.counts((state.checks.findings(graph), state.checks.change(graph)) for graph in graphs)

    def _subtitle(self, total: Count) -> str:
        """ "12 violations (+2 -1)": what the rules find in the graphs on the screen, and what the last edit changed."""
        edited = self.document.edited
        where = f" in {stages.names_of(queries.level(self._state))}" if self._state and not total.violations else ""
        changed = total.change_words or (" (no change)" if edited else "")
        return f"{'edited: ' if edited else ''}{counted(total.violations, 'violation')}{changed}{where}"

    def text_changed(self) -> None:
        if self.view == "form":
            self.form.show_text(self.document.text)
            self._show_about()
        elif self.view == "diff":
            self.diff.show_document(self.document)
        self._show_title()

    def show_problems(self) -> None:
        """What is wrong with the text, and with its file."""
        problems, document = self.document.problems(), self.document
        status = self.query_one("#status", Static)
        status.update("\n".join(problems))
        status.set_class(bool(problems), "-shown")
        status.set_class(document.refused is not None, "-wrong")
        status.set_class(bool(document.warnings) and len(problems) == 1, "-warned")
        self._show_title()

    def _show_title(self) -> None:
        self.mark = SEVERITY_SIGNS["reject"] if self.document.refused else ""
        words = [self.document.home.name, "edited" if self.document.edited else ""]
        if self.is_summary and self._state is not None and self._state.run is not None:
            words.append(f"run {self._state.run.number}")
        if self.view == "text":
            words.append("editing, esc ends" if self.editor.editing else "enter edits")
        if self.view == "relax":
            words = ["what would it take?"]
        elif self.view == "diff":
            words = [f"+{self.diff.added} -{self.diff.removed} lines against {self.document.base.label}"]
        shown = f" {MARKS['separator']} ".join(word for word in words if word)
        title, rule = self.heading() + Content(f" {MARKS['rule']} {shown}"), Content(f" {MARKS['rule']} ")
        names = (choice(view, f"app.view('rules', '{view}')", shown=view == self.view) for view in self.views)
        whole = Content.assemble(title, rule, *names)
        self.set_title(whole if whole.cell_length <= self.size.width - 4 else title)  # the border keeps two cells

    def _show_about(self) -> None:
        """What the selected row of the form is for, and which document says so."""
        row, form = self.form.chosen, self.form.form
        about = self.query_one("#about", Static)
        about.display = self.view == "form" and row is not None and not self.is_summary
        if row is None:
            return
        words = rule_words.about(row.rule, row.key, form.text, form.lines.get((row.number, row.key), 0))
        source = rule_words.provenance(row.rule)
        width = self.content_size.width - 2  # its own is not known while it is hidden
        about.update(f"{clip(words, width)}\n{clip(source, width)}" if source else clip(words, 2 * width), layout=False)

    # ---------------------------------------------------------------- views

    def action_view(self, step: int) -> None:
        """The view before or after; form and text stay at the same rule."""
        views = list(self._views)
        self._turn_to(views[(views.index(self.view) + step) % len(views)])

    def _turn_to(self, view: RulesView) -> None:
        row, left = self.form.chosen, self.view
        if view == "text":
            line = self.form.wrong or (self.form.form.line(row) if row else 0)
            self._go("text")
            self.editor.go_to(line or 1)
            return
        self._go(view)
        if left == "text":
            self.form.select_line(self.editor.cursor_location[0] + 1)

    @property
    def views(self) -> Sequence[str]:
        return tuple(self._views)

    def choose_view(self, view: str) -> None:
        self._turn_to(next(each for each in self._views if each == view))

    def why_off(self, action: str) -> str:
        return self.form.why_off(action) if self.view == "form" else ""

    def action_back(self) -> None:
        self._turn_to("form")

    def _go(self, view: RulesView) -> None:
        self.view = view
        if view == "form":
            self.form.show_text(self.document.text)
        elif view == "relax":
            self.relax.show_for(self._state)
        elif view == "diff":
            self.diff.show_document(self.document)
        self._show_widgets()
        self.HINTS = self._hints
        self._show_about()
        self._show_title()
        self.shown_widget().focus()

    # ---------------------------------------------------------------- what the views say

    def on_rule_rows_line_request(self, event: RuleRows.LineRequest) -> None:
        event.stop()
        self._go("text")
        self.editor.go_to(event.line)
        self.post_message(Flash("a long list is edited as text: enter edits, esc goes back to the form"))

    def on_rule_rows_value_request(self, event: RuleRows.ValueRequest) -> None:
        event.stop()
        form, row = event.form, event.row

        def take(typed: str) -> None:
            if self.document.text != form.text:
                raise AcceleratorError("the rules have changed since", hint="esc, and ask again")
            self.editor.become(rule_form.typed_value(form, row, typed) or form.text)

        known = ", ".join(values.choices(row.rule.kind, row.key)) if row.key != "dims" else ""
        listed = "names or globs, with commas between" if values.has_globs(row.rule, row.key) else ""
        question = f"{row.rule.name}: {row.key} ({known or listed or 'enter takes it, esc leaves it as it is'})"
        self.prompt(question, values.spelled(row.rule, row.key), take)

    def on_lines_moved(self, event: Lines.Moved) -> None:
        event.stop()
        self._show_about()

    def on_relax_rows_wanted(self, event: RelaxRows.Wanted) -> None:
        event.stop()
        self.attempt(lambda: self.editor.become(relaxed_text(self.document.text, event.relaxations)))

    def on_toml_editor_mode_changed(self, event: TomlEditor.ModeChanged) -> None:
        """Not stopped: the footer, which says what the keys do, is the app's."""
        self.typed_in = self.editor.editing
        self.HINTS = _EDITING if self.editor.editing else self._hints
        self._show_title()

    # ---------------------------------------------------------------- keys of every view

    def action_add(self) -> None:
        def add(kind: str | None) -> None:
            if kind is not None:
                self.attempt(lambda: self._add(kind))

        listed = [(kind, rule_words.kind_words(kind)) for kind in kinds()]
        self.app.push_screen(Picker("Kind of the new rule", listed, ""), add)

    def _add(self, kind: str) -> None:
        edit.checked(self.document.text)
        self.editor.become(edit.add_new(self.document.text, kind))
        form = rule_form.read(self.document.text)
        number = max(number for number, key in form.lines if not key)
        self.form.show_text(self.document.text)
        self.form.select_new(number)
        self.editor.go_to(form.lines[number, ""])
        self._show_about()

    def current_line(self) -> int:
        if self.view == "text":
            return self.editor.cursor_location[0] + 1
        row = self.form.chosen
        return self.form.form.line(row) or 1 if row else 1
