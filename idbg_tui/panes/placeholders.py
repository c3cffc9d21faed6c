"""What will stand in the panes that are not built yet? One honest line each, and no number."""

from textual.app import ComposeResult
from textual.widgets import Static

from idbg_tui.panes.pane import Pane
from idbg_tui.state import State


class _Placeholder(Pane, can_focus=True):
    """A pane with one dim sentence."""

    SENTENCE = ""
    DEFAULT_CSS = """
    _Placeholder > Static { color: $foreground 55%; padding: 0 1; }
    """

    def compose(self) -> ComposeResult:
        yield Static(self.SENTENCE, markup=False)

    def show(self, state: State) -> None:
        """Nothing is measured here, so nothing is shown."""


class BenchmarksPane(_Placeholder):
    NUMBER = 6
    LABEL = "Benchmarks"
    SHORT = "Bench"
    SENTENCE = "not measured: compile time, latency and memory against eager are not built yet"
