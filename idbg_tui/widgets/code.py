"""Show code of any length with a cursor line, marks, search and copy."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer

from idbg.format.amounts import counted
from idbg.format.glyphs import MARKS
from idbg.format.lexing import Lexing
from idbg_tui.widgets.line_view import LineView
from idbg_tui.widgets.looks import look
from idbg_tui.widgets.notices import CopyRequest
from idbg_tui.widgets.search import SEARCH_KEYS, Finder, SearchRequest

# What would move the terminal's cursor or change its colours; a tab has been expanded before
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
_TAB = 4
_AHEAD = 200  # lines below the screen whose colours are computed ahead
_FIRST_SLICE, _SLICE, _PAUSE = 0.012, 0.004, 0.02  # seconds: at loading, then at each tick, and between ticks
_STEP = 8  # columns that one key scrolls sideways


@dataclass(frozen=True)
class _Read:
    """A text as it is shown, with the colours that were made of it so far."""

    source: list[str]
    lines: list[str]
    lexing: Lexing
    width: int


@lru_cache(maxsize=16)  # who goes from node to node comes back to the same kernels
def _read(text: str, language: str) -> _Read:
    shown = _CONTROL.sub("�", text.replace("\r\n", "\n").expandtabs(_TAB))
    source = text.removesuffix("\n").split("\n") if text else []
    lines = shown.removesuffix("\n").split("\n") if text else []
    widest = max(lines, key=len, default="")
    width = len(widest) if shown.isascii() else max(map(cell_len, lines), default=0)
    return _Read(source, lines, Lexing(shown, language), width)


class CodeView(LineView, can_focus=True):
    """Numbered lines with one cursor line, marked lines and colours that are made as they are needed.

    Lines are 1-based here, and counted from `first`. It repaints the lines that change and no others, but for a scroll.
    """

    LOOKS: ClassVar[dict[str, str]] = {
        "number": "$foreground 40%",
        "mark": "bold $primary",
        "cursor": "on $foreground 8%",
        "cursor:focus": "on $foreground 18%",
        "match": "underline bold",
        "look-keyword": "$text-primary",
        "look-string": "$text-secondary",
        # none of their own: numbers are the most frequent, and two changes of style take 80 bytes each
        "look-number": "",
        "look-comment": "$foreground 55%",
        "look-name": "bold",
    }
    DEFAULT_CSS = """
    CodeView {
        overflow-x: scroll; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; background: $background;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "step(-1)", "up", show=False),
        Binding("down,j", "step(1)", "down", show=False),
        Binding("shift+up", "step(-1, True)", "select upwards", show=False),
        Binding("shift+down", "step(1, True)", "select downwards", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "a page up", show=False),
        Binding("pagedown,ctrl+f", "page(1)", "a page down", show=False),
        Binding("ctrl+u", "page(-0.5)", "half a page up", show=False),
        Binding("ctrl+d", "page(0.5)", "half a page down", show=False),
        Binding("g,home", "edge(-1)", "top", show=False),
        Binding("G,end", "edge(1)", "bottom", show=False),
        Binding("left,h", "sideways(-1)", "scroll to the left", show=False),
        Binding("right,l", "sideways(1)", "scroll to the right", show=False),
        *SEARCH_KEYS,
        Binding("y", "copy", "copy the line, or the selected lines", show=False),
    ]

    @dataclass
    class Moved(Message):
        """The user moved the cursor to `line`; never posted for a move by the program."""

        view: "CodeView"
        line: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._text, self._language, self._first = "", "", 1
        self._source: list[str] = []
        self._lines: list[str] = []
        self._lexing = Lexing("", "")
        self._marks: frozenset[int] = frozenset()
        self._cursor = 0
        self._anchor: int | None = None
        self._finder = Finder(lambda index: self._lines[index])
        self._timer: Timer | None = None
        self._styles: dict[str, Style] = {}
        self._centre: int | None = None
        self._top = False

    # what is shown

    @property
    def line(self) -> int:
        """The cursor's line."""
        return self._cursor + self._first

    @property
    def current(self) -> str:
        """The text of the cursor's line."""
        return self._lines[self._cursor] if self._lines else ""

    @property
    def is_cut(self) -> bool:
        """Whether the cursor's line is wider than there is room for."""
        return cell_len(self.current) > self.scrollable_content_region.width - self._gutter

    @property
    def place(self) -> int:
        """The cursor's line, as `find` counts them."""
        return self.line

    @property
    def line_count(self) -> int:
        """The lines of the text."""
        return len(self._lines)

    def load(self, text: str, language: str = "", *, first: int = 1) -> bool:
        """Show another text from its top; the same text again changes nothing. True if it was another one."""
        if (text, language, first) == (self._text, self._language, self._first):
            return False
        self._text, self._language, self._first = text, language, first
        read = _read(text, language)
        self._source, self._lines, self._lexing = read.source, read.lines, read.lexing
        self._marks, self._cursor, self._anchor = frozenset(), 0, None
        self._lexing.advance(self._bottom, _FIRST_SLICE)
        self._set_size(Size(self._gutter + read.width + 1, len(self._lines)))
        self._scroll(0, 0)
        self.refresh()
        return True

    def _set_size(self, size: Size) -> None:
        """Of the text: only a scrollbar that appears or goes lays the screen out anew, as assigning the size does."""
        height = self.container_size.height
        if height and (size.height > height) == self.show_vertical_scrollbar:
            self.set_reactive(CodeView.virtual_size, size)
            self._scroll_update(size)
        else:
            self.virtual_size = size

    def mark(self, lines: Collection[int]) -> None:
        """Put a bar before these lines, and before no others."""
        marks = frozenset(line - self._first for line in lines)
        for index in marks ^ self._marks:
            self._refresh_index(index)
        self._marks = marks

    def go(self, line: int, *, top: bool = False) -> None:
        """Put the cursor on a line without a message: centred if it was out of sight, with `top` at the top."""
        self._anchor = None
        self._place(line - self._first)
        self._top = top
        self._centre_on(self._cursor)

    def find(self, text: str, start: int) -> int:
        """See `Searched`; the end of a search leaves the cursor where it is."""
        count, index = self._finder.look_for(text, len(self._lines), start - self._first)
        self.refresh()
        if self._finder:
            self.go(index + self._first)
        return count

    # how it is drawn

    @property
    def _gutter(self) -> int:
        return len(str(self._first + len(self._lines))) + 4

    @property
    def _bottom(self) -> int:
        return self.scroll_offset.y + max(self.size.height, 1)

    def render_line(self, y: int) -> Strip:
        scroll_x, scroll_y = self.scroll_offset
        index = scroll_y + y
        width, base = self.line_width, self.base_style
        if index >= len(self._lines):
            return Strip.blank(width, base)
        if index >= self._lexing.done:
            self._lex_soon()
        first, last = self._chosen
        if first <= index <= last:
            base += self._look("cursor")
        number = f"{index + self._first:>{self._gutter - 3}}  "
        dim = base + self._look("number")
        if index in self._marks:
            gutter = [Segment(MARKS["bar"], base + self._look("mark")), Segment(number, dim)]
        else:
            gutter = [Segment(" " + number, dim)]
        room = max(width - self._gutter, 0)
        whole = Strip(self._segments(index, base, scroll_x + room + 1))
        text = whole.crop(scroll_x, scroll_x + room)
        if whole.cell_length > scroll_x + room > scroll_x:
            text = Strip([*text.crop(0, room - 1), Segment(MARKS["ellipsis"], dim)], room)
        room -= text.cell_length
        return Strip(_joined([*gutter, *text, Segment(" " * room, base)]), width)

    def _segments(self, index: int, base: Style, end: int) -> list[Segment]:
        """The coloured pieces of a line, up to column `end`: a line may have a million."""
        text = self._lines[index][:end]
        spans: list[tuple[int, int, str]] = [(a, b, f"look-{look}") for a, b, look in self._lexing.spans(index)]
        if self._finder:
            spans = _over(spans, [(start, stop, "match") for start, stop in self._finder.spans(text)])
        segments, column = [], 0
        for start, stop, name in spans:
            segments.append(Segment(text[column:start], base))
            segments.append(Segment(text[start:stop], base + self._look(name)))
            column = stop
        segments.append(Segment(text[column:], base))
        return segments

    def _look(self, name: str) -> Style:
        """The style of one kind of piece, to be added to that of its line: only the cursor has a background."""
        if name not in self._styles:
            self._styles[name] = look(self, self.LOOKS, name)
        return self._styles[name]

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles.clear()

    def focus_changed(self) -> None:
        self._styles.clear()
        first, last = self._chosen
        self.refresh_lines(first, last + 1 - first)

    @property
    def _chosen(self) -> tuple[int, int]:
        """The first and the last of the selected lines; both are the cursor's where none is selected."""
        anchor = self._cursor if self._anchor is None else self._anchor
        return min(anchor, self._cursor), max(anchor, self._cursor)

    def _lex_soon(self) -> None:
        if self._timer is None:
            self._timer = self.set_interval(_PAUSE, self._lex_on)

    def _lex_on(self) -> None:
        before = self._lexing.done
        if not self._lexing.advance(self._bottom + _AHEAD, _SLICE) and self._timer is not None:
            self._timer.stop()
            self._timer = None
        if before < self._bottom and self._lexing.done > self.scroll_offset.y:
            self.refresh_lines(before, self._lexing.done - before)

    # how it moves

    def _place(self, index: int) -> None:
        """Move the cursor line, and repaint the two lines that it concerns."""
        index = max(0, min(index, len(self._lines) - 1))
        if index != self._cursor:
            self._refresh_index(self._cursor)
            self._cursor = index
            self._refresh_index(index)

    def _refresh_index(self, index: int) -> None:
        if 0 <= index - self.scroll_offset.y < self.size.height:
            self.refresh(Region(0, index - self.scroll_offset.y, self.size.width, 1))

    def _centre_on(self, index: int) -> None:
        """Scroll so that a line that is out of sight, or at its very edge, is in the middle."""
        height = self.scrollable_content_region.height
        if not height:
            self._centre = index  # not laid out yet: see on_resize
            return
        self._centre = None
        if self._top:
            self._scroll(0, index - 1)
        elif not 1 <= index - self.scroll_offset.y < height - 1:
            self._scroll(0, index - height // 2)

    def _scroll(self, x: int | None, y: int | None) -> None:
        # forced: a text that was loaded just now has not got its scroll bar yet, and would not be scrolled without one
        self.scroll_to(x, y, animate=False, immediate=True, force=True)

    def on_resize(self) -> None:
        if self._centre is not None:
            self._centre_on(self._centre)

    def _user_moves(self, index: int, *, extend: bool = False) -> None:
        if extend and self._anchor is None:
            self._anchor = self._cursor
        elif not extend and self._anchor is not None:
            self._anchor = None
            self.refresh()
        before = self._cursor
        self._place(index)
        height = self.scrollable_content_region.height
        top = self.scroll_offset.y
        if self._cursor < top:
            self._scroll(None, self._cursor)
        elif self._cursor >= top + height:
            self._scroll(None, self._cursor - height + 1)
        if self._cursor != before:
            self.post_message(self.Moved(self, self.line))

    def action_step(self, step: int, extend: bool = False) -> None:
        self._user_moves(self._cursor + step, extend=extend)

    @property
    def number(self) -> int:
        """The cursor's line."""
        return self.line

    @property
    def last_number(self) -> int:
        """The number of the last line."""
        return self._first + len(self._lines) - 1

    def go_to(self, number: int) -> None:
        """Put the cursor on a line, as a user does."""
        self._user_moves(number - self._first)

    def action_page(self, pages: float) -> None:
        self._user_moves(self._cursor + round(pages * max(self.scrollable_content_region.height - 1, 1)))

    def action_edge(self, side: int) -> None:
        self._user_moves(0 if side < 0 else len(self._lines) - 1)

    def action_sideways(self, side: int) -> None:
        self._scroll(self.scroll_offset.x + side * _STEP, None)

    def action_search(self) -> None:
        self.post_message(SearchRequest(self))

    def action_find_next(self, side: int) -> None:
        index = self._finder.next_row(self._cursor, side, len(self._lines))
        if index is not None:
            self._user_moves(index)

    def action_forget(self) -> None:
        """End the search and the selection."""
        self._anchor = None
        self.find("", self.line)

    def action_copy(self) -> None:
        first, last = self._chosen
        chosen = self._source[first : last + 1]
        if chosen:
            self.post_message(CopyRequest("\n".join(chosen), counted(len(chosen), "line")))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """`n` and escape mean something here only while there is a search (or a selection) to go on with or to end."""
        if action == "find_next":
            return bool(self._finder)
        if action == "forget":
            return bool(self._finder) or self._anchor is not None
        return True

    def on_click(self, event: events.Click) -> None:
        if (offset := event.get_content_offset(self)) is not None:
            self._user_moves(self.scroll_offset.y + offset.y, extend=event.shift)


def _joined(segments: list[Segment]) -> list[Segment]:
    """The same, with blanks drawn in the style before them: each change of style is 40 bytes on the wire."""
    joined: list[Segment] = []
    for text, style, _ in segments:
        if joined and (not text.strip(" ") or style == joined[-1].style):
            before, last, _ = joined[-1]
            if last is None or not last.underline or style == last:
                joined[-1] = Segment(before + text, last)
                continue
        joined.append(Segment(text, style))
    return joined


def _over(under: list[tuple[int, int, str]], over: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Spans of `over` laid on those of `under`, which are cut where they are covered."""
    result = list(over)
    for start, end, name in under:
        for first, last, _ in over:
            if first < end and last > start:
                if start < first:
                    result.append((start, first, name))
                start = last
        if start < end:
            result.append((start, end, name))
    return sorted(result)
