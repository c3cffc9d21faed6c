"""Show another stage, run or kernel beside the one that is shown, with one cursor."""

from idbg.analysis.provenance import Provenance
from idbg.schema.code import Kernel
from idbg.schema.graphs import Graph, NodeId
from idbg.views.frame_graphs import graph_words
from idbg_tui.controllers.context import Context
from idbg_tui.messages import BesideRequest
from idbg_tui.state import queries
from idbg_tui.widgets.line_pairs import EqualLines, PairedText
from idbg_tui.widgets.side_by_side import LinePairs, SideBySide

_MOST = 5_000  # nodes of both graphs: of more it takes seconds to find those without a counterpart


class SameComputation:
    """The lines of two stages of a frame, paired by the nodes that are the same computation."""

    def __init__(self, left: Graph, right: Graph, provenance: Provenance) -> None:
        self._graphs, self._provenance = (left, right), provenance
        self._nodes = tuple(
            {node.code_line: node.name for node in graph.nodes if node.code_line} for graph in self._graphs
        )
        self.marks: tuple[frozenset[int], frozenset[int]] = frozenset(), frozenset()
        if len(left.nodes) + len(right.nodes) <= _MOST:
            self.marks = self._alone(0), self._alone(1)

    def _alone(self, side: int) -> frozenset[int]:
        """The lines of nodes without a counterpart."""
        return frozenset(line for line in self._nodes[side] if not self._counterparts(side, line))

    def _counterparts(self, side: int, line: int) -> list[int]:
        node, other = NodeId(self._graphs[side].id, self._nodes[side][line]), self._graphs[1 - side]
        same = self._provenance.counterparts(node, other.id)
        return [found.code_line for each in same if (found := other.by_name.get(each.name)) and found.code_line]

    def beside(self, side: int, line: int) -> int:
        """The line of the counterpart; for a line without one, of the nearest node above that has one."""
        for above in sorted((each for each in self._nodes[side] if each <= line), reverse=True):
            if found := self._counterparts(side, above):
                return found[-1]
        return 1


class StandingBeside:
    """Pairs what is shown with what was chosen."""

    def __init__(self, context: Context) -> None:
        self._context, self._state = context, context.state

    def open(self, request: BesideRequest) -> None:
        """Show it beside; a sentence where there is nothing to show it beside."""
        if request.kernel is not None:
            self._kernels(request.kernel)
            return
        run, graph = self._state.shown, self._state.graph
        other = self._state.history.runs.get(request.run) if request.run else run
        found = other.graphs.get(request.stage or graph.id) if other is not None and graph is not None else None
        if run is None or graph is None or other is None or found is None:
            none = f"run {request.run} has no graph of this stage and frame" if request.run else "no graph yet"
            self._context.flash(none)
            return
        named = (f"run {run.number}: ", f"run {other.number}: ") if other is not run else ("", "")
        texts = [
            PairedText(f"{name}{graph_words(each.id)}", each.code, f"{name}{graph_words(each.id)}")
            for name, each in zip(named, (graph, found), strict=True)
        ]
        pairs: LinePairs = EqualLines(graph.code, found.code)
        if other is run and self._state.provenance is not None:
            pairs = SameComputation(graph, found, self._state.provenance)
        line = self._state.node.code_line if self._state.node is not None else 0
        self._context.app.push_screen(SideBySide(texts, pairs, line))

    def _kernels(self, other: Kernel) -> None:
        kernel = queries.shown_kernel(self._state)
        if kernel is None or not kernel.source:
            self._context.flash("no generated kernel is shown to stand beside it: , and . go to one")
            return
        texts = [PairedText(each.name, each.source, each.name, each.source_language) for each in (kernel, other)]
        self._context.app.push_screen(SideBySide(texts, EqualLines(kernel.source, other.source)))
