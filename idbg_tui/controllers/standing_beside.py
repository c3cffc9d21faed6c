"""Show another stage, run or kernel beside the one that is shown, with one cursor."""

from idbg.analysis.provenance import Provenance
from idbg.schema.code import CompilerStage, Kernel, StageKey
from idbg.schema.graphs import NodeId
from idbg.session.stage_texts import text_of
from idbg.views.frame_graphs import graph_words
from idbg_tui.controllers.context import Context
from idbg_tui.messages import BesideRequest, SidesRequest
from idbg_tui.state import queries
from idbg_tui.state.same_computation import SameComputation
from idbg_tui.widgets.line_pairs import EqualLines, LinePairs, PairedText
from idbg_tui.widgets.side_by_side import SideBySide

_NEAR = 200  # linked lines above the cursor that are searched for one with a counterpart


class SameNodes:
    """The lines of two compilers' stages of a run, paired by the nodes that they belong to."""

    def __init__(self, left: CompilerStage, right: CompilerStage, provenance: Provenance | None) -> None:
        self._names = dict(left.links), dict(right.links)
        self._graphs, self._provenance = (left.graph, right.graph), provenance
        self._lines = self._by_name(0), self._by_name(1)
        self.marks = self._alone(0), self._alone(1)

    def _by_name(self, side: int) -> dict[str, int]:
        """The first line of each node."""
        return {name: line for line, names in reversed(self._names[side].items()) for name in names}

    def _alone(self, side: int) -> frozenset[int]:
        """The lines of nodes that the other text does not have."""
        alone = {name for name in self._lines[side] if not self._counterparts(side, name)}
        return frozenset(line for line, names in self._names[side].items() if alone.issuperset(names))

    def _counterparts(self, side: int, name: str) -> list[int]:
        graph, other = self._graphs[side], self._graphs[1 - side]
        if graph is None or other is None:
            return []
        names = [name]
        if graph != other:
            same = self._provenance.counterparts(NodeId(graph, name), other) if self._provenance else []
            names = [node.name for node in same]
        return [self._lines[1 - side][each] for each in names if each in self._lines[1 - side]]

    def beside(self, side: int, line: int) -> int:
        """The first line of the same nodes; for a line without any, of the nearest above that has one."""
        for above in sorted((each for each in self._names[side] if each <= line), reverse=True)[:_NEAR]:
            if found := [line for name in self._names[side][above] for line in self._counterparts(side, name)]:
                return min(found)
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
        if request.compiler_stage is not None or (request.run and self._state.stage is not None):
            self._compiler_stages(request.run, request.compiler_stage or self._state.stage)
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

    def _compiler_stages(self, number: int, key: StageKey | None) -> None:
        """Another compiler's stage beside the shown one: of the same run, or the same stage of another run."""
        run, shown = self._state.shown, queries.shown_stage(self._state)
        other = self._state.history.runs.get(number) if number else run
        found = other.stages.get(key) if other is not None and key is not None else None
        if run is None or shown is None or other is None or found is None:
            where = f"run {number}" if number else "this run"
            self._context.flash(f"{where} has no such stage of another compiler")
            return
        named = (f"run {run.number}: ", f"run {other.number}: ") if other is not run else ("", "")
        texts = [self._paired(name, stage) for name, stage in zip(named, (shown, found), strict=True)]
        pairs: LinePairs = EqualLines(texts[0].text, texts[1].text)
        if other is run and shown.links and found.links:
            pairs = SameNodes(shown, found, self._state.provenance)
        lines = self._state.stage_lines.lines(shown, queries.nodes_in_stage(self._state, shown))
        self._context.app.push_screen(SideBySide(texts, pairs, min(lines, default=0)))

    def _paired(self, run: str, stage: CompilerStage) -> PairedText:
        text, note = text_of(stage, self._state.folder)
        title = f"{run}{stage.compiler}: {stage.name}" + (f" ({note})" if note else "")
        return PairedText(title, text, f"{run}{stage.name}", stage.language, problem=note)

    def _kernels(self, other: Kernel) -> None:
        kernel = queries.shown_kernel(self._state)
        if kernel is None or not kernel.source:
            self._context.flash("no generated kernel is shown to stand beside it: , and . go to one")
            return
        texts = [PairedText(each.name, each.source, each.name, each.source_language) for each in (kernel, other)]
        self._context.app.push_screen(SideBySide(texts, EqualLines(kernel.source, other.source)))
