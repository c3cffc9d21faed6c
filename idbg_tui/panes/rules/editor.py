"""Edit a TOML text in place; while nobody edits, letters are the app's keys."""

from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.geometry import Offset
from textual.message import Message
from textual.widgets import TextArea
from textual.widgets.text_area import Edit, EditResult, Selection

from idbg.accelerators.edit import step, toggle
from idbg.accelerators.toml_text import TextEdit, difference
from idbg.format.lexing import Lexing
from idbg_tui.messages import CopyRequest, Flash
from idbg_tui.panes.rules.document import RulesDocument

_RULE = "[[rules]]"
_READING = {"edit", "walk", "edge", "switch"}
_ANY_TIME = {"bump", "copy_line"}
_TYPING = {"undo", "redo"}
"""While reading, the pane has keys for them."""


class TomlEditor(TextArea):
    """A text area with two modes, as in vim: reading, where single letters are the app's keys, and editing.

    While reading, keys change a value as a whole: + and _ step it, space switches its rule off and on.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "editor--wrong",
        "editor--warned",
        *(f"editor--look-{look}" for look in ("keyword", "string", "number", "comment", "name")),
    }
    DEFAULT_CSS = """
    TomlEditor { border: none; padding: 0; background: $background; }
    TomlEditor { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }
    TomlEditor:focus { border: none; }
    TomlEditor .editor--wrong { background: $error 30%; }
    TomlEditor .editor--warned { background: $warning 20%; }
    TomlEditor .text-area--gutter { color: $foreground 40%; background: $background; }
    TomlEditor .text-area--cursor-line { background: $foreground 8%; }
    TomlEditor:focus .text-area--cursor-line { background: $foreground 18%; }
    TomlEditor.-at-error .text-area--cursor-line { background: $error 40%; }
    TomlEditor.-read-only .text-area--cursor { background: $foreground 18%; color: $foreground; }
    TomlEditor .editor--look-keyword { color: $text-primary; }
    TomlEditor .editor--look-string { color: $text-secondary; }
    TomlEditor .editor--look-number { color: $text-accent; }
    TomlEditor .editor--look-comment { color: $foreground 55%; }
    TomlEditor .editor--look-name { text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "edit", "edit the text", show=False),
        Binding("escape", "stop", "end editing", show=False),
        Binding("j", "walk(1)", "down", show=False),
        Binding("k", "walk(-1)", "up", show=False),
        Binding("g", "edge(-1)", "top", show=False),
        Binding("G", "edge(1)", "bottom", show=False),
        Binding("plus,ctrl+up", "bump(True)", "raise the value", show=False),
        Binding("underscore,ctrl+down", "bump(False)", "lower the value", show=False),
        Binding("space", "switch", "switch on or off", show=False),
        Binding("y", "copy_line", "copy the line", show=False),
    ]

    class ModeChanged(Message):
        """Editing began or ended."""

    def __init__(self, rules: RulesDocument) -> None:
        """`rules` has the text: others may change it too, and then call `follow`."""
        super().__init__(read_only=True, show_line_numbers=True, soft_wrap=False, highlight_cursor_line=True)
        self.rules = rules
        self.cursor_blink = False
        self.match_cursor_bracket = False
        self._wrong, self._marked_at = 0, Selection()
        self._warned: list[int] = []
        self._lexed = "", Lexing("", "")

    @property
    def editing(self) -> bool:
        """Whether keys are typed into the text; while it is read they are the app's."""
        return not self.read_only

    @property
    def is_fresh(self) -> bool:
        """Whether there is no text, and nothing to undo."""
        return not self.text and not self.history.undo_stack

    def validate_selection(self, selection: Selection) -> Selection:
        """What an undone or a repeated edit selects was in another text: keep it in this one."""
        return Selection(self.clamp_visitable(selection.start), self.clamp_visitable(selection.end))

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        # undo changes the text before it moves the cursor, and a scrollbar that comes or goes between the two asks
        # for a cursor that is still below the last line; one that comes after an error was shown hides its line again
        if self.cursor_location[0] >= self.document.line_count or self._shows_wrong():
            return Offset(0, 0)
        return super().scroll_cursor_visible(center, animate)

    def edit(self, edit: Edit) -> EditResult:
        """Change the text, here and in the document: the next key of a burst must find what this one made."""
        result = super().edit(edit)
        self.rules.text = self.text
        return result

    def undo(self) -> None:
        """Take the last step back; say so where there is none."""
        if not self.history.undo_stack:
            self.post_message(Flash("nothing to undo"))
            return
        super().undo()
        self.rules.text = self.text

    def redo(self) -> None:
        """Make the step again that was undone last; say so where there is none."""
        if not self.history.redo_stack:
            self.post_message(Flash("nothing to redo"))
            return
        super().redo()
        self.rules.text = self.text

    def become(self, text: str) -> None:
        """Change the text, as one step of undo, with the cursor and the scroll where they were."""
        self.rules.text = text
        self.follow()

    def open(self) -> None:
        """Show the text that undo ends at, from its first rule on: what stands above is known."""
        self.load_text(self.rules.text)
        lines = self.text.split("\n")
        if _RULE in lines:
            self.move_cursor((lines.index(_RULE), 0))
            self.scroll_to(0, lines.index(_RULE), animate=False, immediate=True, force=True)

    def follow(self) -> None:
        """Show what others made of the text, as one step of undo, with the cursor and the scroll where they were."""
        if self.text == self.rules.text:
            return
        scroll, cursor = self.scroll_offset, self.cursor_location
        change = difference(self.text, self.rules.text)
        start, end = _location(self.text, change.start), _location(self.text, change.end)
        self.history.checkpoint()
        self.replace(change.text, start, end, maintain_selection_offset=False)
        self.move_cursor(self.clamp_visitable(cursor))  # which ends the step
        self.scroll_to(0, scroll.y, animate=False, immediate=True)

    def go_to(self, line: int) -> None:
        """Put the cursor on this 1-based line."""
        self.move_cursor((max(0, min(line, self.document.line_count) - 1), 0))
        height = self.size.height
        if height and not self.scroll_offset.y < line <= self.scroll_offset.y + height:
            self.scroll_to(0, max(0, line - 1 - height // 2), animate=False, immediate=True)

    @property
    def number(self) -> int:
        """The cursor's line, from 1."""
        return self.cursor_location[0] + 1

    @property
    def last_number(self) -> int:
        """The number of the last line."""
        return self.document.line_count

    def mark(self, wrong: int, warned: list[int]) -> None:
        """Mark the 1-based line of an error, 0 for none, and those that are valid, and odd."""
        if (wrong, warned) == (self._wrong, self._warned):
            return
        before, self._wrong, self._warned = self._wrong, wrong, warned
        self.notify_style_update()  # the public way to drop lines that were drawn before
        self.refresh()
        if wrong != before:
            self._marked_at = self.selection
            self._note_place()
            self.call_after_refresh(self.show_wrong)  # its message takes lines of the editor's

    def _shows_wrong(self) -> bool:
        """Whether the user has not moved the cursor since the line of an error was marked."""
        return bool(self._wrong) and not self.editing and self.selection == self._marked_at

    def on_resize(self) -> None:
        if self._shows_wrong():
            self.show_wrong()

    def show_wrong(self) -> None:
        """Scroll to the line of an error, unless it can be seen, or the user types elsewhere."""
        top, height = self.scroll_offset.y, self.size.height
        if self._wrong and height and not self.editing and not top < self._wrong <= top + height:
            self.scroll_to(0, self._wrong - 1 - height // 2, animate=False, immediate=True)

    def get_component_rich_style(self, *names: str, partial: bool = False, default: Style | None = None) -> Style:
        style = super().get_component_rich_style(*names, partial=partial, default=default)
        # laid over the line when it is drawn: a colour of its own would hide those of the text
        return Style(bgcolor=style.bgcolor) if names == ("text-area--cursor-line",) else style

    def on_blur(self) -> None:
        """A line's beginning says most: it is there again when nobody types at its end."""
        self.scroll_to(0, animate=False, immediate=True)

    def _note_place(self) -> None:
        """The cursor's line has a background of its own, which would hide that of an error."""
        self.set_class(self.number == self._wrong, "-at-error")

    def on_text_area_selection_changed(self) -> None:
        self._note_place()

    def get_line(self, line_index: int) -> Text:
        text = super().get_line(line_index)
        if self._lexed[0] != self.text:
            self._lexed = self.text, Lexing(self.text, "toml")
            self._lexed[1].advance(self.document.line_count, 1.0)
        for start, end, look in self._lexed[1].spans(line_index):
            style = self.get_component_rich_style(f"editor--look-{look}")
            text.stylize(Style(color=style.color, bold=style.bold), start, end)
        mark = "wrong" if line_index + 1 == self._wrong else "warned" if line_index + 1 in self._warned else ""
        if mark:
            text.stylize(Style(bgcolor=self.get_component_rich_style(f"editor--{mark}").bgcolor))
        return text

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While reading, what edits or copies is not ours, so that those keys reach the app."""
        if action in _TYPING:
            return self.editing
        if action in _ANY_TIME:
            return action != "bump" or self._step(*parameters) is not None
        if action in _READING:
            return self.read_only
        if action == "stop":
            return self.editing
        moves = action.startswith(("cursor_", "select_", "scroll_", "page_"))
        return moves or self.editing or not action.startswith(("delete_", "cut", "copy", "paste"))

    def action_edit(self) -> None:
        self._set_mode(editing=True)

    def action_stop(self) -> None:
        self._set_mode(editing=False)
        self.move_cursor((self.cursor_location[0], 0))
        self.scroll_to(0, animate=False, immediate=True)
        self.show_wrong()

    def _set_mode(self, *, editing: bool) -> None:
        self.read_only = not editing
        self.history.checkpoint()
        self.post_message(self.ModeChanged())

    def action_walk(self, step: int) -> None:
        self.move_cursor_relative(rows=step)

    def action_edge(self, side: int) -> None:
        self.move_cursor((0, 0) if side < 0 else (self.document.line_count - 1, 0))

    def action_bump(self, up: bool) -> None:
        self._apply(self._step(up))

    def action_switch(self) -> None:
        self._apply(toggle(self.text, self.number))

    def action_copy_line(self) -> None:
        self.post_message(CopyRequest(self.document.get_line(self.cursor_location[0]), "1 line"))

    def _step(self, up: object) -> TextEdit | None:
        return step(self.text, self.number, up=bool(up))

    def _apply(self, change: TextEdit | None) -> None:
        if change is not None:
            self.become(change.of(self.text))


def _location(text: str, index: int) -> tuple[int, int]:
    """The 0-based row and column of a character."""
    return text.count("\n", 0, index), index - text.rfind("\n", 0, index) - 1
