"""The rows of one comparison as a list: a table of stages, of outputs, of gradients and of kernels, with heads."""

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events

from idbg.schema.diff import DiffReport, KernelError, TensorDiff
from idbg_tui.panes.kernel_diff import launches, outputs, stages
from idbg_tui.panes.kernel_diff.columns import DiffColumns
from idbg_tui.panes.kernel_diff.rows import Heads, Item, Told
from idbg_tui.panes.kernel_diff.stages import StageColumns, StageRow
from idbg_tui.widgets.item_list import ItemList
from idbg_tui.widgets.lines import StyledRow, clip
from idbg_tui.widgets.search import SearchLine


@dataclass(frozen=True)
class _Columns:
    """Those of each table, for one width."""

    stages: StageColumns
    outputs: DiffColumns
    kernels: DiffColumns

    @classmethod
    def of(cls, told: Sequence[Item], report: DiffReport | None, width: int) -> "_Columns":
        kernels = [one for one in told if isinstance(one, KernelError)]
        ends = {stages.faithful(one, report, width) for one in kernels} if report is not None else set()
        return cls(
            StageColumns.of(told, width),
            outputs.tensor_columns(told, width),
            launches.kernel_columns(told, width, max([0, *map(len, ends)])),
        )

    def heads(self, item: Heads) -> StyledRow:
        match item.of:
            case "stages":
                return stages.heads(self.stages)
            case "outputs":
                return outputs.heads(self.outputs)
            case of:
                return launches.heads(self.kernels, nodes=of == "nodes")


class DiffLines(ItemList[Item]):
    """The rows of one report."""

    ALL = "the comparison"

    def __init__(self) -> None:
        super().__init__()
        self.report: DiffReport | None = None
        self._told: list[Item] = []  # of which a sentence has as many rows, each an item, as it takes
        self._columns: dict[int, _Columns] = {}  # by width

    @property
    def culprit(self) -> KernelError | None:
        """The first bad kernel, which has a mark."""
        return self.report.culprit if self.report is not None else None

    @property
    def guilty_row(self) -> int | None:
        """Where a comparison that failed leads: its first wrong stage, else its first bad kernel, else what failed."""
        if self.report is None or self.report.verdict != "failed":
            return None
        items = list(enumerate(self.items))
        guilty = [row for row, item in items if isinstance(item, StageRow) and item.guilty]
        guilty += [row for row, item in items if isinstance(item, KernelError) and item is self.culprit]
        guilty += [row for row, item in items if isinstance(item, TensorDiff) and item.failed]
        return next(iter(guilty), None)

    def show_report(self, told: list[Item], report: DiffReport | None, empty: str) -> None:
        """Show what is told of a comparison; or why there is none."""
        self._told, self.report, self.empty = told, report, empty
        self._lay()

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self._lay()

    def _lay(self) -> None:
        """Lay the items out as rows."""
        width = self.line_width
        self._columns.clear()
        rows = [row for one in self._told for row in (one.rows(width) if isinstance(one, Told) else [one])]
        self.show_items(rows, self.empty)

    def is_head(self, item: Item) -> bool:
        return isinstance(item, Heads)

    def key(self, item: Item) -> object:
        return None if isinstance(item, Told | Heads) else item

    def draw(self, item: Item, width: int) -> StyledRow:
        if width not in self._columns:
            self._columns[width] = _Columns.of(self.items, self.report, width)
        columns = self._columns[width]
        match item:
            case Told():
                return [(clip(item.text, width), item.style)]
            case Heads():
                return columns.heads(item)
            case StageRow():
                return stages.stage_row(item, columns.stages)
            case TensorDiff():
                return outputs.tensor_row(item, columns.outputs)
            case KernelError():
                said = stages.faithful(item, self.report, width) if self.report is not None else ""
                return launches.kernel_row(item, columns.kernels, item is self.culprit, said)

    def action_forget(self) -> None:
        self.post_message(SearchLine.Sought("", done=True))
