"""Keys that every view of the rules has: undo, save, load, `$EDITOR`; edits are posted after a moment."""

from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.timer import Timer
from textual.widgets import TextArea

from idbg_tui.messages import EditorRequest, Flash, RulesChanged
from idbg_tui.panes.prompting import PromptingPane
from idbg_tui.panes.rules.document import RulesDocument
from idbg_tui.panes.rules.editor import TomlEditor
from idbg_tui.state.state import State

_DEBOUNCE = 0.15  # seconds after the last key
_LOOK = 1.0  # seconds between looks whether the file is still there


class RuleText(PromptingPane):
    """Undo, saving, the file and `$EDITOR`: what is the same in all views of the document."""

    BINDINGS: ClassVar[list[BindingType]] = [
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
        self._posting: Timer | None = None

    def show_problems(self) -> None:
        """Show what is wrong with the text or its file, and where it comes from."""
        raise NotImplementedError

    def text_changed(self) -> None:
        """Show another text."""
        raise NotImplementedError

    def current_line(self) -> int:
        """The 1-based line that the user is at."""
        raise NotImplementedError

    def on_mount(self) -> None:
        self.set_interval(_LOOK, self._look)

    def take(self, state: State) -> None:
        """Take the text that is in force, unless it would overwrite unsaved edits of the same file."""
        fresh = self.editor.is_fresh
        taken = self.document.take(state.rules, state.target, fresh=fresh)
        if taken.contested:
            self._post()  # what is shown here stays in force
        elif fresh and self.document.text:
            self.editor.open()
        else:
            self.editor.follow()
        if taken.message:
            self.post_message(Flash(taken.message))

    def _look(self) -> None:
        """Say it once the user's file is gone, or there again."""
        if self.document.look():
            self.show_problems()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Post the text once no key has come for a moment."""
        event.stop()
        self._stop_posting()
        self._posting = self.set_timer(_DEBOUNCE, self._post)
        self.document.changed()
        self.text_changed()

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

    # ---------------------------------------------------------------- keys

    def action_take(self) -> None:
        """Show the file's text in the place of the edits; Z brings those back."""
        if self.document.take_theirs():
            self.editor.follow()
            self.show_problems()

    def action_external(self) -> None:
        """Open the file itself where the text is the same; else a copy, which comes back when the editor ends."""
        document, path, line = self.document, self.document.home.path, self.current_line()
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
        self.document.confirm(confirmed)
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
        self.show_problems()
        self.post_message(Flash(message))
