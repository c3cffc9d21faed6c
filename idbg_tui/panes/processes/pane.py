"""The processes of the session; enter shows one of them on the whole screen. Ranks are compared in a second view."""

import asyncio
import time
from collections.abc import Hashable
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType

from idbg.schema.errors import OutputError
from idbg.schema.processes import ProcessReport
from idbg.schema.ranks import RankComparison
from idbg.session import processes, ranks, summaries
from idbg.views import processes as view
from idbg.views import ranks as ranks_view
from idbg_tui.messages import ActionRequest, Flash, ProcessChosen
from idbg_tui.panes.section_pane import SectionPane
from idbg_tui.state.state import State
from idbg_tui.widgets import sections
from idbg_tui.widgets.section_list import SectionLines
from idbg_tui.widgets.section_rows import Row

RANKS = "ranks"
COMPARING = "ranks are compared ..."
_READ_AGAIN = 1.0  # seconds, while the pane is seen and a process runs
_GO_HERE = "pane_12"  # in keymap.KEYS
_REST = 10  # ranks are compared again after so many times what that took


class ProcessesPane(SectionPane):
    """A row a process, the main one first; or what the ranks differ in, and the matrix of their compiles."""

    ID = "processes"
    HINTS = (
        *(("enter", "show it"), ("Q", "main process"), ("[ ]", "processes, ranks compared")),
        *(("s", "sort"), ("/", "find"), ("y", "copy")),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "view", "the other view: processes, ranks compared", show=False),
        Binding("right_square_bracket", "view", "the other view: processes, ranks compared", show=False),
    ]
    NOTHING_HERE = "enter on a process shows it on the whole screen"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(SectionLines(self.lay, "all processes"), id=id)
        self.hidden = True
        self._known: list[ProcessReport] = []
        self._overviews: list[view.ProcessOverview] | None = None
        self._ranks: RankComparison | None = None
        self._why_no_ranks = ""
        self._compare_at = 0.0

    def on_mount(self) -> None:
        self.set_interval(_READ_AGAIN, self._read_again)

    def show(self, state: State) -> None:
        """List the processes, where there are others than the main one."""
        if not self.is_mounted:
            return
        is_first, self._state = self._state is None, state
        if is_first:  # the folder is read once: of a session that was cut off, the log does not name all
            self._known = processes.reports(Path(state.whole.folder or "."), state.whole.history.processes)
            self._overviews = None
        elif list(state.whole.history.processes.values()) != self._known and state.whole.history.processes:
            self._known = list(state.whole.history.processes.values())
            self._overviews = None
        if self._known and self.hidden and state.whole is state and state.run is None:
            self.post_message(ActionRequest(_GO_HERE))  # the main process has nothing to show
        self.hidden = not self._known
        self.mark = str(len(self._known) + 1) if self._known else ""
        if self._overviews is None:
            self.lay()

    def lay(self) -> None:
        """Lay the rows out again, for what is known and for the width."""
        if (state := self._state) is None:
            return
        if not self._known:
            self.lines.show_rows((), view.EMPTY)
            return
        look = replace(self.look, width=self.lines.room - 1)
        if self.view == RANKS:
            rows = sections.rows(ranks_view.view(self._ranks), look) if self._ranks is not None else ()
            self.lines.show_rows(rows, self._why_no_ranks or COMPARING)
            return
        folder = Path(state.whole.folder or ".")
        if self._overviews is None:
            self._overviews = [
                view.overview(each, summaries.current(folder / processes.FOLDER / each.name)) for each in self._known
            ]
        main = summaries.current(folder)
        shown = state.process.name if state.process is not None else ""
        section = view.view(self._overviews, main, state.whole.history.last, shown)
        self.lines.show_rows(sections.rows(section, look), view.EMPTY)

    def action_view(self) -> None:
        """Turn to the ranks, or back to the processes."""
        if not self._known:
            self.post_message(Flash(view.EMPTY))
            return
        self.turn_to("" if self.view == RANKS else RANKS)
        if self.view == RANKS:
            self.run_worker(self._compare(), group=RANKS, exclusive=True)

    async def _compare(self) -> None:
        """Compare the ranks beside the screen, and list what comes of it."""
        state, began = self._state, time.monotonic()
        assert state is not None
        self._compare_at = inf
        try:
            found = await asyncio.to_thread(ranks.of_session, Path(state.whole.folder or "."), self._known)
        except OutputError as error:
            self._ranks, self._why_no_ranks = None, error.in_one_line
        else:
            self._ranks = found if found.digests else None
            self._why_no_ranks = "" if found.digests else ranks_view.NOTHING
        self._compare_at = time.monotonic() + _REST * (time.monotonic() - began)
        if self.view == RANKS:
            self.lay()

    def _read_again(self) -> None:
        if self._known and self.lines.size.width and any(each.ended is None for each in self._known):
            self._overviews = None
            if self.view != RANKS:
                self.lay()
            elif time.monotonic() >= self._compare_at:
                self.run_worker(self._compare(), group=RANKS, exclusive=True)

    @property
    def _chosen(self) -> str | None:
        """The name of the process that the cursor is on, "" of the main one; None: it is on none."""
        key: Hashable = self.lines.chosen.key if self.lines.chosen is not None else None
        return str(key[1]) if isinstance(key, tuple) and len(key) == 2 and key[0] == "process" else None

    def open_row(self, row: Row) -> None:
        if self.view == RANKS:
            super().open_row(row)
        elif (name := self._chosen) is not None:
            self.post_message(ProcessChosen(name))
        else:
            self.post_message(Flash(self.NOTHING_HERE))

    def why_off(self, action: str) -> str:
        return "" if action == "open" and self._chosen is not None else super().why_off(action)
