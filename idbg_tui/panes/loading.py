"""Placeholders for the panes, and the panes: importing those takes as long as the first paint."""

from pathlib import Path

from idbg_tui.panes.base import NAMES, Pane, PaneId


class PlaceholderPane(Pane):
    """The name of a pane that is still to come."""

    def __init__(self, pane: PaneId) -> None:
        super().__init__()
        self.ID = pane  # type: ignore[misc]
        self.hidden = pane == "processes"

    def render(self) -> str:
        return ""

    def on_mount(self) -> None:
        self.show(None)

    def show(self, state: object) -> None:
        """There is nothing in it yet but its name."""
        self.set_title(self.heading())


def placeholders() -> list[Pane]:
    """A frame for every pane."""
    return [PlaceholderPane(pane) for pane in NAMES]


def first_panes(choices: Path | None = None) -> list[Pane]:
    """The panes that a session shows first. `choices`: the folder in which they remember what the user chose."""
    from idbg_tui.panes.findings.pane import FindingsPane
    from idbg_tui.panes.graph.pane import GraphPane
    from idbg_tui.panes.node.pane import NodePane
    from idbg_tui.panes.source.pane import SourcePane

    return [
        GraphPane(choices / "graph.json" if choices is not None else None),
        SourcePane(),
        NodePane(),
        FindingsPane(),
    ]


def other_panes() -> list[Pane]:
    """The others."""
    from idbg_tui.panes.benchmarks.pane import BenchmarksPane
    from idbg_tui.panes.kernel_diff.pane import KernelDiffPane
    from idbg_tui.panes.log.pane import LogPane
    from idbg_tui.panes.processes.pane import ProcessesPane
    from idbg_tui.panes.repros.pane import ReprosPane
    from idbg_tui.panes.rules.pane import RulesPane
    from idbg_tui.panes.switches.pane import SwitchesPane
    from idbg_tui.panes.why.pane import WhyPane

    return [
        *(KernelDiffPane(), BenchmarksPane(), LogPane(), RulesPane(), ReprosPane(), WhyPane(), SwitchesPane()),
        ProcessesPane(),
    ]
