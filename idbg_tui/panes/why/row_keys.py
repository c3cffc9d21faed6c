"""Keys of the rows of the pane Why."""

from idbg.schema.code import Kernel
from idbg.schema.graphs import GraphId, NodeId
from idbg.schema.repros import Sought
from idbg.schema.runs import Run
from idbg_tui.messages import (
    ActionRequest,
    EditorRequest,
    Flash,
    NodeChosen,
    PairRequest,
    ReproRequest,
    TraceRequest,
    TryRequest,
)
from idbg_tui.panes.searchable import FoldingPane
from idbg_tui.panes.why.views import VIEWS, ViewName
from idbg_tui.state.state import State
from idbg_tui.widgets.section_list import SectionLines
from idbg_tui.widgets.section_rows import Row


class RowKeys(FoldingPane):
    """A pane of rows, each of which is about something."""

    def __init__(self, lines: SectionLines, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines = lines
        self.view: ViewName = VIEWS[0]
        self._state: State | None = None
        self._marked: NodeId | Kernel | None = None

    @property
    def sections(self) -> SectionLines:
        return self.lines

    @property
    def _run(self) -> Run | None:
        """The run whose decisions are shown."""
        raise NotImplementedError

    def show_marks(self) -> None:
        """Show what is marked now."""
        raise NotImplementedError

    @property
    def _is_shown(self) -> bool:
        return self._state is not None and self._state.shown is self._run

    def _node_of(self, row: Row) -> NodeId | None:
        run = self._run
        if run is None or not self._is_shown:
            return None
        known = (node for node in row.nodes if node.graph in run.graphs)
        return next((node for node in known if node.name in run.graphs[node.graph].by_name), None)

    def action_graph(self, side: int) -> None:
        """Go to the graph before the row, or after it."""
        row = self.lines.chosen
        graph = (row.before if side < 0 else row.after) if row is not None else None
        node = self._edge(graph, side)
        if node is not None:
            self.post_message(NodeChosen(node, jump=True))
        else:
            self.post_message(Flash(f"no graph {'before' if side < 0 else 'after'} this is known"))

    def _edge(self, graph_id: GraphId | None, side: int) -> NodeId | None:
        """The last call of the graph before, or the first of the one after."""
        run = self._run
        graph = run.graphs.get(graph_id) if run is not None and graph_id is not None and self._is_shown else None
        if graph is None or not graph.nodes:
            return None
        calls = [node for node in graph.nodes if node.op.startswith("call")] or graph.nodes
        return graph.node_id(calls[-1 if side < 0 else 0].name)

    @property
    def _subject(self) -> NodeId | Kernel | None:
        """The node or kernel that the row is about."""
        row, run = self.lines.chosen, self._run
        if row is None or run is None:
            return None
        if row.kernel is None:
            return self._node_of(row)
        return next((one for one in run.kernels if (one.frame, one.part, one.name) == row.kernel), None)

    def action_mark(self) -> None:
        """Keep the row's node or kernel in mind; on another row, ask why the two are not fused."""
        subject = self._subject
        if subject is None:
            self.post_message(Flash("J marks a node or a kernel, to ask why it and another are not fused"))
        elif self._marked is None or self._marked == subject:
            self._marked = None if self._marked == subject else subject
            words = f"{subject.name} is marked: J on another: why not fused?" if self._marked else "no mark"
            self.post_message(Flash(words))
        else:
            self.post_message(PairRequest(self._marked, subject))
            self._marked = None
        self.show_marks()

    def action_why_not(self) -> None:
        """Pick the one with which the row's node or kernel might be fused."""
        subject = self._subject
        self.post_message(PairRequest(subject) if subject is not None else ActionRequest("why_not"))

    def action_write(self) -> None:
        """Of the run's time a file that Perfetto opens; elsewhere the report."""
        if self.view == "time" and self._run is not None:
            self.post_message(TraceRequest(self._run.number))
        else:
            self.post_message(ActionRequest("report"))

    def action_try(self) -> None:
        """Run again with what the row suggests."""
        row = self.lines.chosen
        if row is not None and row.again is not None:
            self.post_message(TryRequest(row.again))
        else:
            self.post_message(Flash("nothing to try here: t works where a row of breaks or recompiles offers it"))

    def action_edit(self) -> None:
        """Open the row's line in the user's editor; of a row without one, what the key does."""
        row = self.lines.chosen
        self.post_message(EditorRequest(row.file, row.line) if row is not None and row.file else ActionRequest("edit"))

    def action_repro(self, smallest: bool = False) -> None:
        """A script of the row's break, recompile or node; of a row without one, what the key does."""
        row = self.lines.chosen
        node = self._node_of(row) if row is not None else None
        sought = Sought("node", node) if node is not None else None
        sought = row.sought or sought if row is not None else None
        if sought is not None:
            self.post_message(ReproRequest(sought, smallest=smallest))
        else:
            self.post_message(ActionRequest("minify" if smallest else "repro"))
