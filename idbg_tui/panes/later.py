"""Which panes can the first screen do without? Their frames stand there while they are imported and made."""

from idbg_tui.panes.base import Pane


class Frame(Pane):
    """The number and the name of a pane that is still to come."""

    def __init__(self, number: int, label: str, short: str = "") -> None:
        super().__init__()
        self.NUMBER, self.LABEL, self.SHORT = number, label, short  # type: ignore[misc]
        self.set_title(self.heading())

    def show(self, state: object) -> None:
        """There is nothing in it yet."""


def frames() -> list[Pane]:
    return [Frame(5, "KernelDiff", "Diff"), Frame(6, "Benchmarks", "Bench"), Frame(7, "Log"), Frame(8, "Rules")]


def made() -> list[Pane]:
    """The panes themselves, in the order of their frames. To import them takes as long as the first paint."""
    from idbg_tui.panes.benchmarks.pane import BenchmarksPane
    from idbg_tui.panes.kernel_diff.pane import KernelDiffPane
    from idbg_tui.panes.log.pane import LogPane
    from idbg_tui.panes.rules.pane import RulesPane

    return [KernelDiffPane(), BenchmarksPane(), LogPane(), RulesPane()]
