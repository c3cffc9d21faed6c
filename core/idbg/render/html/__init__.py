"""Draw a section as HTML in which everything stays text: rows that fold, tables that sort, links to what rows name."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from idbg.format.file_names import place as place_name
from idbg.render.cells import NAMES, first_names, is_number, written
from idbg.render.html import links
from idbg.render.html.templating import fill
from idbg.schema.runs import Run
from idbg.views.tree import Chart, Place, Row, Section, SideLine, Sides, Table, Value

MOST = 200
"""Rows of one list: a browser opens the page at once."""

_COMPARED = 6000  # lines of both sides together

Drawings = Mapping[str, Callable[[object], Markup | None]]
"""By the name of a chart, what draws it."""


@dataclass(frozen=True)
class Painter:
    """What the template asks for while it draws a section of a run."""

    run: Run | None  # whose nodes and kernels rows name; None: of no run
    noun: str  # under which the search finds rows; "": that of each table
    drawings: Drawings
    most: int = MOST

    def drawn(self, chart: Chart) -> Markup | None:
        """The chart's picture; None where there is none of it."""
        return self.drawings[chart.name](chart.data) if chart.name in self.drawings else None

    def address(self, row: Row) -> str:
        """The row's `id` in the page."""
        return f"{self.noun or 'row'}:{self.run.number if self.run else 0}:{links.spelt(str(row.key))}"

    def find(self, table: Table) -> str:
        """Under which word the search finds a table's rows."""
        return self.noun or table.noun

    def language(self, code: str) -> str:
        """Whether code is a diff, or Python."""
        return "diff" if code.startswith(("--- ", "@@ ")) else "python"

    def columns(self, table: Table) -> list[tuple[str, bool, str]]:
        """Head, whether it holds numbers, kind."""
        return [(column.head, is_number(column.kind), column.kind) for column in table.columns]

    def cells(self, row: Row, table: Table) -> Iterator[tuple[str, bool, str, object, str]]:
        """Text, whether a number, tone, what it is sorted by and where it links to."""
        for column, cell in zip(table.columns, row.cells, strict=False):
            text: str = written(cell.value, column.kind, lambda place: place_name(place.file, place.line))
            if column.kind == "bar" and isinstance(cell.value, float):
                text = _BAR.format(f"{100 * cell.value:.2f}%", cell.tone)
            text = first_names(text, NAMES) if column.kind == "names" else text
            yield text, is_number(column.kind), cell.tone, _sorted_by(cell.value), self.link(cell.value)

    def link(self, value: Value) -> str:
        """The address of what a cell or a piece of words names; "" of none."""
        return links.line(value.file, value.line) if isinstance(value, Place) and value.file else ""

    def of_row(self, row: Row) -> str:
        """The address of the node or kernel that a row is about; "" of none."""
        if self.run is None:
            return ""
        if row.refs.kernel is not None:
            return links.named_kernel(self.run.number, *row.refs.kernel)
        run = self.run
        known = (node for node in row.refs.nodes if node.graph in run.graphs)
        return next((links.node(run.number, node) for node in known), "")

    def below(self, row: Row) -> Sequence[Row]:
        """The rows below a row."""
        return row.below

    def sides(self, sides: Sides) -> tuple[Sequence[SideLine | None], int]:
        """The lines of both, and how many were left out; none of what takes seconds to compare."""
        size = sides.before.count("\n") + sides.after.count("\n")
        lines = sides.lines if size <= _COMPARED else ()
        return lines[:MOST], max(len(lines) - MOST, 0) if lines else size

    def is_flat(self, table: Table) -> bool:
        """Whether it is a plain table: nothing of it folds."""
        return not any(row.folds or row.code or row.sides for row in table.rows)


def section(made: Section, run: Run | None, noun: str, drawings: Drawings | None = None, most: int = MOST) -> Markup:
    """The summary, then every block; what does not fit into `most` rows of a list is counted."""
    return fill("section.html", section=made, painter=Painter(run, noun, drawings or {}, most))


_BAR = Markup(
    '<svg class="idbg-chart" width="100%" height="12" aria-hidden="true">'
    '<rect width="{}" height="12" class="{}"/></svg>'
)


def _sorted_by(value: Value) -> object:
    return "" if value is None else f"{value.file}:{value.line:09}" if isinstance(value, Place) else value
