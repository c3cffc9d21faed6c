"""Empty frames that stand where the panes will be, and the panes: to import them takes as long as the first paint."""

from idbg_tui.panes.base import Pane, PaneId


class PaneFrame(Pane):
    """The name of a pane that is still to come."""

    def __init__(self, name: PaneId, label: str, short: str = "", tight: str = "") -> None:
        super().__init__()
        self.ID, self.LABEL, self.SHORT, self.TIGHT = name, label, short, tight  # type: ignore[misc]

    def render(self) -> str:
        return ""

    def on_mount(self) -> None:
        self.show(None)

    def show(self, state: object) -> None:
        """There is nothing in it yet but its name."""
        self.set_title(self.heading())


def frames() -> list[Pane]:
    """A frame for every pane."""
    return [
        PaneFrame("graph", "Graph"),
        PaneFrame("source", "Source", tight="Src"),
        PaneFrame("node", "Node"),
        PaneFrame("violations", "Violations", tight="Viol"),
        PaneFrame("kernel_diff", "KernelDiff", "Diff"),
        PaneFrame("benchmarks", "Benchmarks", "Bench"),
        PaneFrame("log", "Log"),
        PaneFrame("rules", "Rules"),
        PaneFrame("repros", "Repros", tight="Repro"),
        PaneFrame("why", "Why"),
        PaneFrame("switches", "Switches", "Switch", "Swit"),
    ]


def seen() -> list[Pane]:
    """The panes that a session shows first."""
    from idbg_tui.panes.graph.pane import GraphPane
    from idbg_tui.panes.node.pane import NodePane
    from idbg_tui.panes.source.pane import SourcePane
    from idbg_tui.panes.violations.pane import ViolationsPane

    return [GraphPane(), SourcePane(), NodePane(), ViolationsPane()]


def hidden() -> list[Pane]:
    """The others."""
    from idbg_tui.panes.benchmarks.pane import BenchmarksPane
    from idbg_tui.panes.kernel_diff.pane import KernelDiffPane
    from idbg_tui.panes.log.pane import LogPane
    from idbg_tui.panes.repros.pane import ReprosPane
    from idbg_tui.panes.rules.pane import RulesPane
    from idbg_tui.panes.switches.pane import SwitchesPane
    from idbg_tui.panes.why.pane import WhyPane

    return [KernelDiffPane(), BenchmarksPane(), LogPane(), RulesPane(), ReprosPane(), WhyPane(), SwitchesPane()]
