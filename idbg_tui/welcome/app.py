"""Let the user choose a session or an example. Painted before anything is read; files are read on threads."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.filter import LineFilter
from textual.widgets import Input

import idbg
from idbg.config import examples, places
from idbg.format import file_names, glyphs
from idbg.schema.errors import IdbgError
from idbg.schema.summaries import SessionSummary
from idbg.session.index import sessions
from idbg.views.tree import Table
from idbg_tui import theming
from idbg_tui.terminal.drawing import DrawnApp
from idbg_tui.welcome.offers import Choosable, Offers, lacking
from idbg_tui.widgets import plain_signs, sections, sorting
from idbg_tui.widgets.bars import Bar, BarPart
from idbg_tui.widgets.control_characters import ControlCharacterFilter
from idbg_tui.widgets.lines import Lines, StyledRow
from idbg_tui.widgets.section_list import SectionLines
from idbg_tui.widgets.section_rows import Look, Row

Opened = TypeVar("Opened")
Answer = TypeVar("Answer")
_KEYS = (("enter", "opens it"), ("type", "to find"), ("^s", "sorts"), ("esc", "leaves"))


class OfferLines(SectionLines, can_focus=False):
    """The offers, with a cursor that goes over the heads. The keys come from the line above."""

    MARK = 0
    LOOKS: ClassVar[dict[str, str]] = SectionLines.LOOKS | {
        "cursor": Lines.LOOKS["cursor:focus"],
        "cursor:ansi": Lines.LOOKS["cursor:ansi:focus"],
    }

    def is_head(self, item: Row) -> bool:
        return not isinstance(item.key, str)  # only offers' keys are texts

    def draw(self, item: Row, width: int) -> StyledRow:
        return item.draw(width)


class Welcome(DrawnApp[Opened | None], Generic[Opened]):
    """Returns what `open_offer` made of the user's choice, or None; a refused choice flashes its error."""

    TITLE = "idbg"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { overflow: hidden; }
    Input { border: none; height: 1; padding: 0 1; margin: 1 0; background: $panel; }
    OfferLines { height: 1fr; padding: 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", show=False, priority=True),
        Binding("ctrl+c,ctrl+q", "quit", "leave", show=False, priority=True),
        Binding("down,ctrl+n", "move(1)", "down", show=False, priority=True),
        Binding("up,ctrl+p", "move(-1)", "up", show=False, priority=True),
        Binding("pagedown", "move(10)", "a page down", show=False, priority=True),
        Binding("pageup", "move(-10)", "a page up", show=False, priority=True),
        Binding("ctrl+s", "sort", "sort the list by a column", show=False, priority=True),
    ]

    def __init__(self, output: Path, theme: str, open_offer: Callable[[Choosable], Opened]) -> None:
        """`open_offer` is called on a thread of its own, and may raise what is an IdbgError."""
        super().__init__()
        self.animation_level = "none"
        self._open_offer = open_offer
        plain_signs.use(glyphs.set_for(os.environ))
        self._problem = theming.install(self, (theming.shipped(), places.config() / "themes"), theme)
        self._offers = Offers(output)
        self._input = Input(placeholder="type to find a session or an example", compact=True)
        self._input.cursor_blink = False
        self._lines = OfferLines(self._show)
        self._look = Look()
        self._header, self._footer = Bar(id="header"), Bar(id="footer")
        self._moved = False  # by the user: the cursor stays where it is
        self._opening = ""
        self._control_characters = ControlCharacterFilter()

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._input
        yield self._lines
        yield self._footer

    def on_mount(self) -> None:
        self._input.focus()
        self._show()
        self.call_after_refresh(self._read)

    def get_line_filters(self) -> list[LineFilter]:
        """Names come from folders: what every line passes on its way to the terminal."""
        return [*super().get_line_filters(), self._control_characters]

    # ---------------------------------------------------------------- what is there

    def _read(self) -> None:
        """Read the examples and the folder of sessions, now that the screen is painted."""
        self._beside(examples.shipped, self._take_examples)
        self._beside(partial(sessions, self._offers.output), self._take_sessions)

    def _take_examples(self, found: list[examples.Example] | IdbgError) -> None:
        if not isinstance(found, IdbgError):
            self._offers.examples = found
        self._show()

    def _take_sessions(self, found: list[SessionSummary] | IdbgError) -> None:
        if isinstance(found, IdbgError):
            self._offers.problem = found.in_one_line
        else:
            self._offers.sessions = found
        self._show()

    def _beside(self, ask: Callable[[], Answer], take: Callable[[Answer | IdbgError], None]) -> None:
        """Ask on a thread that nobody waits for, and take the answer here."""
        loop, context = asyncio.get_running_loop(), copy_context()

        def work() -> None:
            try:
                answer: Answer | IdbgError = ask()
            except IdbgError as error:
                answer = error
            with suppress(RuntimeError):  # the loop is closed: the user has left
                loop.call_soon_threadsafe(take, answer, context=context)

        Thread(target=work, daemon=True).start()

    # ---------------------------------------------------------------- what is shown

    def _show(self) -> None:
        """Show what the typed words leave."""
        if not self.is_running:
            return
        typed = self._input.value
        sorts = (how for table, how in self._look.sorts.items() if table.startswith("session\n"))
        section = self._offers.section(typed, next(sorts, None))
        nothing = f"nothing here is called {typed!r}: backspace shows more" if typed else ""
        rows = sections.rows(section, replace(self._look, width=self._lines.room))
        self._lines.show_rows(rows, nothing)
        if not self._moved or self._chosen is None:
            self._lines.cursor = next((row for row in range(len(rows)) if self._lines.stops(row)), 0)
            self._lines.rows_changed()
        self._say("", "")

    def _say_where(self) -> None:
        """In the header: the folder of the session at the cursor, as sessions of one program look alike, or of all."""
        chosen = self._chosen
        where = chosen.folder if isinstance(chosen, SessionSummary) else self._offers.output
        self._header.show(
            [("idbg", "bold $primary"), (f" {idbg.__version__}  debugs what torch.compile makes of a program", "")],
            [(file_names.from_here(str(where)), "$foreground 60%")],
        )

    @property
    def _chosen(self) -> Choosable | None:
        row = self._lines.chosen
        return self._offers.chosen(row.key) if row is not None else None

    def _say(self, text: str, style: str) -> None:
        """In the footer: a sentence, or the keys."""
        self._say_where()
        if self._problem:
            text, style, self._problem = self._problem, "$text-error", ""
        keys: list[BarPart] = []
        for key, words in _KEYS:
            keys += [(key, "bold $primary"), (f" {words}  ", "$foreground 75%")]
        self._footer.show([(text, f"bold {style}".rstrip())] if text else keys, [])

    # ---------------------------------------------------------------- what the user does

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input is self._input:
            self._moved = False
            self._show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input is self._input:
            self._open()

    def on_lines_moved(self, event: Lines.Moved) -> None:
        self._moved = True
        self._say_where()

    def on_lines_opened(self, event: Lines.Opened) -> None:
        self._open()

    def action_move(self, step: int) -> None:
        self._moved = True
        self._lines.go(self._lines.cursor + step)
        self._say("", "")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys are those of the list of columns while that is open."""
        return len(self.screen_stack) == 1 or action == "quit"

    def action_sort(self) -> None:
        """Choose the column by which the sessions are sorted."""
        table = next((row.table for row in self._lines.items if row.table is not None), None)
        if table is not None:
            self.push_screen(sorting.picker(table, self._look), partial(self._sort, table))

    def on_section_lines_head_clicked(self, event: SectionLines.HeadClicked) -> None:
        self._sort(event.table, event.name)

    def _sort(self, table: Table, name: str | None) -> None:
        if name is not None:
            self._look, words = sorting.sorted_by(self._look, table, name)
            self._show()
            self._say(words, "")

    def action_leave(self) -> None:
        """Forget what was typed; with nothing typed, leave."""
        if self._input.value and not self._opening:
            self._input.value = ""
        else:
            self.exit()

    def _open(self) -> None:
        chosen = self._chosen
        if self._opening or chosen is None:
            return
        if isinstance(chosen, examples.Example) and (why := lacking(chosen)):
            self._say(f"{chosen.path.name} {why}", "$text-warning")
            return
        self._opening = chosen.name if isinstance(chosen, SessionSummary) else chosen.path.name
        self._say(f"opening {self._opening}: esc leaves", "$text-primary")
        self._beside(partial(self._open_offer, chosen), self._opened)

    def _opened(self, opened: Opened | IdbgError) -> None:
        self._opening = ""
        if isinstance(opened, IdbgError):
            self._say(opened.in_one_line, "$text-error")
        else:
            self.exit(opened)
