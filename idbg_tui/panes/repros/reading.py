"""How is a repro's script read: over the screen, and beside the nearest one that does not fail?"""

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from idbg.format import file_names
from idbg.format.amounts import counted
from idbg.format.glyphs import MARKS
from idbg_tui.messages import CopyRequest, EditorRequest, Flash
from idbg_tui.panes.repros.scripts import Pairing, Script
from idbg_tui.widgets.code import CodeView
from idbg_tui.widgets.lines import cut
from idbg_tui.widgets.search import Searching

BESIDE = 110  # cells that two scripts need to stand side by side


class Page(Vertical):
    """One script with a title of its own."""

    def __init__(self, script: Script, title: str) -> None:
        super().__init__()
        self.script, self._named = script, title
        self.code = CodeView()

    def compose(self) -> ComposeResult:
        if self.script.problem and not self.script.text:
            yield Static(f" {file_names.from_here(self.script.path)}: {self.script.problem}", markup=False)
        yield self.code

    def on_mount(self) -> None:
        self.code.load(self.script.text, "python")
        self.border_title = Content(self._named)

    def on_resize(self, event: events.Resize) -> None:
        path = file_names.from_here(self.script.path)
        self.border_subtitle = Content(cut(path, max(event.size.width - 6, 8)))


class ReadingScripts(ModalScreen[None], Searching):
    """A script, read only, and beside it the nearest that does not fail, if there is one: lines that differ are marked,
    and the cursor of the other follows. Where there is room for one, tab changes between them.
    """

    DEFAULT_CSS = """
    ReadingScripts { background: $background 60%; layout: vertical; padding: 0 0 1 0; }
    ReadingScripts > Horizontal { height: 1fr; width: 100%; }
    ReadingScripts Page {
        border: round $border-blurred; background: $background; width: 1fr; height: 1fr;
        border-title-color: $foreground 70%; border-subtitle-color: $foreground 60%;
        &:focus-within { border: round $border; border-title-color: $foreground; border-title-style: bold; }
    }
    ReadingScripts Static { height: auto; color: $text-warning; }
    ReadingScripts #keys { dock: bottom; height: 1; color: $foreground 75%; background: $surface; padding: 0 1; }
    ReadingScripts SearchLine { dock: bottom; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "close", show=False),
        Binding("tab,shift+tab", "other", "the other script", show=False),
        Binding("right_square_bracket", "next_difference(1)", "the next difference", show=False),
        Binding("left_square_bracket", "next_difference(-1)", "the difference before", show=False),
        Binding("e", "edit", "open the script in $EDITOR", show=False),
        Binding("Y", "copy_all", "copy the script", show=False),
    ]

    def __init__(self, title: str, script: Script, passing: Script | None = None, lacks: str = "") -> None:
        """`lacks`: what the one that does not fail is without."""
        super().__init__()
        self._pages = [Page(script, title)]
        self._pairing = Pairing("", "")
        if passing is not None:
            beside = "does not fail" + (f": lacks {lacks}" if lacks else "")
            self._pages.append(Page(passing, beside))
            self._pairing = Pairing(script.text, passing.text)
        self._current = 0
        self._keys = Static("", id="keys", markup=False)

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield from self._pages
        yield self._keys

    @property
    def search_room(self) -> Widget:
        return self

    @property
    def page(self) -> Page:
        """The one that has the keys."""
        return self._pages[self._current]

    def on_mount(self) -> None:
        marks = self._pairing.marks
        for side, page in enumerate(self._pages):
            page.code.mark(marks[side])
        if marks[0] or marks[1]:
            first = self._first_difference()
            self._pages[0].code.go(first)
            self._follow(0, first)
        self._lay()

    def on_resize(self) -> None:
        self._lay()

    def _first_difference(self) -> int:
        """The first line that differs below heading and imports: their headings always differ."""
        marks = self._pairing.marks
        differ = [*marks[0]] or [self._pairing.beside(1, line) for line in marks[1]]
        lines = self._pages[0].script.text.split("\n")
        head = max((line for line, text in enumerate(lines, 1) if text.startswith(("import ", "from "))), default=0)
        return min([line for line in differ if line > head] or differ)

    def _lay(self) -> None:
        """Show both where there is room, else the one that has the keys."""
        both = self.app.size.width >= BESIDE
        for side, page in enumerate(self._pages):
            page.display = both or side == self._current
        self.page.code.focus()
        keys = ["e edit", "y copy line", "Y script", "/ find", "esc closes"]
        if len(self._pages) > 1:
            named = "other" if both else "what fails" if self._current else "what does not fail"
            keys = [f"tab {named}", "[ ] difference", *keys]
        if not both:
            keys = [key.replace(" copy line", " line") for key in keys]
        self._keys.update(f" {MARKS['separator']} ".join(keys))

    def _follow(self, side: int, line: int) -> None:
        """Go to the paired line of the other script."""
        if len(self._pages) > 1:
            self._pages[1 - side].code.go(self._pairing.beside(side, line))

    def on_code_view_moved(self, event: CodeView.Moved) -> None:
        event.stop()
        if event.view is self.page.code:
            self._follow(self._current, event.line)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        sides = [side for side, page in enumerate(self._pages) if event.widget is page.code]
        self._current = sides[0] if sides else self._current

    # ---------------------------------------------------------------- keys

    def action_other(self) -> None:
        """Focus the other script, if there is one."""
        if len(self._pages) < 2:
            self.post_message(Flash("there is no other script beside this one"))
            return
        self._current = 1 - self._current
        self._lay()

    def action_next_difference(self, step: int) -> None:
        """Go to the next run of lines that differ, in the script that has the keys."""
        marks, here = self._pairing.marks[self._current], self.page.code.line
        starts = sorted(line for line in marks if line - 1 not in marks)
        if not starts:
            self.post_message(
                Flash("no line of this script differs" if len(self._pages) > 1 else "there is one script")
            )
            return
        ahead = [line for line in starts if (line > here if step > 0 else line < here)]
        line = (min if step > 0 else max)(ahead or starts)
        self.page.code.go(line)
        self._follow(self._current, line)

    def action_edit(self) -> None:
        self.post_message(EditorRequest(self.page.script.path, self.page.code.line))

    def action_copy_all(self) -> None:
        lines = counted(self.page.code.line_count, "line")
        self.post_message(CopyRequest(self.page.script.text, f"the script ({lines})"))
