"""The pane Rules: the rules in force, their text, and an editor for both."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static, TextArea

from idbg.accelerators import edit, values
from idbg.checking.relax import relaxed_text
from idbg.constraints import kinds
from idbg.format.amounts import counted
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS
from idbg.schema.errors import AcceleratorError
from idbg_tui.messages import EditorRequest, Flash, RulesChanged
from idbg_tui.panes.prompting import PromptingPane
from idbg_tui.panes.rules import form as rule_form
from idbg_tui.panes.rules import summary
from idbg_tui.panes.rules import words as rule_words
from idbg_tui.panes.rules.document import RulesDocument
from idbg_tui.panes.rules.editor import TomlEditor
from idbg_tui.panes.rules.form import Count
from idbg_tui.panes.rules.form_rows import RuleRows
from idbg_tui.panes.rules.summary import RunSummary
from idbg_tui.panes.rules.views import DiffRows, RelaxRows
from idbg_tui.panes.searchable import SearchablePane
from idbg_tui.state import queries, stages
from idbg_tui.state.state import State
from idbg_tui.widgets.clicks import choice
from idbg_tui.widgets.lines import Lines, clip
from idbg_tui.widgets.picker import Picker
from idbg_tui.widgets.prompt import Prompt

_DEBOUNCE = 0.15  # seconds after the last key
_LOOK = 1.0  # seconds between looks whether the file is still there

Hints = tuple[tuple[str, str], ...]

_COMMON: Hints = (("Z", "undo"), ("^y", "redo"), ("^s", "save"), ("S", "save as new"))
VIEW_HINTS: dict[str, Hints] = {
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


class RulesPane(PromptingPane, SearchablePane):
    """The accelerator's rules as a form or as TOML, edited in place; what it would take; what was edited.

    The last good rules hold while what is typed is wrong. Edits are posted once no key has come for a moment.
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
        Binding("S", "save_as", "save as a new accelerator", show=False),
        Binding("ctrl+s", "save", "save", show=False),
        Binding("Z", "undo", "undo the last change", show=False),
        Binding("ctrl+y", "redo", "redo what was undone", show=False),
        Binding("L", "take", "take the file's text in the place of the edits (undo brings them back)", show=False),
        Binding("e", "external", "open the rules in $EDITOR", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.document = RulesDocument()
        self.editor = TomlEditor(self.document)
        self.form, self.relax, self.diff = RuleRows(self.editor.become), RelaxRows(), DiffRows()
        self.summary = RunSummary()
        self._views: dict[str, Widget] = {
            "form": self.form,
            "text": self.editor,
            "relax": self.relax,
            "diff": self.diff,
        }
        self.view = "form"
        self._state: State | None = None
        self._seen: tuple[object, ...] = ()
        self._rules_seen = -1
        self._posting: Timer | None = None

    def compose(self) -> ComposeResult:
        for view, widget in self._views.items():
            widget.display = view == self.view
            yield widget
        self.summary.display = False
        yield self.summary
        yield Static(id="about", markup=False)
        yield Prompt()
        yield Static(id="status", markup=False)

    def on_mount(self) -> None:
        self.set_interval(_LOOK, self._look)

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
            self._take(state)
            refused, warned = self.document.refused, [warning.line for warning in self.document.warnings]
            self.editor.mark(refused.line if refused else 0, warned)
            self._show_problems()
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
        graphs = queries.level(state) if state.accelerator is not None else []
        counts = rule_form.counts((state.checks.findings(graph), state.checks.change(graph)) for graph in graphs)
        self.form.show_counts(counts, [warning.line for warning in self.document.warnings])
        self.border_subtitle = Content(self._subtitle(rule_form.total(counts)) if counts else "")
        self._show_about()
        if self.view == "relax":
            self.relax.show_state(self._state)

    def _subtitle(self, total: Count) -> str:
        """ "12 violations (+2 -1)": what the rules find in the graphs on the screen, and what the last edit changed."""
        edited = self.document.edited
        where = f" in {stages.names_of(queries.level(self._state))}" if self._state and not total.violations else ""
        changed = total.change_words or (" (no change)" if edited else "")
        return f"{'edited: ' if edited else ''}{counted(total.violations, 'violation')}{changed}{where}"

    def _show_view(self) -> None:
        """Show the text, and what follows from it, in the view that is shown."""
        if self.view == "form":
            self.form.show_text(self.document.text)
        elif self.view == "relax":
            self.relax.show_state(self._state)
        elif self.view == "diff":
            self.diff.show_document(self.document)
        self._show_about()
        self._show_title()

    def _show_problems(self) -> None:
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
        if row is None or not about.display:
            return
        words = rule_words.about(row.rule, row.key, form.text, form.lines.get((row.number, row.key), 0))
        source = rule_words.provenance(row.rule)
        width = self.content_size.width - 2  # its own is not known while it is hidden
        about.update(f"{clip(words, width)}\n{clip(source, width)}" if source else clip(words, 2 * width), layout=False)

    # ---------------------------------------------------------------- what comes in, and goes out

    def _take(self, state: State) -> None:
        """Take the text that is in force, unless it would overwrite unsaved edits of the same file."""
        fresh = self.editor.is_fresh
        message = self.document.take(state.rules, state.target, fresh=fresh)
        if self.document.theirs is state.rules:
            self._post()  # what is shown here stays in force
        elif fresh and self.document.text:
            self.editor.open()
        else:
            self.editor.follow()
        if message:
            self.post_message(Flash(message))

    def _look(self) -> None:
        """Say it once the user's file is gone, or there again."""
        if self.document.look():
            self._show_problems()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Post the text once no key has come for a moment."""
        event.stop()
        self._stop_posting()
        self._posting = self.set_timer(_DEBOUNCE, self._post)
        self.document.changed()
        self._show_view()

    def _post(self) -> None:
        """Post what is shown, unless it is what is in force already."""
        self._posting = None
        text = self.document.unsent()
        if text is not None:
            self.post_message(RulesChanged(text))

    def _stop_posting(self) -> None:
        if self._posting is not None:
            self._posting.stop()
            self._posting = None

    # ---------------------------------------------------------------- views

    @property
    def views(self) -> Sequence[str]:
        return tuple(self._views)

    def choose_view(self, view: str) -> None:
        """Show another view; form and text stay at the same rule."""
        left = self.view
        self._go(view)
        if view == "text":
            self.editor.go_to(self.form.wrong or self.form.text_line)
        elif left == "text":
            self.form.select_line(self.editor.number)

    def action_view(self, step: int) -> None:
        """The view before or after."""
        self.choose_view(self.views[(self.views.index(self.view) + step) % len(self.views)])

    def action_back(self) -> None:
        self.choose_view("form")

    def why_off(self, action: str) -> str:
        return self.form.why_off(action) if self.view == "form" else ""

    def _go(self, view: str) -> None:
        self.view = view
        self._show_view()
        self._show_widgets()
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
        self.editor.become(edit.add_new(edit.checked(self.document.text), kind))
        self.form.show_text(self.document.text)
        self.form.select_last()
        self.editor.go_to(self.form.text_line)
        self._show_about()

    def _current_line(self) -> int:
        """The 1-based line that the user is at."""
        return self.editor.number if self.view == "text" else self.form.text_line

    def action_take(self) -> None:
        """Show the file's text in the place of the edits; Z brings those back."""
        if self.document.take_theirs():
            self.editor.follow()
            self._show_problems()

    def action_external(self) -> None:
        """Open the file itself where the text is the same; else a copy, which comes back when the editor ends."""
        document, path, line = self.document, self.document.home.path, self._current_line()
        if path is not None and not document.edited and not document.gone:
            self.post_message(EditorRequest(str(path), line))
        else:
            self.post_message(EditorRequest(document.home.name, line, document.text))

    def action_undo(self) -> None:
        self.editor.undo()

    def action_redo(self) -> None:
        self.editor.redo()

    # ---------------------------------------------------------------- files

    def action_save(self) -> None:
        """Write the file that the rules came from; of a preset, which is not ours to change, a new one in the working
        folder, unless it would overwrite another.
        """
        document, path = self.document, self.document.save_path
        if document.would_empty():
            self.post_message(Flash(f"the rules are empty: ^s again writes that into {path}, Z undoes", "warning"))
        elif document.would_replace():
            self._prompt_path(f"{path} is there already: give another path, or enter writes over it", path)
        else:
            self.attempt(self._save)

    def _save(self) -> None:
        path = self.document.save()
        self._saved(path, f"saved {path.absolute()}")

    def action_save_as(self) -> None:
        self._prompt_path()

    def _prompt_path(self, refused: str = "", confirmed: Path | None = None) -> None:
        self.document.confirmed = confirmed
        suggested = f"./{self.document.home.new_path}"
        self.prompt("Save as a new accelerator, named for its file:", suggested, self._save_as, refused)

    def _save_as(self, typed: str) -> None:
        path = self.document.save_as(typed)
        self.editor.follow()
        self._saved(path, f"saved: --accelerator {path} uses it")

    def _saved(self, path: Path, message: str) -> None:
        """Put what was saved in force, as the text of that file."""
        self._stop_posting()
        self.post_message(RulesChanged(self.document.text, str(path)))
        self._show_problems()
        self.post_message(Flash(message))
