"""Show another stage, run or kernel beside the one that is shown, with one cursor."""

from idbg.schema.code import Kernel
from idbg.views.frame_graphs import graph_words
from idbg_tui.controllers.context import Context
from idbg_tui.messages import BesideRequest, SidesRequest
from idbg_tui.state import queries
from idbg_tui.state.same_computation import SameComputation
from idbg_tui.widgets.line_pairs import EqualLines, LinePairs, PairedText
from idbg_tui.widgets.side_by_side import SideBySide


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

    def open_sides(self, request: SidesRequest) -> None:
        """Show two texts side by side, or one alone."""
        pairs = request.pair() if request.pair is not None else None
        self._context.app.push_screen(SideBySide(request.texts, pairs, request.line))

    def _kernels(self, other: Kernel) -> None:
        kernel = queries.shown_kernel(self._state)
        if kernel is None or not kernel.source:
            self._context.flash("no generated kernel is shown to stand beside it: , and . go to one")
            return
        texts = [PairedText(each.name, each.source, each.name, each.source_language) for each in (kernel, other)]
        self._context.app.push_screen(SideBySide(texts, EqualLines(kernel.source, other.source)))
