"""Where do the run's numbers go wrong: since which stage, in which outputs, gradients and kernels?"""

from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from idbg.format.failures import headline
from idbg.format.glyphs import VERDICT_SIGNS
from idbg.schema.blame import Maker, StageError
from idbg.schema.diff import DiffReport, KernelError, TensorDiff
from idbg.schema.faults import NanOrigin
from idbg.schema.graphs import NodeId, Part
from idbg.schema.runs import Run
from idbg.views.tensors import LOOKS
from idbg_tui.messages import (
    ActionRequest,
    DiffRequest,
    EditorRequest,
    Flash,
    KernelChosen,
    NodeChosen,
    OwnerRequest,
    ReproRequest,
    SourceRequest,
)
from idbg_tui.panes.kernel_diff.lines import DiffLines
from idbg_tui.panes.kernel_diff.rows import ORDERS, Heads, Shown, Told, items
from idbg_tui.panes.kernel_diff.stages import StageRow
from idbg_tui.panes.searchable import FindingPane
from idbg_tui.state import queries, repro_targets
from idbg_tui.state.state import State
from idbg_tui.widgets.lines import Lines
from idbg_tui.widgets.search import Searched

_OTHER_RUN = "another run is shown than was compared: D compares again"


class KernelDiffPane(FindingPane):
    """The comparison of the run in hand, or of the last that was compared."""

    ID = "kernel_diff"
    LABEL = "KernelDiff"
    SHORT = "Diff"
    HINTS = (
        *(("enter", "open"), ("d", "compare"), ("D", "kernels"), ("C", "chart"), ("x", "whose error, repro")),
        *(
            ("X", "minify"),
            ("E", "each step of a training"),
            ("p", "the pass's diff"),
            ("/", "filter"),
            ("o", "order"),
            ("H", "failed"),
            (", .", "comparison before, after"),
            ("e", "edit"),
        ),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "edit", show=False),
        Binding("o", "order", show=False),
        Binding("H", "failed", show=False),
        Binding("C", "look('chart')", show=False),
        Binding("E", "look('steps')", show=False),
        Binding("comma", "look('before')", show=False),
        Binding("full_stop", "look('after')", show=False),
        Binding("x", "owner", show=False),
        Binding("X", "repro(True)", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines = DiffLines()
        self._seen: tuple[object, ...] = ()
        self._shown = Shown()
        self._state: State | None = None
        self._landed: DiffReport | None = None  # on whose guilty row the cursor was put

    def compose(self) -> ComposeResult:
        yield self.lines

    def show(self, state: State) -> None:
        compared = queries.compared_run(state)
        report = compared.diff if compared else None
        seen = (report, state.versions.run, self._shown)
        if seen == self._seen or not self.is_mounted:
            return
        self._state = state
        self._seen = seen
        if report is None or compared is None:
            self.mark = ""
            self.lines.show_report([], None, _why_empty(state))
            return
        asked = not state.live or compared.comparison is None or compared.comparison.per_kernel
        told = items(report, self._shown, "" if asked else "D")
        for now in (_before(state, compared), _since(state)):
            told[:0] = [now] if now is not None else []
        self.lines.show_report(told, report, "")
        if not _same_comparison(report, self._landed):
            self._land()
        self._landed = report
        self.mark = VERDICT_SIGNS[LOOKS[report.verdict]]

    def _land(self) -> None:
        """A new comparison: the cursor goes to the guilty row, and, if the user waits for it here, all else."""
        row = self.lines.guilty_row
        if row is None:
            return
        self.lines.place_cursor(row)
        if self.has_pseudo_class("focus-within"):
            self._follow()

    # ---------------------------------------------------------------- keys

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        match item := self.lines.chosen:
            case StageRow():
                self._open_stage(item)
            case KernelError() if self._is_shown(item.frame, item.part):
                self._go_to(item)
                self.post_message(SourceRequest())
            case KernelError():
                self.post_message(Flash(_OTHER_RUN, "warning"))
            case TensorDiff():
                self.post_message(DiffRequest("tensor", item.name))
            case Told(failed=str(side)):
                self.post_message(DiffRequest("failure", side))
            case Told(birth=NanOrigin() as birth):
                self._open_birth(birth)
            case Told(blames=True) if self.lines.guilty_row is not None:
                self.lines.go(self.lines.guilty_row)
            case _:
                said = "enter on a stage goes to its first bad node, on an output looks into it, on a kernel shows it"
                self.post_message(Flash(said))

    def on_lines_moved(self, event: Lines.Moved) -> None:
        event.stop()
        self._follow()

    def _follow(self) -> None:
        """Show what the cursor is on in the other panes, where they show the run that was compared."""
        match item := self.lines.chosen:
            case KernelError() if self._is_shown(item.frame, item.part):
                self._go_to(item)
            case StageRow() if (node := self._node_of(item.stage)) is not None:
                self.post_message(NodeChosen(node))

    def _open_stage(self, row: StageRow) -> None:
        """Go to the first bad node, or to the kernel; a stage that has none is looked into."""
        stage = row.stage
        culprit = self.lines.culprit if stage.stage == "kernels" and row.wrong else None
        if culprit is not None and self._is_shown(culprit.frame, culprit.part):
            self._go_to(culprit)
            self.post_message(SourceRequest())
        elif (node := self._node_of(stage)) is not None:
            self.post_message(NodeChosen(node, jump=True))
        elif stage.node and not self._is_shown(stage.frame, stage.part):
            self.post_message(Flash(_OTHER_RUN, "warning"))
        else:
            self.post_message(DiffRequest("stage", row.name))

    def _open_birth(self, birth: NanOrigin) -> None:
        """Go to the launch, or to a node of the line, where a NaN or an infinity is born."""
        state = self._state
        if birth.graph is not None and self._is_shown(birth.frame, birth.part):
            self.post_message(NodeChosen(NodeId(birth.graph, birth.node)))
            launch = birth.handle, birth.wrapper_line
            self.post_message(KernelChosen(birth.frame, birth.part, birth.kernel, *launch))
            self.post_message(SourceRequest())
            return
        provenance = state.provenance if state is not None else None
        nodes = provenance.nodes_at(birth.file, birth.line) if provenance is not None else []
        if nodes:
            self.post_message(NodeChosen(nodes[0], jump=True))
        else:
            where = "e opens its line" if birth.file else f"it is in {birth.name}"
            self.post_message(Flash(f"no node of the run that is shown is there: {where}"))

    def _node_of(self, stage: StageError) -> NodeId | None:
        """The first bad node, or the one above it that it stands for, if the run that is shown has it."""
        shown = self._state.shown if self._state is not None else None
        if shown is None or not self._is_shown(stage.frame, stage.part):
            return None
        nodes = (stage.graph, stage.node), (stage.above_graph, stage.above)
        known = ((id, name) for id, name in nodes if id in shown.graphs and name in shown.graphs[id].by_name)
        return next((NodeId(id, name) for id, name in known if id is not None), None)

    def _is_shown(self, frame: str, part: Part) -> bool:
        """Whether the run that is shown has this very code: it is the compared one, or its code is the same."""
        state = self._state
        compared = queries.compared_run(state) if state else None
        if state is None or compared is None:
            return False
        return state.shown is compared or queries.has_code_of(state, compared, frame, part)

    def _go_to(self, kernel: KernelError) -> None:
        if kernel.graph is not None and (kernel.node or kernel.nodes):
            self.post_message(NodeChosen(NodeId(kernel.graph, kernel.node or kernel.nodes[0])))
        if not kernel.bisected:
            launch = kernel.handle, kernel.wrapper_line
            self.post_message(KernelChosen(kernel.frame, kernel.part, kernel.name, *launch))

    def action_edit(self) -> None:
        """Open what made a stage wrong in the user's editor; else the line of the row, or of the selected node."""
        places: tuple[Maker | StageError | KernelError | NanOrigin | None, ...] = ()
        match self.lines.chosen:
            case StageRow(stage=stage):
                places = (stage.made_by, stage)
            case KernelError() as kernel:
                places = (kernel,)
            case Told(birth=birth):
                places = (birth,)
        for place in places:
            if place is not None and place.file:
                self.post_message(EditorRequest(place.file, place.line))
                return
        self.post_message(ActionRequest("edit"))

    def action_look(self, what: str) -> None:
        self.post_message(DiffRequest(what))

    def action_owner(self) -> None:
        """Whose the error of the kernel's launch is, with a script of it; elsewhere a repro of what is wrong."""
        item, report = self.lines.chosen, self.lines.report
        if not isinstance(item, KernelError) or report is None:
            self.action_repro()
        elif item.bisected:
            said = "this node was bisected: there is no launch of it that could be called alone; X finds the smallest"
            self.post_message(Flash(f"{said} script"))
        else:
            self.post_message(OwnerRequest(next(at for at, one in enumerate(report.kernels) if one is item)))

    def action_repro(self, smallest: bool = False) -> None:
        """A script, or the smallest, of what the row shows wrong; where nothing was compared, as the key does."""
        if self.lines.report is None:
            self.post_message(ActionRequest("minify" if smallest else "repro"))
            return
        found = repro_targets.of_row(self.lines.chosen, self.lines.report)
        if isinstance(found, str):
            self.post_message(Flash(found))
        else:
            self.post_message(ReproRequest(found, smallest=smallest))

    def action_order(self) -> None:
        order = ORDERS[(ORDERS.index(self._shown.order) + 1) % len(ORDERS)]
        self._again(replace(self._shown, order=order), f"in order: {order}")

    def action_failed(self) -> None:
        failed_only = not self._shown.failed_only
        said = "only what failed; H shows all" if failed_only else "all stages, outputs and kernels"
        self._again(replace(self._shown, failed_only=failed_only), said)

    def _again(self, shown: Shown, said: str) -> None:
        self._shown = shown
        if self._state is not None:
            self.show(self._state)
        if said:
            self.post_message(Flash(said))

    def seek(self, searched: Searched, text: str, *, done: bool) -> None:
        """List only what has the text; the cursor goes to the first of it."""
        said = f"only what has {text}; esc shows all" if text and done else ""
        self._again(replace(self._shown, query=text), said)
        searched.find(text, searched.place)
        first = (row for row, item in enumerate(self.lines.items) if not isinstance(item, Told | Heads))
        if text:
            self.lines.place_cursor(next(first, 0))


def _same_comparison(report: DiffReport, other: DiffReport | None) -> bool:
    """Whether it is the same one, of which more may be known by now: whose the error of a launch is."""
    return other is not None and report.kernels is other.kernels and report.outputs is other.outputs


def _why_empty(state: State) -> str:
    run = state.run
    if run is not None and run.comparison is not None and run.ended is None:
        return f"comparing: {run.side or 'starting'}"
    if not state.live:
        return "this session holds no comparison"
    return "not compared: d holds the outputs against eager and float64, D each kernel too"


def _since(state: State) -> Told | None:
    """What is not in the comparison that is shown."""
    run, compared = state.run, queries.compared_run(state)
    if run is None or compared is None or run is compared:
        return None
    last = next(one for one in reversed(state.history.runs.values()) if one.diff is not None)
    if last is not compared:
        after = f"run {last.number} was compared after it: . goes on to it"
        return Told(f" this is run {compared.number}; {after}", "accent")
    if run.comparison is not None and run.ended is None:
        return Told(f" comparing again: {run.side or 'starting'}; this is run {compared.number}", "accent")
    if run.failure is not None and run.comparison is not None:
        said = f" the comparison failed: {headline(run.failure).what}; this is run {compared.number}"
        return Told(said, "reject", failed="")
    return Told(f" this is run {compared.number}; run {run.number} was not compared: d compares", "dim")


def _before(state: State, compared: Run) -> Told | None:
    """That another comparison, which may know of the kernels, is still there."""
    before = [run for run in state.history.runs.values() if run.diff is not None and run.number < compared.number]
    if not before:
        return None
    what = ", each stage and kernel" if before[-1].comparison is not None and before[-1].comparison.per_kernel else ""
    return Told(f" run {before[-1].number} was compared before{what}: , goes back to it", "dim")
