"""Which rules are in force, and what does changing one change?"""

from pathlib import Path

from textual.app import ComposeResult
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static, TextArea

from idbg.accelerator import PRESETS
from idbg_tui.messages import EditorAsked, Flash, RulesChanged
from idbg_tui.panes.pane import Pane
from idbg_tui.signs import MARKS, SEVERITY_SIGNS
from idbg_tui.state import State
from idbg_tui.widgets.toml_editor import TomlEditor

_DEBOUNCE = 0.15  # seconds after the last key
_LOOK = 1.0  # seconds between looks whether the file is still there
_READING = (("enter", "edit"), ("+ -", "value"), ("space", "on/off"), ("^s", "save"), ("^z", "undo"))
_EDITING = (("esc", "ends editing"), ("^s", "save"), ("^z", "undo"), ("^y", "redo"))


class RulesPane(Pane):
    """The accelerator's TOML, edited in place. The last good rules hold while what is typed is wrong."""

    NUMBER = 8
    LABEL = "Rules"
    HINTS: tuple[tuple[str, str], ...] = _READING
    DEFAULT_CSS = """
    RulesPane { layout: vertical; }
    RulesPane > TomlEditor { height: 1fr; }
    RulesPane > #status { height: auto; max-height: 3; padding: 0 1; color: $foreground 60%; display: none; }
    RulesPane > #status.-said { display: block; }
    RulesPane > #status.-wrong { color: $text-error; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._origin = ""  # the preset or the file that the text comes from
        self._saved = ""  # the text as it is there
        self._mine: Path | None = None  # that file, if it is the user's
        self._gone = False  # it was deleted
        self._error, self._line = "", 0
        self._in_force = ""
        self._sent: list[str] = []  # texts that were posted and have not come back yet
        self._theirs: tuple[str, str] | None = None  # (text, origin) that was not taken because of unsaved edits
        self._seen = -1
        self._shown_counts = ""
        self._posting: Timer | None = None

    def compose(self) -> ComposeResult:
        yield TomlEditor()
        yield Static(id="status", markup=False)

    def on_mount(self) -> None:
        self.set_interval(_LOOK, self._look)

    @property
    def edited(self) -> bool:
        """True while the text differs from that of its file or preset."""
        return self.is_mounted and self._editor.text != self._saved

    @property
    def _editor(self) -> TomlEditor:
        return self.query_one(TomlEditor)

    # what is shown

    def show(self, state: State) -> None:
        """Take the text that is in force (unless it would overwrite unsaved edits), its error, and what it changed."""
        if not self.is_mounted:
            return
        if state.versions.rules != self._seen:
            self._seen = state.versions.rules
            self._in_force = state.rules.text
            self._take(state.rules.text, state.rules.origin)
            current = state.rules.text == self._editor.text
            self._editor.mark_wrong(state.rules.line if current else 0)
            self._error, self._line = (state.rules.error, state.rules.line) if current else ("", 0)
            self._say()
        self._show_counts(state)

    def _take(self, text: str, origin: str) -> None:
        if origin == "editor" and text in self._sent:
            del self._sent[: self._sent.index(text) + 1]
            return
        editor = self._editor
        from_file = origin not in ("", "editor")
        if from_file and self.edited and text not in (editor.text, self._saved) and self._origin:
            self._theirs = text, origin
            self._post()  # what is shown here stays in force
            return
        if from_file:
            self._come_from(origin, text)
        self._theirs = None
        fresh = not editor.text
        editor.take(text)
        if fresh:
            editor.start_at("[[rules]]")

    def _come_from(self, origin: str, text: str) -> None:
        """The text is from there from now on, and was saved there as it is given."""
        self._origin, self._saved = origin, text
        path = Path(origin)
        mine = path.suffix == ".toml" and path.is_file() and PRESETS not in path.absolute().parents
        self._mine = path if mine else None
        self._gone = False

    def _look(self) -> None:
        """Say it once the user's file is gone, or there again."""
        gone = self._mine is not None and not self._mine.exists()
        if gone != self._gone:
            self._gone = gone
            self._say()

    def _say(self) -> None:
        """What is wrong with the text, and with its file."""
        said = []
        if self._error:
            # a syntax error quotes its line with the number, which stands in front already
            error = self._error.replace(f"line {self._line}: ", "") if self._line else self._error
            place = f"line {self._line}: " if self._line else ""
            said.append(f"{place}{error} (the last good rules stay in force)")
        if self._theirs is not None:
            said.append(self._why_not(self._theirs[1]))
        if self._gone:
            said.append(f"{self._file_name} was deleted on disk: these rules stay in force, ^s writes it again")
        status = self.query_one("#status", Static)
        status.update("\n".join(said))
        status.set_class(bool(said), "-said")
        status.set_class(bool(self._error), "-wrong")

    def _why_not(self, origin: str) -> str:
        """Why the text from `origin` is not shown: there are edits that it would overwrite."""
        if Path(origin).name == self._file_name:
            return f"{self._file_name} changed on disk, and has edits here: t takes the file's text"
        return f"{self._file_name} has unsaved edits here, and stays: ^s saves them, t takes {Path(origin).name}"

    def _show_counts(self, state: State) -> None:
        self._show_title()
        counts = self._counts(state)
        if counts != self._shown_counts:
            self._shown_counts = counts
            self.border_subtitle = Content(counts)

    def _counts(self, state: State) -> str:
        """ "12 violations (+2 -1)": what the rules find in the graphs on the screen, and what the last edit changed."""
        if state.accelerator is None or not state.level:
            return ""
        found = sum(len(state.findings(graph)) for graph in state.level)
        changes = [state.verdicts.change(graph) for graph in state.level]
        came = sum(group.count for change in changes for group in change.appeared)
        went = sum(group.count for change in changes for group in change.went)
        changed = f" (+{came} -{went})" if came or went else " (no change)" if self.edited else ""
        words = f"{found} violation{'' if found == 1 else 's'}{changed}"
        return f"edited: {words}" if self.edited else words

    @property
    def _file_name(self) -> str:
        name = Path(self._origin).name or "no accelerator"
        return name if name.endswith(".toml") or not self._origin else f"{name}.toml"

    def _show_title(self) -> None:
        self.mark = SEVERITY_SIGNS["reject"] if self.query_one("#status").has_class("-wrong") else ""
        mode = "editing, esc ends" if self._editor.editing else "edited" if self.edited else ""
        words = f" {MARKS['rule']} {self._file_name}" + (f" {MARKS['separator']} {mode}" if mode else "")
        self.set_title(self.heading() + Content(words))

    # what the user does

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Post the text once no key has come for a moment."""
        event.stop()
        if self._posting is not None:
            self._posting.stop()
        self._posting = self.set_timer(_DEBOUNCE, self._post)
        self._show_title()

    def _post(self) -> None:
        """Post what is shown, unless it is what is in force already."""
        self._posting = None
        text = self._editor.text
        if text != (self._sent[-1] if self._sent else self._in_force):
            self._sent.append(text)
            self.post_message(RulesChanged(text))

    def on_toml_editor_mode_changed(self, event: TomlEditor.ModeChanged) -> None:
        """Not stopped: the footer, which says what the keys do, is the app's."""
        self.HINTS = _EDITING if self._editor.editing else _READING
        self._show_title()

    def on_toml_editor_external_asked(self, event: TomlEditor.ExternalAsked) -> None:
        """Open the file itself where the text is the same; else a copy, which comes back when the editor ends."""
        event.stop()
        path = self._mine
        if path is not None and not self.edited and not self._gone:
            self.post_message(EditorAsked(str(path), event.line))
        else:
            self.post_message(EditorAsked(self._file_name, event.line, self._editor.text))

    def on_toml_editor_take_asked(self, event: TomlEditor.TakeAsked) -> None:
        event.stop()
        if self._theirs is None:
            return
        text, origin = self._theirs
        self._theirs = None
        self._come_from(origin, text)
        self._editor.take(text)
        self._error, self._line = "", 0
        self._say()

    def on_toml_editor_save_asked(self, event: TomlEditor.SaveAsked) -> None:
        event.stop()
        path = self._save_path()
        text = self._editor.text
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            self.post_message(Flash(f"{path} cannot be written: {error.strerror or error}", "error"))
            return
        self._come_from(str(path), text)
        self._theirs = None
        self._say()
        self.post_message(RulesChanged(text, str(path)))
        self.post_message(Flash(f"saved {path.absolute()}"))
        self._show_title()

    def _save_path(self) -> Path:
        """The file that the rules came from; for a preset, which is not ours to change, one in the working folder."""
        return self._mine or Path(f"{Path(self._origin or 'rules').stem}-edited.toml")
