"""Which keys measure, and look into what was measured?"""

from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from idbg.format.glyphs import MARKS
from idbg.schema.bench import EAGER, BenchBackend, BenchCase, file_of
from idbg.schema.errors import IdbgError
from idbg_tui.actions.diff import DiffActions
from idbg_tui.messages import BenchAsked, Flash
from idbg_tui.state import benching
from idbg_tui.widgets.listing import Entry, Listing

KERNEL_RUNS = 50


class PastRead(Message):
    """What the database has, from the thread that read it."""

    def __init__(self, past: benching.Past) -> None:
        super().__init__()
        self.past = past


class ChartListing(Listing):
    """One of the charts; its keys go through them."""

    HINTS = ("[ ] chart", "n numbers", "w CSV JSON PNG", "y Y copy", "esc closes")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "app.chart(-1)", show=False),
        Binding("right_square_bracket", "app.chart(1)", show=False),
        Binding("n", "app.chart_numbers", show=False),
        Binding("w", "app.write_chart", show=False),
    ]


class RowListing(Listing):
    """All that is known of one measurement."""

    HINTS = ("y Y copy", "esc closes")


class BenchActions(DiffActions):
    """The part of the app that measures."""

    _past_asked: tuple[object, ...] = ()
    _chart_shown: int = 0
    _charted: object = None  # the measurement that was the last when the charts were opened
    _numbers_shown: bool = False

    # ---------------------------------------------------------------- measuring

    def action_measure(self) -> None:
        """Measure the program on each chosen backend, with the device, options and rules of the target."""
        if self.state.measuring or self.state.bench.waiting:
            self.post_message(Flash("measuring already: c stops it"))
            return
        from idbg.bench import plan

        target, program = self.session.target, self.session.program

        def measure() -> None:
            asked = plan.backends(self.state.bench.backends(target))
            like = BenchCase(
                program=program,
                backend=BenchBackend(EAGER),
                device=target.device,
                rules=target.rules,
                options=target.options,
                options_for=target.options_for,
                dynamic=target.dynamic,
            )
            cases = plan.cases([program], asked, like)
            self.state.bench.waiting = len(cases)  # until it begins: a compile may go on
            try:
                self.session.bench(cases)
            except IdbgError:
                self.state.bench.waiting = 0
                raise

        if self.attempt(measure):
            self.body.go("benchmarks")
            self.show()

    def action_time_kernels(self) -> None:
        """Time each kernel of the program on the target's backend."""
        if self.state.measuring or self.state.bench.waiting:
            self.post_message(Flash("measuring already: c stops it"))
            return
        target = self.session.target
        case = BenchCase(
            program=self.session.program,
            backend=BenchBackend(target.backend),
            device=target.device,
            options=target.options,
            options_for=target.options_for,
            dynamic=target.dynamic,
            runs=KERNEL_RUNS,
        )
        if self.attempt(lambda: self.session.time_kernels(case)):
            self.state.bench.waiting = 1  # until it begins: a compile may go on
            self.body.go("benchmarks")
            self.show()

    def action_measured_backends(self, last: str = "") -> None:
        """Choose what is measured: each choice goes in or out, until escape."""
        from idbg.bench import plan
        from idbg_tui import choices
        from idbg_tui.widgets.picker import Picker

        modes = [f"{benching.INDUCTOR}:{mode}" for mode in plan.MODES if mode != "default"]
        chosen = self.state.bench.backends(self.session.target)
        known = choices.backends(self.state.history.worker, self.session.target.backend)
        about = {one.name: one.error or one.about for one in known}
        about |= dict.fromkeys(modes, "torch.compile's mode") | {EAGER: "plain Python: what speed-up is over"}
        broken = {one.name for one in known if one.error}
        words = [(name, f"{MARKS['on' if name in chosen else 'off']} {said}") for name, said in about.items()]

        def take(name: str | None) -> None:
            if not name:
                self.post_message(Flash(f"B measures {', '.join(chosen)}"))
                return
            if name in broken:
                self.post_message(Flash(f"the backend {name} cannot be used: {about[name]}", "error"))
                return
            left = tuple(one for one in chosen if one != name)
            self.state.bench.chosen = left if name in chosen else (*chosen, name)
            self.show()
            self.action_measured_backends(name)

        self.push_screen(Picker(f"Measure on ({MARKS['on']}); enter changes one", words, last, broken), take)

    # ---------------------------------------------------------------- what was measured before

    def read_past(self, *, always: bool = False) -> None:
        """Have the database read for the rows that are shown, or for the charts, if it was not."""
        rows, program = tuple(self.state.history.rows), self.state.program
        if not rows and (not always or program is None):
            return
        file = rows[-1].file if rows or program is None else file_of(program)
        if self._past_asked == (asked := (file, len(rows))):
            return
        self._past_asked = asked

        def read() -> None:
            past = benching.read(file, rows)
            if self._past_asked == asked:  # or the answer to a later question may be there already
                self.post_message(PastRead(past))

        Thread(target=read, name="idbg-past", daemon=True).start()

    def on_past_read(self, message: PastRead) -> None:
        self.state.take_past(message.past)
        self.show()

    # ---------------------------------------------------------------- the views

    def on_bench_asked(self, message: BenchAsked) -> None:
        rows = {benching.key(row): row for row in self.state.history.rows}
        from idbg_tui.panes.benchmarks import detail

        row = rows.get(message.row)
        if row is not None:

            def make(width: int) -> Sequence[Entry]:
                return detail.entries(row, self.state.bench.past.change_of(row), width)

            self._push(RowListing(detail.title(row), "", make))

    def action_charts(self) -> None:
        """Chart what was measured now and before: first what was last; what there is nothing of is passed over."""
        from idbg_tui.panes.benchmarks import charts

        measured, place = charts.last_measured(self.state)
        if measured is not self._charted:
            self._charted, self._chart_shown = measured, place
        self._chart_shown = charts.first_with_figures(self.state, self._chart_shown)
        self.read_past(always=True)
        self._push(ChartListing("Charts", self.keys["charts"], self._chart_entries))

    def _chart_entries(self, width: int) -> Sequence[Entry]:
        from idbg_tui.panes.benchmarks import charts

        return charts.entries(self.state, self._chart_shown, width, numbers=self._numbers_shown)

    def action_chart(self, step: int) -> None:
        """Show the chart before or after the one that is shown."""
        from idbg_tui.panes.benchmarks import charts

        self._chart_shown = (self._chart_shown + step) % len(charts.CHARTS)
        self._make_again()

    def action_chart_numbers(self) -> None:
        """Show the chart's numbers, or the chart again."""
        self._numbers_shown = not self._numbers_shown
        self._make_again()

    def _make_again(self) -> None:
        if isinstance(self.screen, Listing):
            self.screen.lines.make()

    def action_write_chart(self) -> None:
        """Write the numbers and the picture of the chart that is shown into the session's folder."""
        from idbg.reports import bench_plots
        from idbg_tui.panes.benchmarks import charts

        chart = charts.CHARTS[self._chart_shown](self.state)
        if not chart.figures:
            self.post_message(Flash(f"nothing to write: {chart.empty}"))
            return
        folder = Path(self.session.folder)

        def write() -> None:
            written: list[str] = []
            try:
                written.extend(path.name for path in bench_plots.write(chart, folder))
            except IdbgError as error:
                self.post_message(Flash(f"{error.message}: {error.hint}", "error"))
            else:
                self.post_message(Flash(f"written to {folder}: {', '.join(written)}"))

        # not here: matplotlib takes a second to import and to draw
        Thread(target=write, name="idbg-chart", daemon=True).start()
