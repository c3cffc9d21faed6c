"""The session's scripts that show a failure again: their status, size and age."""

import time
from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path

from idbg.schema.repros import OtherFailure, Sought
from idbg.schema.session_repros import SessionRepro
from idbg.views import repros
from idbg_tui.messages import ActionRequest, CopyRequest, EditorRequest, Flash, ReproRequest, ScriptRequest
from idbg_tui.panes.repros import scripts
from idbg_tui.panes.section_pane import SectionPane
from idbg_tui.state.state import State
from idbg_tui.widgets import sections
from idbg_tui.widgets.section_list import SectionLines
from idbg_tui.widgets.section_rows import Row

_AGING = 10.0  # seconds between two updates of their ages


class ReproLines(SectionLines):
    """The table of the repros; what is copied of a row is its script."""

    folder = Path()

    @property
    def path(self) -> str:
        """The script that the cursor's row is about; "" where it has none."""
        return self.chosen.copied if self.chosen is not None else ""

    @property
    def key_of_row(self) -> tuple[str, int, str, int] | None:
        """The key of the cursor's row in the table; None where it is about no repro."""
        key: Hashable = self.chosen.key if self.chosen is not None else None
        while isinstance(key, tuple) and isinstance(key[0], tuple):
            key = key[0]  # of a row's second line
        return (*key, "", 0)[:4] if isinstance(key, tuple) and key[0] == "repro" else None

    @property
    def cursor_number(self) -> int | None:
        """The number of the repro that the cursor is on."""
        return self.key_of_row[1] if self.key_of_row is not None else None

    def copied(self, index: int) -> tuple[str, str]:
        """The script's path; of a row that has none its text."""
        text, name = super().copied(index)
        return text, "the script's path" if self.items[index].copied else name

    def action_copy_all(self) -> None:
        """The whole script."""
        if not self.path:
            self.post_message(Flash("this row has no script to copy"))
            return
        script = scripts.read(self.path, self.folder)
        if script.text:
            self.post_message(CopyRequest(script.text, self.ALL))
        else:
            self.post_message(Flash(f"{script.path}: {script.problem}", "warning"))


class ReprosPane(SectionPane):
    """The repros of the session, newest first; enter reads the script."""

    ID = "repros"
    lines: ReproLines
    HINTS = (
        *(("enter", "read"), ("X", "minify"), ("x", "again"), ("y", "copy path"), ("Y", "copy script")),
        *(("e", "edit"), ("/", "find")),
    )

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(ReproLines(self.lay, "the script"), id=id)
        self._listed: Sequence[SessionRepro] | None = None

    def on_mount(self) -> None:
        self.set_interval(_AGING, self.lay)

    def show(self, state: State) -> None:
        if self._listed is state.history.repros or not self.is_mounted:
            return
        before = len(self._listed or ()) - 1
        on_newest = self.lines.cursor_number in (before, None)
        self._state, self._listed = state, state.history.repros
        self.lines.folder = Path(state.folder or ".")
        self.lay()
        if on_newest and len(self._listed) - 1 != before:
            self.lines.place_cursor(1)  # the newest, below the heads
        self.mark = str(len(self._listed)) if self._listed else ""

    def lay(self) -> None:
        """Lay the rows out again, for what is known and for the width."""
        if (state := self._state) is None:
            return
        rows: Sequence[Row] = ()
        if state.history.repros:
            section = repros.table(state.history.repros, state.history.runs, time.time(), live=state.live)
            rows = sections.rows(section, replace(self.look, width=self.lines.room - 1))
        self.lines.show_rows(rows, _why_empty(state))

    # ---------------------------------------------------------------- keys

    @property
    def _chosen(self) -> tuple[SessionRepro, OtherFailure | None] | None:
        """The repro of the cursor's row, and the other failure that the row is about, if any."""
        key = self.lines.key_of_row
        if key is None or self._listed is None:
            return None
        _, number, kind, place = key
        repro = self._listed[number]
        return repro, repros.other_failures(repro)[place] if kind == "other" else None

    def open_row(self, row: Row) -> None:
        if self._chosen is not None:
            self.post_message(ScriptRequest(*self._chosen))
        else:
            self.post_message(Flash("enter on a repro reads its script"))

    def why_off(self, action: str) -> str:
        return "" if action == "open" and self._chosen is not None else super().why_off(action)

    def same_everywhere(self, action: str) -> str:
        if action in ("repro", "repro(True)"):
            return "" if self._chosen is not None else "repro" if action == "repro" else "minify"
        return "" if action == "edit" and self.lines.path else super().same_everywhere(action)

    def action_edit(self) -> None:
        """Open the script in the user's editor; on other rows what the key does everywhere."""
        if not self.lines.path:
            self.post_message(ActionRequest("edit"))
            return
        self.post_message(EditorRequest(scripts.read(self.lines.path, self.lines.folder).path))

    def action_repro(self, smallest: bool = False) -> None:
        """The same again; or on with the search for the smallest, from where it was stopped."""
        if self._chosen is None:
            self.post_message(ActionRequest("minify" if smallest else "repro"))
            return
        repro, _ = self._chosen
        sought = repro.sought
        if sought.kind == "violation" and sought.node is None:
            sought = Sought("failure")  # strict rules wrote it of what stopped the run
        if smallest and repro.minified is not None and repro.minified.minimal:
            self.post_message(Flash(f"{repros.sought_words(sought)}: this is 1-minimal, nothing can be left out"))
            return
        self.post_message(ReproRequest(sought, smallest=smallest, run=repro.run))


def _why_empty(state: State) -> str:
    if not state.live:
        return "this saved session has no repros"
    return "no repro yet: x writes one of what the cursor is on, X finds the smallest script that fails so"
