"""The processes of the session; enter shows one of them on the whole screen."""

from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path

from textual.app import ComposeResult

from idbg.schema.processes import ProcessReport
from idbg.session import processes, summaries
from idbg.views import processes as view
from idbg_tui.messages import Flash, ProcessChosen
from idbg_tui.panes.section_pane import SectionPane
from idbg_tui.state.state import State
from idbg_tui.widgets import sections
from idbg_tui.widgets.section_list import SectionLines
from idbg_tui.widgets.section_rows import Row

_READ_AGAIN = 1.0  # seconds, while the pane is seen and a process runs


class ProcessesPane(SectionPane):
    """A row a process, the main one first."""

    ID = "processes"
    LABEL = "Processes"
    SHORT = "Procs"
    HINTS = (("enter", "show it"), ("Q", "main process"), ("s", "sort"), ("/", "find"), ("y", "copy"))
    NOTHING_HERE = "enter on a process shows it on the whole screen"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(SectionLines(self.lay, "all processes"), id=id)
        self.hidden = True
        self._known: list[ProcessReport] = []
        self._overviews: list[view.ProcessOverview] | None = None

    def compose(self) -> ComposeResult:
        yield self.lines

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
        folder = Path(state.whole.folder or ".")
        if self._overviews is None:
            self._overviews = [
                view.overview(each, summaries.current(folder / processes.FOLDER / each.name)) for each in self._known
            ]
        main = summaries.current(folder)
        section = view.view(self._overviews, main, state.process.name if state.process is not None else "")
        self.lines.show_rows(sections.rows(section, replace(self.look, width=self.lines.room - 1)), view.EMPTY)

    def _read_again(self) -> None:
        if self._known and self.lines.size.width and any(each.ended is None for each in self._known):
            self._overviews = None
            self.lay()

    @property
    def _chosen(self) -> str | None:
        """The name of the process that the cursor is on, "" of the main one; None: it is on none."""
        key: Hashable = self.lines.chosen.key if self.lines.chosen is not None else None
        return str(key[1]) if isinstance(key, tuple) and len(key) == 2 and key[0] == "process" else None

    def open_row(self, row: Row) -> None:
        if (name := self._chosen) is not None:
            self.post_message(ProcessChosen(name))
        else:
            self.post_message(Flash(self.NOTHING_HERE))

    def why_off(self, action: str) -> str:
        return "" if action == "open" and self._chosen is not None else super().why_off(action)
