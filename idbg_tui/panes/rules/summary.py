"""The run in short, in the place of the rules where no accelerator is chosen."""

from textual.timer import Timer

from idbg.views import run_summary
from idbg.views.tree import Section
from idbg_tui.messages import Flash, KernelChosen, SourceRequest
from idbg_tui.panes.compile_phases import TICK, phases
from idbg_tui.state import queries
from idbg_tui.state.sentences import why_no_graph
from idbg_tui.state.state import State
from idbg_tui.widgets import sections
from idbg_tui.widgets.section_list import SectionLines
from idbg_tui.widgets.section_rows import Look

HINTS = (("d", "compare"), ("R", "time kernels"), ("W", "why"), ("a", "accelerator"), ("A", "add a rule"))
SAVED = (("W", "why"), ("enter", "the kernel"), ("y", "copy"))


class RunSummary(SectionLines):
    """What the run came to, and what to press next; while it compiles, its phases."""

    def __init__(self) -> None:
        super().__init__(self.lay, "the run in short")
        self._state: State | None = None
        self._seen: tuple[object, ...] = ()
        self._ticking: Timer | None = None

    def on_mount(self) -> None:
        self._ticking = self.set_interval(TICK, self.lay, pause=True)

    def show_run(self, state: State) -> None:
        """Show the last run as far as it has come."""
        versions = state.versions
        seen = versions.run, versions.graphs, versions.decisions, state.running
        if seen == self._seen:
            return
        self._state, self._seen = state, seen
        self.lay()
        if self._ticking is not None:
            (self._ticking.resume if state.running else self._ticking.pause)()

    def lay(self) -> None:
        """List the rows anew, for the time and the width."""
        state = self._state
        if state is None or not self.is_mounted:
            return
        look = Look(width=self.room - 1, files=queries.source_files(state))
        rows = phases(state, look)
        if not rows and state.run is not None:
            short = run_summary.view(state.run, queries.kernel_times(state), keys=state.live)
            following = run_summary.next_keys(HINTS if state.live else SAVED[:1])
            rows = sections.rows(Section(short.title, "", short.count, body=(*short.body, following)), look)
        self.show_rows(rows, why_no_graph(state))

    def action_open(self) -> None:
        """Go to the kernel that a row is about."""
        row = self.chosen
        if row is not None and row.kernel is not None:
            self.post_message(KernelChosen(*row.kernel))
            self.post_message(SourceRequest())
        else:
            self.post_message(Flash("this row leads nowhere: a chooses an accelerator, A adds a rule"))
