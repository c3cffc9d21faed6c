"""List the phases of the compile that goes on, in the place of what it has not made yet."""

import time

from idbg.views import run_summary
from idbg.views.tree import Options
from idbg_tui.state import queries
from idbg_tui.state.state import State
from idbg_tui.widgets import sections
from idbg_tui.widgets.section_rows import Look, Rows

TICK = 1.0  # seconds between two looks at the clock


def phases(state: State, look: Look) -> Rows:
    """A row a phase: what is over, what goes on, what usually comes; none where nothing is compiled."""
    run = state.run
    if run is None or not state.running:
        return Rows()
    options = Options(typical=state.typical, earlier=queries.earlier_runs(state, run))
    section = run_summary.compiling(run, time.time(), options, queries.usual_seconds(state))
    return sections.rows(section, look)
