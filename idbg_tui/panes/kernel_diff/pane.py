"""Where do the run's numbers go wrong: in which outputs, gradients and kernels?"""

from dataclasses import replace
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from idbg.format.failures import headline
from idbg.format.glyphs import VERDICT_SIGNS
from idbg.schema.diff import DiffReport, KernelError, TensorDiff
from idbg.schema.graphs import NodeId
from idbg_tui.messages import DiffAsked, Flash, KernelChosen, NodeChosen, SourceAsked
from idbg_tui.panes.kernel_diff import launches, outputs
from idbg_tui.panes.kernel_diff.columns import DiffColumns
from idbg_tui.panes.kernel_diff.outcomes import LOOKS
from idbg_tui.panes.kernel_diff.rows import ORDERS, Heads, Item, Shown, Told, items
from idbg_tui.panes.searchable import FindingPane
from idbg_tui.state import queries
from idbg_tui.state.state import State
from idbg_tui.widgets.item_list import ItemList
from idbg_tui.widgets.lines import Lines, StyledRow, clip
from idbg_tui.widgets.search import Searched, SearchLine


class DiffLines(ItemList[Item]):
    """The rows of one report."""

    ALL = "the comparison"

    def __init__(self) -> None:
        super().__init__()
        self.culprit: KernelError | None = None
        self._report: list[Item] = []  # of which a sentence has as many rows, each an item, as it takes
        self._columns: dict[int, tuple[DiffColumns, DiffColumns]] = {}  # by width: of outputs, of kernels

    def show_report(self, items: list[Item], culprit: KernelError | None, empty: str) -> None:
        """Show what is told of a comparison, with a mark at its first bad kernel; or why there is none."""
        self._report, self.culprit, self.empty = items, culprit, empty
        self._lay()

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self._lay()

    def _lay(self) -> None:
        """Lay the items out as rows."""
        width = self.line_width
        self._columns.clear()
        rows = [row for one in self._report for row in (one.rows(width) if isinstance(one, Told) else [one])]
        self.show_items(rows, self.empty)

    def is_head(self, item: Item) -> bool:
        return isinstance(item, Heads)

    def key(self, item: Item) -> object:
        return None if isinstance(item, Told | Heads) else item

    def draw(self, item: Item, width: int) -> StyledRow:
        if width not in self._columns:
            self._columns[width] = (
                outputs.tensor_columns(self.items, width),
                launches.kernel_columns(self.items, width),
            )
        tensors, kernels = self._columns[width]
        match item:
            case Told():
                return [(clip(item.text, width), item.style)]
            case Heads("outputs"):
                return outputs.heads(tensors)
            case Heads():
                return launches.heads(kernels, nodes=item.of == "nodes")
            case TensorDiff():
                return outputs.tensor_row(item, tensors)
            case KernelError():
                return launches.kernel_row(item, kernels, item is self.culprit)

    def action_forget(self) -> None:
        self.post_message(SearchLine.Sought("", done=True))


class KernelDiffPane(FindingPane):
    """The comparison of the run in hand, or of the last that was compared."""

    ID = "kernel_diff"
    LABEL = "KernelDiff"
    SHORT = "Diff"
    HINTS = (
        *(("enter", "open"), ("d", "compare"), ("D", "kernels"), ("t", "chart")),
        *(("/", "filter"), ("o", "order"), ("f", "failed")),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "order", show=False),
        Binding("f", "failed", show=False),
        Binding("t", "look('chart')", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines = DiffLines()
        self._seen: tuple[object, ...] = ()
        self._shown = Shown()
        self._state: State | None = None
        self._landed: DiffReport | None = None  # whose first bad kernel the cursor was put on

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
        told = items(report, self._shown)
        if (now := _since(state)) is not None:
            told.insert(0, now)
        self.lines.show_report(told, report.culprit, "")
        if report is not self._landed:
            self._landed = report
            self._land(report.culprit)
        self.mark = VERDICT_SIGNS[LOOKS[report.verdict]]

    def _land(self, culprit: KernelError | None) -> None:
        """A new comparison: the cursor goes to the first bad kernel, and, if the user waits for it here, all else."""
        row = next((row for row, item in enumerate(self.lines.items) if item is culprit), None)
        if culprit is None or row is None:
            return
        self.lines.place_cursor(row)
        if self.has_pseudo_class("focus-within") and self._is_shown(culprit):
            self._go_to(culprit)

    # ---------------------------------------------------------------- keys

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        match item := self.lines.chosen:
            case KernelError() if self._is_shown(item):
                self._go_to(item)
                self.post_message(SourceAsked())
            case KernelError():
                self.post_message(Flash("another run is shown than was compared: D compares again", "warning"))
            case TensorDiff():
                self.post_message(DiffAsked("tensor", item.name))
            case Told(failed=str(side)):
                self.post_message(DiffAsked("failure", side))
            case _:
                self.post_message(Flash("enter on an output looks into it, on a kernel goes to its source"))

    def on_lines_moved(self, event: Lines.Moved) -> None:
        event.stop()
        item = self.lines.chosen
        if isinstance(item, KernelError) and self._is_shown(item):
            self._go_to(item)

    def _is_shown(self, kernel: KernelError) -> bool:
        """Whether the run that is shown has this very launch: it is the compared one, or its code is the same."""
        state = self._state
        compared = queries.compared_run(state) if state else None
        if state is None or compared is None:
            return False
        return state.shown is compared or queries.has_code_of(state, compared, kernel.frame, kernel.part)

    def _go_to(self, kernel: KernelError) -> None:
        if kernel.graph is not None and (kernel.node or kernel.nodes):
            self.post_message(NodeChosen(NodeId(kernel.graph, kernel.node or kernel.nodes[0])))
        if not kernel.bisected:
            launch = kernel.handle, kernel.wrapper_line
            self.post_message(KernelChosen(kernel.frame, kernel.part, kernel.name, *launch))

    def action_look(self, what: str) -> None:
        self.post_message(DiffAsked(what))

    def action_order(self) -> None:
        order = ORDERS[(ORDERS.index(self._shown.order) + 1) % len(ORDERS)]
        self._again(replace(self._shown, order=order), f"in order: {order}")

    def action_failed(self) -> None:
        failed_only = not self._shown.failed_only
        said = "only what failed; f shows all" if failed_only else "all outputs and kernels"
        self._again(replace(self._shown, failed_only=failed_only), said)

    def _again(self, shown: Shown, said: str) -> None:
        self._shown = shown
        if self._state is not None:
            self.show(self._state)
        if said:
            self.post_message(Flash(said))

    def seek(self, searched: Searched, text: str, *, done: bool) -> None:
        """List only what has the text; the cursor goes to the first of it."""
        said = f"only outputs and kernels with {text}; esc shows all" if text and done else ""
        self._again(replace(self._shown, query=text), said)
        searched.find(text, searched.place)
        first = (row for row, item in enumerate(self.lines.items) if isinstance(item, TensorDiff | KernelError))
        if text:
            self.lines.place_cursor(next(first, 0))


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
    if run.comparison is not None and run.ended is None:
        return Told(f" comparing again: {run.side or 'starting'}; this is run {compared.number}", "accent")
    if run.failure is not None and run.comparison is not None:
        said = f" the comparison failed: {headline(run.failure).what}; this is run {compared.number}"
        return Told(said, "reject", failed="")
    return Told(f" this is run {compared.number}; run {run.number} was not compared: d compares", "dim")
