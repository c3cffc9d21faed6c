"""The pane KernelDiff: the comparison of a run with a reference, by stage, output, gradient and kernel launch."""

import re
from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import ClassVar

from msgspec import structs
from textual.binding import Binding, BindingType

from idbg.format.failures import headline
from idbg.format.glyphs import VERDICT_SIGNS
from idbg.schema.attribution import Maker, StageError
from idbg.schema.diff import DiffReport, KernelError, TensorDiff
from idbg.schema.faults import NanOrigin
from idbg.schema.graphs import NodeId, Part
from idbg.schema.runs import Run
from idbg.views import diff, tree
from idbg.views.blame import standing
from idbg.views.faults import nan_origin_sentences
from idbg.views.tensors import LOOKS
from idbg.views.tree import Section, Table, words
from idbg_tui.messages import (
    ActionRequest,
    AttributionRequest,
    DiffRequest,
    EditorRequest,
    Flash,
    KernelChosen,
    NodeChosen,
    ReproRequest,
    SourceRequest,
)
from idbg_tui.panes.kernel_diff.rows import ORDERS, Choice, Subject, choose, leading_key, root, subject
from idbg_tui.panes.section_pane import SectionPane
from idbg_tui.state import queries, repro_targets
from idbg_tui.state.state import State
from idbg_tui.widgets import sections
from idbg_tui.widgets.lines import Lines
from idbg_tui.widgets.search import Searched, pattern
from idbg_tui.widgets.section_list import FilteredLines
from idbg_tui.widgets.section_rows import Look, Row, place_of

_OTHER_RUN = "another run is shown than was compared: D compares again"


class DiffLines(FilteredLines):
    """The rows of one comparison."""

    ALL = "the comparison"


class KernelDiffPane(SectionPane):
    """The comparison of the run in hand, or of the last that was compared."""

    ID = "kernel_diff"
    HINTS = (
        *(("enter", "open"), ("d", "compare"), ("D", "kernels"), ("C", "chart"), ("x", "whose error, repro")),
        *(
            ("X", "minify"),
            ("^e", "each step of a training"),
            ("p", "the pass's diff"),
            ("/", "filter"),
            ("o", "order"),
            ("s", "sort"),
            ("H", "failed"),
            (", .", "comparison before, after"),
            ("e", "edit"),
            ("f", "fold all"),
        ),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "order", "another order: by error, as they ran", show=False),
        Binding("H", "failed", "only what failed, or all", show=False),
        Binding("C", "look('chart')", "the chart of the error from kernel to kernel", show=False),
        Binding("ctrl+e", "look('steps')", "compare each step of a training", show=False),
        Binding("comma", "look('before')", "the comparison before", show=False),
        Binding("full_stop", "look('after')", "the comparison after", show=False),
        Binding("x", "owner", "whose error is the launch? Else write a repro of the row", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(DiffLines(self.lay), id=id)
        self._choice = Choice()
        self._landed: DiffReport | None = None  # on whose leading row the cursor was put

    @property
    def run(self) -> Run | None:
        return queries.compared_run(self._state) if self._state is not None else None

    @property
    def report(self) -> DiffReport | None:
        """The comparison that is shown."""
        compared = queries.compared_run(self._state) if self._state is not None else None
        return compared.diff if compared is not None else None

    def show(self, state: State) -> None:
        compared = queries.compared_run(state)
        report = compared.diff if compared else None
        self.mark_selected(state)
        if not self.is_news(state, report, state.versions.run):
            return
        self.lay()
        self.mark = VERDICT_SIGNS[LOOKS[report.verdict]] if report is not None else ""
        if report is not None and not _same_comparison(report, self._landed):
            self._land(report)
        self._landed = report

    def lay(self) -> None:
        """Make the rows for what is known, what is chosen, and for the width."""
        state = self._state
        compared = queries.compared_run(state) if state is not None else None
        if state is None or compared is None or compared.diff is None:
            self.lines.show_rows((), _why_empty(state) if state is not None else "")
            return
        report, query = compared.diff, self.look.query
        look = self.fitted_look(state)
        searched = not state.live or compared.comparison is None or compared.comparison.per_kernel
        section = diff.view(compared, to_ask="" if searched or report.stages or report.kernels else "D")
        found = pattern(query)
        every = _listed(section)
        section = choose(section, report, self._choice, lambda row: found is None or _has(row, found, look))
        notices = [*_before(state, compared), *_since(state)]
        if query:
            notices.append(tree.Row("found", words((f"{_listed(section):,} of {every:,} rows with {query}", "accent"))))
        section = structs.replace(section, body=(*notices, *section.body))
        self.lines.show_rows(sections.rows(section, look), "")  # enter on an output shows its pictures

    def _land(self, report: DiffReport) -> None:
        """A new comparison: the cursor goes to what is wrong, and, if the user waits for it here, all else."""
        if self._lead(report) and self.has_pseudo_class("focus-within"):
            self._follow()

    def _lead(self, report: DiffReport) -> bool:
        """Put the cursor on the row that the comparison leads to; whether there is one."""
        row = place_of(self.lines.items, leading_key(report))
        if row is not None:
            self.lines.place_cursor(row)
        return row is not None

    # ---------------------------------------------------------------- keys

    @property
    def subject(self) -> Subject | None:
        """What the row under the cursor is about."""
        row, report = self.lines.chosen, self.report
        return subject(row.key, report) if row is not None and report is not None else None

    @property
    def _birth(self) -> NanOrigin | None:
        """The NaN or infinity whose origin the row is about."""
        row, report = self.lines.chosen, self.report
        match root(row.key) if row is not None else None:
            case ("nan", int(at)) if report is not None:
                return list(nan_origin_sentences(report))[at][1]
        return None

    def open_row(self, row: Row) -> None:
        report = self.report
        if report is None:
            return
        if row.fold is not None and subject(row.fold, report) is None:
            self.action_fold()
            return
        match self.subject:
            case StageError() as stage:
                self._open_stage(stage, report)
            case KernelError() as kernel if self._has_code(kernel.frame, kernel.part):
                self._go_to(kernel)
                self.post_message(SourceRequest())
            case KernelError():
                self.post_message(Flash(_OTHER_RUN, "warning"))
            case TensorDiff() as tensor:
                self.post_message(DiffRequest("tensor", tensor.name))
            case _:
                self._open_sentence(row.key, report)

    def _open_sentence(self, key: Hashable, report: DiffReport) -> None:
        birth = self._birth
        match root(key):
            case ("failure", str(side), *_):
                self.post_message(DiffRequest("failure", side))
            case ("nan", _) if birth is not None:
                self._open_birth(birth)
            case "blame" | ("blame", _) if self._lead(report):
                self.post_message(Lines.Moved(self.lines, self.lines.cursor))
            case _:
                text = "enter on a stage goes to its first bad node, on an output looks into it, on a kernel shows it"
                self.post_message(Flash(text))

    def moved_to(self, row: Row) -> None:
        self._follow()

    def _follow(self) -> None:
        """Show what the cursor is on in the other panes, where they show the run that was compared."""
        match self.subject:
            case KernelError() as kernel if self._has_code(kernel.frame, kernel.part):
                self._go_to(kernel)
            case StageError() as stage if (node := self._node_of(stage)) is not None:
                self.post_message(NodeChosen(node))

    def _open_stage(self, stage: StageError, report: DiffReport) -> None:
        """Go to the first bad node, or to the kernel; a stage that has none is unfolded."""
        wrong = standing(stage, report) in ("first_wrong", "wrong")
        culprit = report.culprit if stage.stage == "kernels" and wrong else None
        if culprit is not None and self._has_code(culprit.frame, culprit.part):
            self._go_to(culprit)
            self.post_message(SourceRequest())
        elif (node := self._node_of(stage)) is not None:
            self.post_message(NodeChosen(node, jump=True))
        elif stage.node and not self._has_code(stage.frame, stage.part):
            self.post_message(Flash(_OTHER_RUN, "warning"))
        else:
            self.action_fold()

    def _open_birth(self, birth: NanOrigin) -> None:
        """Go to the launch, or to a node of the line, where a NaN or an infinity is born."""
        state = self._state
        if birth.graph is not None and self._has_code(birth.frame, birth.part):
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
        if shown is None or not self._has_code(stage.frame, stage.part):
            return None
        nodes = (stage.graph, stage.node), (stage.above_graph, stage.above)
        known = ((id, name) for id, name in nodes if id in shown.graphs and name in shown.graphs[id].by_name)
        return next((NodeId(id, name) for id, name in known if id is not None), None)

    def _has_code(self, frame: str, part: Part) -> bool:
        """Whether the run that is shown has this very code: it is the compared one, or its code is the same."""
        state = self._state
        compared = queries.compared_run(state) if state else None
        if state is None or compared is None:
            return False
        return state.shown is compared or queries.has_code_of(state, compared, frame, part)

    def _go_to(self, kernel: KernelError) -> None:
        if kernel.graph is not None and (kernel.node or kernel.nodes):
            self.post_message(NodeChosen(NodeId(kernel.graph, kernel.node or kernel.nodes[0])))
        if kernel.is_launch:
            launch = kernel.handle, kernel.wrapper_line
            self.post_message(KernelChosen(kernel.frame, kernel.part, kernel.name, *launch))

    def action_edit(self) -> None:
        """Open what made a stage wrong in the user's editor; else the line of the row, or of the selected node."""
        places: tuple[Maker | StageError | KernelError | NanOrigin | None, ...] = ()
        match self.subject:
            case StageError() as stage:
                places = (stage.made_by, stage)
            case KernelError() as kernel:
                places = (kernel,)
            case None:
                places = (self._birth,)
        for place in places:
            if place is not None and place.file:
                self.post_message(EditorRequest(place.file, place.line))
                return
        self.post_message(ActionRequest("edit"))

    def action_look(self, what: str) -> None:
        self.post_message(DiffRequest(what))

    def why_off(self, action: str) -> str:
        item, report = self.subject, self.report
        if action == "owner" and isinstance(item, KernelError) and item.bisected:
            why = "this node was bisected: there is no launch of it that could be called alone; X finds the smallest"
            return f"{why} script"
        if action == "owner" and isinstance(item, KernelError) and item.is_foreign:
            return f"a {item.unit} of another compiler cannot be called alone; X finds the smallest script"
        if action in ("owner", "repro(True)") and report is not None and not isinstance(item, KernelError):
            found = repro_targets.of_row(item, report)
            return found if isinstance(found, str) else ""
        return super().why_off(action) if action != "open" else ""

    def same_everywhere(self, action: str) -> str:
        if action in ("owner", "repro(True)"):
            return "" if self.report is not None else "repro" if action == "owner" else "minify"
        return super().same_everywhere(action)

    def action_owner(self) -> None:
        """Whose the error of the kernel's launch is, with a script of it; elsewhere a repro of what is wrong."""
        item, report = self.subject, self.report
        if not isinstance(item, KernelError) or report is None:
            self.action_repro()
        elif why := self.why_off("owner"):
            self.post_message(Flash(why))
        else:
            self.post_message(AttributionRequest(next(at for at, one in enumerate(report.kernels) if one is item)))

    def action_repro(self, smallest: bool = False) -> None:
        """A script, or the smallest, of what the row shows wrong; where nothing was compared, as the key does."""
        report = self.report
        if report is None:
            self.post_message(ActionRequest("minify" if smallest else "repro"))
            return
        found = repro_targets.of_row(self.subject, report)
        if isinstance(found, str):
            self.post_message(Flash(found))
        else:
            self.post_message(ReproRequest(found, smallest=smallest))

    def action_order(self) -> None:
        order = ORDERS[(ORDERS.index(self._choice.order) + 1) % len(ORDERS)]
        self._choice = replace(self._choice, order=order)
        self.relist(self.look, f"in order: {order}")

    def action_failed(self) -> None:
        failed_only = not self._choice.failed_only
        self._choice = replace(self._choice, failed_only=failed_only)
        self.relist(self.look, "only what failed; H shows all" if failed_only else "all stages, outputs and kernels")

    def seek(self, searched: Searched, text: str, *, done: bool) -> None:
        """List only what has the text; the cursor goes to the first of it."""
        self.relist(replace(self.look, query=text), f"only what has {text}; esc shows all" if text and done else "")
        searched.find(text, searched.place)
        report = self.report
        if text and report is not None:
            keys = (subject(row.key, report) for row in self.lines.items)
            self.lines.place_cursor(next((at for at, about in enumerate(keys) if about is not None), 0))


def _listed(section: Section) -> int:
    return sum(len(block.rows) for block in section.body if isinstance(block, Table))


def _has(row: tree.Row, found: re.Pattern[str], look: Look) -> bool:
    """Whether the row, or one right below it, has the text."""
    return any(found.search(sections.searched(each, look)) for each in (row, *row.below))


def _same_comparison(report: DiffReport, other: DiffReport | None) -> bool:
    """Whether it is the same one, of which more may be known by now: whose the error of a launch is."""
    return other is not None and report.kernels is other.kernels and report.outputs is other.outputs


def _why_empty(state: State) -> str:
    run = state.run
    if run is not None and run.comparison is not None and run.ended is None:
        return f"comparing: {run.side or 'starting'}"
    if not state.live:
        return "this session holds no comparison"
    return "not compared: d compares the outputs with eager and float64, D each kernel too"


def _since(state: State) -> Iterator[tree.Row]:
    """What is not in the comparison that is shown."""
    run, compared = state.run, queries.compared_run(state)
    if run is None or compared is None or run is compared:
        return
    this = f"this is run {compared.number}"
    last = next(one for one in reversed(state.history.runs.values()) if one.diff is not None)
    if last is not compared:
        shown = words((f"{this}; run {last.number} was compared after it: . goes on to it", "accent"))
    elif run.comparison is not None and run.ended is None:
        shown = words((f"comparing again: {run.side or 'starting'}; {this}", "accent"))
    elif run.failure is not None and run.comparison is not None:
        shown = words((f"the comparison failed: {headline(run.failure).what}; {this}", "reject"))
    else:
        shown = words((f"{this}; run {run.number} was not compared: d compares", "dim"))
    yield tree.Row(("failure", "") if run.failure is not None and run.comparison is not None else "since", shown)


def _before(state: State, compared: Run) -> Iterator[tree.Row]:
    """That another comparison, which may know of the kernels, is still there."""
    before = [run for run in state.history.runs.values() if run.diff is not None and run.number < compared.number]
    if before:
        last = before[-1]
        what = ", each stage and kernel" if last.comparison is not None and last.comparison.per_kernel else ""
        yield tree.Row("before", words((f"run {last.number} was compared before{what}: , goes back to it", "dim")))
