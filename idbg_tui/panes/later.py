"""Which panes can the first screen do without? Their frames stand there while they are imported and made."""

from idbg_tui.panes.base import Pane, PaneId


class PaneFrame(Pane):
    """The name of a pane that is still to come."""

    def __init__(self, name: PaneId, label: str, short: str = "") -> None:
        super().__init__()
        self.ID, self.LABEL, self.SHORT = name, label, short  # type: ignore[misc]

    def show(self, state: object) -> None:
        """There is nothing in it yet but its name."""
        self.set_title(self.heading())


def frames() -> list[Pane]:
    """What stands where the other panes will be, in the order of `made`."""
    return [
        PaneFrame("kernel_diff", "KernelDiff", "Diff"),
        PaneFrame("benchmarks", "Benchmarks", "Bench"),
        PaneFrame("log", "Log"),
        PaneFrame("rules", "Rules"),
        PaneFrame("repros", "Repros"),
        PaneFrame("why", "Why"),
        PaneFrame("switches", "Switches", "Switch"),
    ]


def made() -> list[Pane]:
    """The panes themselves, in the order of their frames. To import them takes as long as the first paint."""
    from idbg_tui.panes.benchmarks.pane import BenchmarksPane
    from idbg_tui.panes.kernel_diff.pane import KernelDiffPane
    from idbg_tui.panes.log.pane import LogPane
    from idbg_tui.panes.repros.pane import ReprosPane
    from idbg_tui.panes.rules.pane import RulesPane
    from idbg_tui.panes.switches.pane import SwitchesPane
    from idbg_tui.panes.why.pane import WhyPane

    return [KernelDiffPane(), BenchmarksPane(), LogPane(), RulesPane(), ReprosPane(), WhyPane(), SwitchesPane()]
