"""Two texts over the screen, side by side: one cursor follows the other, and what differs is marked."""

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from idbg.format import file_names
from idbg.format.amounts import counted
from idbg.format.glyphs import MARKS
from idbg_tui.widgets.code import CodeView
from idbg_tui.widgets.covering import Covering
from idbg_tui.widgets.line_pairs import LinePairs, PairedText
from idbg_tui.widgets.lines import cut
from idbg_tui.widgets.notices import CopyRequest, Flash
from idbg_tui.widgets.search import Searching

BESIDE = 110  # cells that two texts need to stand side by side


class Page(Vertical):
    """One text with a title of its own."""

    def __init__(self, text: PairedText) -> None:
        super().__init__()
        self.text = text
        self.code = CodeView()

    def compose(self) -> ComposeResult:
        if self.text.problem and not self.text.text:
            yield Static(f" {file_names.from_here(self.text.path)}: {self.text.problem}", markup=False)
        yield self.code

    def on_mount(self) -> None:
        self.code.load(self.text.text, self.text.language)
        self.border_title = Content(self.text.title)

    def on_resize(self, event: events.Resize) -> None:
        where = file_names.from_here(self.text.path) if self.text.path else ""
        self.border_subtitle = Content(cut(where, max(event.size.width - 6, 8)))


class SideBySide(Covering[None], Searching):
    """A text, read only, and another beside it, if there is one. Where one has room, tab changes between them."""

    DEFAULT_CSS = """
    SideBySide { background: $background 60%; layout: vertical; padding: 0 0 1 0; }
    SideBySide > Horizontal { height: 1fr; width: 100%; }
    SideBySide Page {
        border: round $border-blurred; background: $background; width: 1fr; height: 1fr;
        border-title-color: $foreground 70%; border-subtitle-color: $foreground 60%;
        &:focus-within { border: round $border; border-title-color: $foreground; border-title-style: bold; }
    }
    SideBySide Static { height: auto; color: $text-warning; }
    SideBySide #whole { dock: bottom; display: none; max-height: 9; margin: 0 0 1 0; padding: 0 1; color: $foreground; }
    SideBySide #whole.-shown { display: block; }
    SideBySide #keys { dock: bottom; height: 1; color: $foreground 75%; background: $surface; padding: 0 1; }
    SideBySide SearchLine { dock: bottom; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "close", show=False),
        Binding("tab,shift+tab", "other", "the other text", show=False),
        Binding("right_square_bracket", "next_difference(1)", "the next difference", show=False),
        Binding("left_square_bracket", "next_difference(-1)", "the difference before", show=False),
        Binding("Y", "copy_all", "copy the text", show=False),
    ]
    WHAT = "text"
    KEYS: tuple[str, ...] = ("y copy line", "Y text", "/ find", "esc closes")

    def __init__(self, texts: Sequence[PairedText], pairs: LinePairs | None, line: int = 0) -> None:
        """One text or two, and which of their lines belong together. `line`: where to begin in the first."""
        super().__init__()
        self._pages = [Page(text) for text in texts]
        self._pairs, self._line = pairs, line
        self._current = 0
        self._keys = Static("", id="keys", markup=False)
        self._whole = Static("", id="whole", markup=False)

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield from self._pages
        yield self._whole
        yield self._keys

    @property
    def search_room(self) -> Widget:
        return self

    @property
    def page(self) -> Page:
        """The one that has the keys."""
        return self._pages[self._current]

    def on_mount(self) -> None:
        if self._pairs is not None:
            for page, marks in zip(self._pages, self._pairs.marks, strict=True):
                page.code.mark(marks)
        first = self._line or (self._first_difference(self._pairs) if self._pairs is not None else 0)
        if first:
            self._pages[0].code.go(first)
            self._follow(0, first)
        self._lay()

    def on_resize(self) -> None:
        self._lay()

    def _first_difference(self, pairs: LinePairs) -> int:
        """The first line that differs, of the first text; 0 where none does."""
        return min([*pairs.marks[0]] or [pairs.beside(1, line) for line in pairs.marks[1]], default=0)

    def _lay(self) -> None:
        """Show both where there is room, else the one that has the keys."""
        both = self.app.size.width >= BESIDE
        for side, page in enumerate(self._pages):
            page.display = both or side == self._current
        self.page.code.focus()
        keys = [*self.KEYS]
        if len(self._pages) > 1:
            named = "other" if both else self._pages[1 - self._current].text.name or "other"
            keys = [f"tab {named}", "[ ] difference", *keys]
        if not both:
            keys = [key.replace(" copy line", " line") for key in keys]
        self._keys.update(f" {MARKS['separator']} ".join(keys))
        self.call_after_refresh(self._show_whole)

    def _follow(self, side: int, line: int) -> None:
        """Go to the paired line of the other text."""
        if self._pairs is not None:
            self._pages[1 - side].code.go(self._pairs.beside(side, line))

    def _show_whole(self) -> None:
        """Show the paired lines whole below the texts, where one of them is cut or has no room beside the other."""
        if self._pairs is None or len(self._pages) < 2:
            return
        is_cut = any(not page.display or page.code.is_cut for page in self._pages)
        lines = (f"{page.code.line:>5}  {page.code.current.strip()}" for page in self._pages)
        self._whole.set_class(is_cut, "-shown")
        self._whole.update("\n".join(lines) if is_cut else "")

    def on_code_view_moved(self, event: CodeView.Moved) -> None:
        event.stop()
        if event.view is self.page.code:
            self._follow(self._current, event.line)
            self._show_whole()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        sides = [side for side, page in enumerate(self._pages) if event.widget is page.code]
        self._current = sides[0] if sides else self._current

    # ---------------------------------------------------------------- keys

    def action_other(self) -> None:
        """Focus the other text, if there is one."""
        if len(self._pages) < 2:
            self.post_message(Flash(f"there is no other {self.WHAT} beside this one"))
            return
        self._current = 1 - self._current
        self._lay()

    def action_next_difference(self, step: int) -> None:
        """Go to the next run of lines that differ, in the text that has the keys."""
        marks, here = self._pairs.marks[self._current] if self._pairs is not None else (), self.page.code.line
        starts = sorted(line for line in marks if line - 1 not in marks)
        if not starts:
            several = f"no line of this {self.WHAT} differs"
            self.post_message(Flash(several if len(self._pages) > 1 else f"there is one {self.WHAT}"))
            return
        ahead = [line for line in starts if (line > here if step > 0 else line < here)]
        line = (min if step > 0 else max)(ahead or starts)
        self.page.code.go(line)
        self._follow(self._current, line)
        self._show_whole()

    def action_copy_all(self) -> None:
        lines = counted(self.page.code.line_count, "line")
        self.post_message(CopyRequest(self.page.text.text, f"the {self.WHAT} ({lines})"))
