"""Is what is shown of the rules what is in force and what is in their file, and how does it get there?"""

import os
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.timer import Timer
from textual.widgets import TextArea

from idbg.accelerators import edit
from idbg.accelerators.parse import parse
from idbg.schema.errors import BadInput
from idbg_tui.messages import EditorAsked, Flash, RulesChanged
from idbg_tui.panes.prompting import AskingPane
from idbg_tui.panes.rules.editor import TomlEditor
from idbg_tui.panes.rules.files import RulesHome, home_of, home_of_target, write_whole
from idbg_tui.state.state import State

_DEBOUNCE = 0.15  # seconds after the last key
_LOOK = 1.0  # seconds between looks whether the file is still there


class RuleText(AskingPane):
    """The one text that every view of the rules edits, with one history of undo: its editor's.

    What it becomes is posted; what others make of it (the file on disk, another accelerator, `$EDITOR`) is taken.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("S", "save_as", show=False),
        Binding("ctrl+s", "save", show=False),
        Binding("ctrl+z", "undo", show=False),
        Binding("ctrl+y", "redo", show=False),
        Binding("t", "take", show=False),
        Binding("e", "external", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.editor = TomlEditor()
        self.home = RulesHome()
        self.gone = False  # the user's file was deleted
        self.theirs: tuple[str, str] | None = None  # (text, path) of the file, not taken because of unsaved edits
        self._bases: dict[Path, RulesHome] = {}  # what each file was made of that was saved in this session
        self._homes: dict[str, RulesHome] = {}  # of texts that a pick of another accelerator left: undo goes home too
        self._in_force = ""
        self._sent: list[str] = []  # texts that were posted and have not come back yet
        self._posting: Timer | None = None
        self._confirmed: Path | None = None  # a file that the user was told would be written over
        self._empty_told = False  # the user was told that ^s would empty the file

    def say(self) -> None:
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

    @property
    def edited(self) -> bool:
        """True while the text differs from that of its file or preset."""
        return self.is_mounted and self.editor.text != self.home.saved

    @property
    def base(self) -> RulesHome:
        """What the edits are compared with: the preset or the file that this one was made of, if it is known."""
        return self._bases.get(self.home.path.absolute(), self.home) if self.home.path else self.home

    # ---------------------------------------------------------------- what comes in

    def take(self, state: State) -> None:
        """Take the text that is in force, unless it would overwrite unsaved edits of the same file."""
        text, origin = state.rules.text, state.rules.origin
        self._in_force = text
        if origin == "editor" and text in self._sent:
            del self._sent[: self._sent.index(text) + 1]
            return
        fresh = not self.editor.text and not self.editor.history.undo_stack
        if origin not in ("", "editor"):
            if not self._taken_home(text, origin):
                return
        elif fresh and text:
            self.home = home_of_target(state.target)
        self.theirs = None
        if fresh:
            self.editor.load_text(text)  # what is opened first is where undo ends
            self.editor.start_at("[[rules]]")
        else:
            self.editor.take(text)

    def _taken_home(self, text: str, origin: str) -> bool:
        """Let the text be from there; False where it changed on disk while it has edits here."""
        before = self.home
        left = self.edited and bool(before.origin) and text != self.editor.text
        if left and before.is_file(origin) and text != before.saved:
            self.theirs = text, origin
            self._post()  # what is shown here stays in force
            return False
        self._come_home(home_of(origin, text))
        if before.origin and text != self.editor.text:
            self._homes |= {self.editor.text: before, text: self.home}
        if left:
            self.post_message(Flash(f"edits of {before.label} are one ^z away"))
        return True

    def _come_home(self, home: RulesHome) -> None:
        self.home, self.gone = home, False

    def _look(self) -> None:
        """Say it once the user's file is gone, or there again."""
        gone = self.home.path is not None and not self.home.path.exists()
        if gone != self.gone:
            self.gone = gone
            self.say()

    # ---------------------------------------------------------------- what goes out

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Post the text once no key has come for a moment."""
        event.stop()
        if self._posting is not None:
            self._posting.stop()
        self._posting = self.set_timer(_DEBOUNCE, self._post)
        self._empty_told = False
        if home := self._homes.get(self.editor.text):
            self._come_home(home)
        self.text_changed()

    def _post(self) -> None:
        """Post what is shown, unless it is what is in force already."""
        self._posting = None
        text = self.editor.text
        if text != (self._sent[-1] if self._sent else self._in_force):
            self._sent.append(text)
            self.post_message(RulesChanged(text))

    def action_take(self) -> None:
        """Show the file's text in the place of the edits; ctrl+z brings those back."""
        if self.theirs is None:
            return
        text, origin = self.theirs
        self.theirs = None
        self._come_home(home_of(origin, text))
        self.editor.take(text)
        self.say()

    def action_external(self) -> None:
        """Open the file itself where the text is the same; else a copy, which comes back when the editor ends."""
        self._open_outside(self.current_line())

    def _open_outside(self, line: int) -> None:
        path = self.home.path
        if path is not None and not self.edited and not self.gone:
            self.post_message(EditorAsked(str(path), line))
        else:
            self.post_message(EditorAsked(self.home.name, line, self.editor.text))

    def action_undo(self) -> None:
        self.editor.undo()

    def action_redo(self) -> None:
        self.editor.redo()

    def on_toml_editor_external_asked(self, event: TomlEditor.ExternalAsked) -> None:
        event.stop()
        self._open_outside(event.line)

    def on_toml_editor_take_asked(self, event: TomlEditor.TakeAsked) -> None:
        event.stop()
        self.action_take()

    def on_toml_editor_save_asked(self, event: TomlEditor.SaveAsked) -> None:
        event.stop()
        self.action_save()

    # ---------------------------------------------------------------- files

    def action_save(self) -> None:
        """Write the file that the rules came from; of a preset, which is not ours to change, a new one in the working
        folder, unless it would overwrite another.
        """
        path = self.home.path or self.home.new_path
        if not self._empty_told and self.home.saved.strip() and not self.editor.text.strip():
            self._empty_told = True
            self.post_message(Flash(f"the rules are empty: ^s again writes that into {path}, ^z undoes", "warning"))
            return
        if self.home.path is None and path.is_file():
            self._ask_path(f"{path} is there already: give another path, or enter writes over it", path)
        else:
            self.attempt(lambda: self._save(path))

    def _save(self, path: Path) -> None:
        write_whole(path, self.editor.text)
        self._saved(path)
        self.post_message(Flash(f"saved {path.absolute()}"))

    def action_save_as(self) -> None:
        self._ask_path()

    def _ask_path(self, refused: str = "", confirmed: Path | None = None) -> None:
        self._confirmed = confirmed
        self.ask("Save as a new accelerator, named for its file:", f"./{self.home.new_path}", self._save_as, refused)

    def _save_as(self, typed: str) -> None:
        """Write a new accelerator, named for its file. Raises IdbgError, with nothing written."""
        path = Path(os.path.expanduser(typed.strip()))
        if not typed.strip():
            raise BadInput("a path is needed", hint=f"for example {self.home.new_path}")
        if path.is_dir() or typed.strip().endswith("/"):
            raise BadInput(f"{path} is a folder", hint=f"give a file, for example {path / self.home.new_path}")
        path = path if path.suffix == ".toml" else path.with_name(f"{path.name}.toml")
        parse(self.editor.text)
        mine = self.home.is_file(str(path)) and bool(self.editor.text.strip())
        if path.exists() and path != self._confirmed and not mine:
            self._confirmed = path
            raise BadInput(f"{path} is there already", hint="enter again writes over it")
        self._confirmed = None
        text = edit.rename(self.editor.text, path.stem)
        write_whole(path, text)
        self.editor.become(text)
        self._saved(path)
        self.post_message(Flash(f"saved: --accelerator {path} uses it"))

    def _saved(self, path: Path) -> None:
        text = self.editor.text
        if self.home.origin and not self.home.is_file(str(path)):
            self._bases[path.absolute()] = self.base
        self._come_home(home_of(str(path), text))
        if text in self._homes:
            self._homes[text] = self.home
        self.theirs = None
        if self._posting is not None:
            self._posting.stop()
            self._posting = None
        self.post_message(RulesChanged(text, str(path)))
        self.say()
