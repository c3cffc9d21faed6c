"""Keys of the pane Why alone: the graphs beside a row, a mark, why two are not fused, the trace."""

from idbg.schema.code import Kernel
from idbg.schema.graphs import GraphId, NodeId
from idbg_tui.messages import ActionRequest, Flash, NodeChosen, PairRequest, TraceRequest
from idbg_tui.panes.section_pane import SectionPane
from idbg_tui.widgets.section_list import SectionLines


class RowKeys(SectionPane):
    """A pane of rows that are about decisions."""

    def __init__(self, lines: SectionLines | None = None, *, id: str | None = None) -> None:
        super().__init__(lines, id=id)
        self._marked: NodeId | Kernel | None = None

    def show_marks(self) -> None:
        """Show what is marked now."""
        raise NotImplementedError

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
        run = self.run
        graph = run.graphs.get(graph_id) if run is not None and graph_id is not None and self._is_shown else None
        if graph is None or not graph.nodes:
            return None
        calls = [node for node in graph.nodes if node.op.startswith("call")] or graph.nodes
        return graph.node_id(calls[-1 if side < 0 else 0].name)

    @property
    def _subject(self) -> NodeId | Kernel | None:
        """The node or kernel that the row is about."""
        row, run = self.lines.chosen, self.run
        if row is None or run is None:
            return None
        if row.kernel is None:
            return self.node_of(row)
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
        if self.view == "time" and self.run is not None:
            self.post_message(TraceRequest(self.run.number))
        else:
            self.post_message(ActionRequest("report"))
