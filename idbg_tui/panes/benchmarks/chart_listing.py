"""The charts of measurements, over the screen."""

from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import ClassVar

from textual.binding import Binding, BindingType

from idbg.reports.drawings.files import write_chart
from idbg.schema.errors import IdbgError
from idbg_tui.messages import Flash
from idbg_tui.panes.benchmarks import charts
from idbg_tui.state.state import State
from idbg_tui.widgets.listing import Listing
from idbg_tui.widgets.section_rows import Look, Row


class ChartListing(Listing):
    """One of the charts: first that of what was measured last, then the one that was looked at before."""

    HINTS = ("[ ] chart", "o numbers", "O CSV JSON SVG", "y Y copy", "esc closes")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "screen.chart(-1)", "the chart before", show=False),
        Binding("right_square_bracket", "screen.chart(1)", "the next chart", show=False),
        Binding("o", "screen.numbers", "as numbers, or as a chart", show=False),
        Binding("O", "screen.write", "write it as CSV, JSON, SVG", show=False),
    ]

    def __init__(self, key: str, state: State, folder: Path) -> None:
        """`key` closes it; `folder` takes what is written. What there is nothing of is passed over."""
        super().__init__("Charts", key, self._rows)
        self._state, self._folder, self._choice = state, folder, state.measurements.chart
        measured, place = charts.last_measured(state)
        if measured is not self._choice.last_measured:
            self._choice.last_measured, self._choice.place = measured, place
        self._choice.place = charts.first_with_figures(state, self._choice.place)

    def _rows(self, look: Look) -> Sequence[Row]:
        return charts.rows(self._state, self._choice.place, look, numbers=self._choice.numbers)

    def action_chart(self, step: int) -> None:
        """Show the chart before or after the one that is shown."""
        self._choice.place = (self._choice.place + step) % len(charts.CHARTS)
        self.lines.make()

    def action_numbers(self) -> None:
        """Show the chart's numbers, or the chart again."""
        self._choice.numbers = not self._choice.numbers
        self.lines.make()

    def action_write(self) -> None:
        """Write the numbers and the picture of the chart that is shown into the session's folder."""
        chart, folder = charts.CHARTS[self._choice.place](self._state), self._folder
        if not chart.figures:
            self.post_message(Flash(f"nothing to write: {chart.empty}"))
            return

        app = self.app

        def write() -> None:
            try:
                names = [path.name for path in write_chart(chart, folder)]
            except IdbgError as error:
                app.post_message(Flash(error.in_one_line, "error"))
            else:
                app.post_message(Flash(f"written to {folder}: {', '.join(names)}"))

        Thread(target=write, name="idbg-chart", daemon=True).start()  # a disk may be slow
