"""What does compiling buy: how long does each backend take, to compile and to run, and does it compute the same?"""

from textual.app import ComposeResult

from idbg.format.glyphs import plain
from idbg.schema import bench as records
from idbg.schema.kernel_times import KernelTime, KernelTimes
from idbg_tui.messages import BenchAsked, Flash, KernelChosen, SourceAsked
from idbg_tui.panes.benchmarks import kernel_times
from idbg_tui.panes.benchmarks import rows as bench_list
from idbg_tui.panes.benchmarks.kernel_times import KernelHeads
from idbg_tui.panes.benchmarks.rows import Heads, Item, Told
from idbg_tui.panes.searchable import FindingPane
from idbg_tui.state import measurements, queries
from idbg_tui.state.state import State
from idbg_tui.widgets.item_list import ItemList
from idbg_tui.widgets.lines import Lines, StyledRow, clip


class BenchLines(ItemList[Item]):
    """The tables of measurements."""

    ALL = "the measurements"

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[records.Row] = []
        self.times: KernelTimes | None = None

    def show_tables(self, items: list[Item], times: KernelTimes | None = None) -> None:
        """Show these, with the cursor on the backend that it was on; `times` are those that the kernels are of."""
        self.times = times
        self.rows = [item for item in items if isinstance(item, records.Row)]
        self.show_items(items)

    def key(self, item: Item) -> object:
        return item.key if isinstance(item, records.Row) else None

    def is_head(self, item: Item) -> bool:
        return isinstance(item, Heads | KernelHeads)

    def has_copy(self) -> bool:
        return bool(self.rows or self.times)

    def draw(self, item: Item, width: int) -> StyledRow:
        match item:
            case Told():
                return [(clip(plain(item.text), width), item.style)]
            case Heads():
                return bench_list.heads(self.rows, width)
            case records.Row():
                return bench_list.row(item, self.rows, width)
            case KernelHeads():
                return kernel_times.heads(self.times, width) if self.times else []
            case KernelTime():
                return kernel_times.row(item, self.times, width) if self.times else []


class BenchmarksPane(FindingPane):
    """The last measurement of each backend, and what is measured now."""

    ID = "benchmarks"
    LABEL = "Benchmarks"
    SHORT = "Bench"
    HINTS = (("enter", "look into"), ("B", "measure"), ("R", "kernels"), ("T", "on what"), ("C", "charts"))

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines = BenchLines()
        self._seen: tuple[object, ...] = ()
        self._elsewhere = ""  # why the timed kernels are not those of the run that is shown

    def compose(self) -> ComposeResult:
        yield self.lines

    def show(self, state: State) -> None:
        bench = state.measurements
        self._elsewhere = _elsewhere(state)
        seen = (state.versions.run, bench.waiting, bench.chosen, bench.past, state.target.backend)
        if seen == self._seen or not self.is_mounted:
            return
        self._seen = seen
        self.mark = bench_list.mark(state)
        tables = bench_list.items(state) or [Told(f" {text}", "dim") for text in _why_empty(state)]
        self.lines.show_tables(tables, state.history.kernels.times if state.history.kernels else None)

    # ---------------------------------------------------------------- keys

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        item = self.lines.chosen
        if isinstance(item, KernelTime):
            self._go_to(item)
            return
        row = item if isinstance(item, records.Row) else item.row if isinstance(item, Told) else None
        if row is None:
            self.post_message(Flash("enter on a measurement shows all of it, on a kernel goes to its source"))
        else:
            self.post_message(BenchAsked(measurements.key(row)))

    def _go_to(self, kernel: KernelTime) -> None:
        """The launch's source and nodes, where what was timed is what is shown."""
        if self._elsewhere:
            self.post_message(Flash(self._elsewhere, "warning"))
            return
        self.post_message(KernelChosen(kernel.frame, kernel.part, kernel.name, kernel.handle, kernel.line))
        self.post_message(SourceAsked())


def _elsewhere(state: State) -> str:
    timed, shown = state.history.kernels, state.shown
    if timed is None or queries.kernel_times(state) is not None:
        return ""
    if shown is None:
        return "no run is shown whose kernels these are: r compiles"
    if timed.backend != shown.target.backend:
        return f"these are kernels of {timed.backend}, and {shown.target.backend} is shown: b chooses the backend"
    return f"run {shown.number} was compiled since these were timed: R times its kernels"


def _why_empty(state: State) -> tuple[str, ...]:
    if not state.live:
        program = state.program.label if state.program else "FILE.py"
        return "this session holds no measurement", f"idbg bench {program} measures"
    backends = state.measurements.backends(state.target)
    return (
        f"not measured: B measures {', '.join(backends)}",
        f"R times each kernel of {state.target.backend}",
        "T chooses backends, C charts what was measured before",
    )
