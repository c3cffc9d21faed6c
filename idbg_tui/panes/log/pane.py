"""The session's events in order, with the output of the programs."""

from collections.abc import Hashable
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from idbg.format.amounts import counted
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg_tui.messages import ActionRequest, CopyRequest, EditorRequest, Flash, LineChosen, ReproRequest
from idbg_tui.panes.log.event_lines import LogText
from idbg_tui.panes.log.rows import LogLines
from idbg_tui.panes.log.wrapping import LogRows
from idbg_tui.panes.searchable import SearchablePane
from idbg_tui.state.state import State
from idbg_tui.widgets.item_list import ItemList
from idbg_tui.widgets.lines import StyledRow

_STEP = 16  # columns that one key scrolls sideways
_EMPTY = LogText("nothing has happened yet: r compiles the program", "dim")


class LogPane(SearchablePane):
    """The session's events in words, with the output of the programs.

    It follows the end until the cursor leaves it, or a run fails: then it stays where the failure begins, since the
    message is above the traceback. The next run is followed again.
    """

    ID = "log"
    HINTS = (
        ("/", "find"),
        ("y", "copy block"),
        ("Y", "copy all"),
        ("G", "follow"),
        ("x X", "repro minify"),
        ("c", "cancel"),
    )

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._log = LogLines()
        self._taken = 0
        self._shown = -1

    def compose(self) -> ComposeResult:
        yield LogList(self._log)

    def show(self, state: State) -> None:
        """Append what is new; a session that begins again begins a new log."""
        if state.versions.log == self._shown or not self.is_mounted:
            return
        self._shown = state.versions.log
        rows = self.query_one(LogList)
        if len(state.events) < self._taken:
            self._log = LogLines()
            rows.restart(self._log)
            self._taken = 0
        log = self._log
        runs, failed, followed = log.runs, log.failed, rows.follows
        log.take(state.events[self._taken :], state.history.runs)
        self._taken = len(state.events)
        if log.runs > runs:
            failed, followed = None, True
        rows.grew(follow=followed, stop=log.failed if failed is None else None)
        run = state.run
        self.mark = VERDICT_SIGNS["failed"] if state.worker_died or (run and run.looks == "failed") else ""

    def reveal(self, key: Hashable) -> bool:
        """The first line of the run with this number."""
        at = next((at for at, line in enumerate(self._log.lines) if line.run == key), None)
        if at is not None:
            self.query_one(LogList).go_to_line(at)
        return at is not None


class LogList(ItemList[int]):
    """The rows of a log, by their numbers: they are laid out for the width, and some go from the front."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "sideways(-1)", "scroll to the left", show=False),
        Binding("right,l", "sideways(1)", "scroll to the right", show=False),
        Binding("backslash", "wrap", "wrap what the program printed, or cut it", show=False),
        Binding("e", "edit", "open the line in $EDITOR", show=False),
        Binding("x", "repro", "write a repro of what the row reports", show=False),
        Binding("X", "repro(True)", "minify what the row reports", show=False),
    ]

    def __init__(self, log: LogLines) -> None:
        super().__init__()
        self.empty = _EMPTY.text
        self._column = 0
        self.restart(log)

    def restart(self, log: LogLines) -> None:
        """Show another log."""
        self.session_log = log
        self._laid = LogRows(log)
        self.items = range(0)

    @property
    def follows(self) -> bool:
        """The cursor is on the last line: new ones take it along."""
        return self.cursor >= len(self._laid) - 1

    def draw(self, item: int, width: int) -> StyledRow:
        line, text, _ = self._laid.piece(item)
        stream = f"{MARKS['guide']} " if line.stream else ""
        room = width - 1 - len(stream)
        text = text[self._column :]
        if len(text) > room:
            text = text[: room - 1] + MARKS["ellipsis"]
        return [(f" {stream}", "fallback" if line.stream == "stderr" else "dim"), (text, line.content.style)]

    def searched(self, index: int) -> str:
        if not self.items:
            return ""
        line, _, begins = self._laid.piece(index)
        return line.content.text if begins else ""

    def on_resize(self, event: events.Resize) -> None:
        """Wrap anew, with the cursor on the line where it was."""
        follows = self.follows
        line = self._line
        self._lay()
        self.cursor = len(self._laid) - 1 if follows else self._laid.row_of(line)
        self.rows_changed()

    @property
    def _line(self) -> int:
        """The index of the cursor's line in the log."""
        return self._laid.line_of(self.cursor) if len(self._laid) else 0

    @property
    def _content(self) -> LogText:
        lines = self.session_log.lines
        return lines[self._line].content if lines else _EMPTY

    def _lay(self) -> int:
        """Lay out what is new, or all at another width; the number of rows that went from the front."""
        gone = self._laid.lay(self.line_width - 1)
        self.items = range(len(self._laid))
        return gone

    def go_to_line(self, line: int) -> None:
        """Put the cursor on a line of the log."""
        self.go(self._laid.row_of(line))

    def grew(self, *, follow: bool, stop: int | None) -> None:
        """Lines were added at the end, and some may have gone from the front: what is read stays where it is.

        With `follow` the cursor goes to the end, or to the line `stop` and that line to the top.
        """
        gone = self._lay()
        top = None if stop is None else self._laid.row_of(stop)
        if follow:
            self.cursor = len(self._laid) - 1 if top is None else top
        elif gone:
            self.cursor = max(0, self.cursor - gone)
            self.scroll_to(y=max(0, self.scroll_offset.y - gone), animate=False, immediate=True)
        self.rows_changed()
        if follow and top is not None:
            self.scroll_to(y=top, animate=False, immediate=True, force=True)
        elif follow:
            self.show_cursor()

    def action_wrap(self) -> None:
        """Wrap long lines of output, or leave each one row."""
        line = self._line
        self._laid.turn()
        self._lay()
        self._column, self.cursor = 0, self._laid.row_of(line)
        self.rows_changed()
        self.post_message(Flash("output is wrapped" if self._laid.wraps_output else "a line of output is a row"))

    def action_sideways(self, side: int) -> None:
        self._column = max(0, self._column + side * _STEP)
        self.refresh()

    def action_open(self) -> None:
        if self._content.file:
            self.post_message(LineChosen(self._content.file, self._content.line, jump=True))

    def action_edit(self) -> None:
        """The user's line that the cursor's line is about, else what `e` opens in other panes."""
        if self._content.file:
            self.post_message(EditorRequest(self._content.file, self._content.line))
        else:
            self.post_message(ActionRequest("edit"))

    def action_repro(self, smallest: bool = False) -> None:
        """Of the break, recompile or failure that the line is about; elsewhere what the key does."""
        line = self.session_log.lines[self._line] if self.session_log.lines else None
        if line is not None and line.sought is not None:
            self.post_message(ReproRequest(line.sought, smallest=smallest, run=line.run))
        else:
            self.post_message(ActionRequest("minify" if smallest else "repro"))

    def copied(self, index: int) -> tuple[str, str]:
        block = self.session_log.block(self._laid.line_of(index))
        return "\n".join(block), counted(len(block), "line")

    def action_copy_all(self) -> None:
        texts = [line.copied for line in self.session_log.lines]
        self.post_message(CopyRequest("\n".join(texts), counted(len(texts), "line")))
