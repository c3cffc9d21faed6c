"""Sentences about a state that several parts of the screen show."""

from idbg.format.amounts import counted
from idbg.format.glyphs import MARKS
from idbg.schema.violations import Severity
from idbg_tui.state import queries
from idbg_tui.state.state import State

READ_ONLY = "read from disk: nothing can be run"
"""Why a saved session does nothing more."""
_WORDS: dict[Severity, str] = {
    "reject": "rejected",
    "fallback": "on the host",
    "pad": "padded",
    "tile": "tiled",
    "slow": "slow",
    "unknown": "unknown",
}


def other_levels(state: State) -> str:
    """ "dynamo: 17 rejected, 2 padded", so that no part is taken for the whole; "" where no other breaks a rule."""
    dot = f" {MARKS['separator']} "
    return dot.join(
        f"{level}: {', '.join(f'{count:,} {_WORDS[severity]}' for severity, count in counts.items())}"
        for level, counts in queries.counts_of_other_levels(state)
    )


def why_no_graph(state: State) -> str:
    """Why there is nothing to show, and what can be done about it."""
    if state.beginning:
        return "nothing compiled yet: the worker is starting, and will compile the program"
    if state.running:
        return "nothing captured yet, the program is still being compiled"
    if state.history.processes and state.run is None:
        return f"its {counted(len(state.history.processes), 'process')} have the graphs: # lists them"
    if not state.live:
        return "this saved session has no graph"
    if state.run is None:
        return "nothing compiled yet: r compiles the program"
    if state.run.failure is not None:
        ended = "was cancelled" if state.run.failure.kind == "cancelled" else "failed"
        return f"no graph was captured, the run {ended} before one was"
    return "no graph was captured in this run"


def why_no_node(state: State) -> str:
    """Why no node is selected; "" where one is."""
    if state.selected is not None:
        return ""
    return why_no_graph(state) if state.graph is None else "no node is selected"
