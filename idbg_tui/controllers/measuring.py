"""Start benchmarks, choose their backends, and show their results."""

from functools import partial
from pathlib import Path
from threading import Thread

from idbg.format.glyphs import MARKS
from idbg.schema.bench import EAGER, BenchBackend, BenchCase, file_of
from idbg.schema.errors import IdbgError
from idbg.views import bench as view
from idbg_tui.controllers.context import Actions, Context
from idbg_tui.controllers.listings import Listings
from idbg_tui.messages import BenchRequest
from idbg_tui.state import measurements
from idbg_tui.widgets.listing import Reading

KERNEL_RUNS = 50


class Measuring:
    """Measures, and shows a measurement, or charts of all; `keys` are those in force."""

    def __init__(self, context: Context, listings: Listings, keys: dict[str, str]) -> None:
        self._context, self._session, self._state = context, context.session, context.state
        self._listings, self._keys = listings, keys
        self._past_request: tuple[object, ...] = ()

    def actions(self) -> Actions:
        """What the keys do."""
        return {
            "measure": self.measure,
            "time_kernels": self.time_kernels,
            "measured_backends": self.choose_backends,
            "charts": self.show_charts,
        }

    # ---------------------------------------------------------------- measuring

    def measure(self) -> None:
        """Measure the program on each chosen backend, with the device, options and rules of the target."""
        if self._is_busy():
            return
        from idbg.bench import plan

        target, program = self._session.target, self._session.program

        def measure() -> None:
            backends = plan.backends(self._state.measurements.backends(target))
            like = BenchCase.of(program, target, BenchBackend(EAGER))
            cases = plan.cases([program], backends, like)
            self._state.expect_rows(len(cases))  # until it begins: a compile may go on
            try:
                self._session.bench(cases)
            except IdbgError:
                self._state.expect_rows(0)
                raise

        if self._context.attempt(measure):
            self._show_pane()

    def time_kernels(self) -> None:
        """Time each kernel of the program on the target's backend."""
        if self._is_busy():
            return
        target = self._session.target
        case = BenchCase.of(self._session.program, target, runs=KERNEL_RUNS)
        if self._context.attempt(lambda: self._session.time_kernels(case)):
            self._state.expect_rows(1)  # until it begins: a compile may go on
            self._show_pane()

    def _is_busy(self) -> bool:
        busy = self._state.measuring or self._state.measurements.waiting > 0
        if busy:
            self._context.flash("measuring already: c stops it")
        return busy

    def _show_pane(self) -> None:
        self._context.body.go("benchmarks")
        self._context.show()

    def choose_backends(self, last: str = "") -> None:
        """Choose what is measured: each choice goes in or out, until escape; the cursor begins on the `last` one."""
        from idbg.bench import plan
        from idbg_tui import choices
        from idbg_tui.widgets.picker import Picker

        modes = [f"{measurements.INDUCTOR}:{mode}" for mode in plan.MODES if mode != "default"]
        chosen = self._state.measurements.backends(self._session.target)
        known = choices.backends(self._state.history.worker, self._session.target.backend)
        about = {one.name: one.error or one.about for one in known}
        about |= dict.fromkeys(modes, "torch.compile's mode") | {EAGER: "plain Python: what speed-up is over"}
        broken = {one.name for one in known if one.error}
        rows = [(name, f"{MARKS['on' if name in chosen else 'off']} {words}") for name, words in about.items()]

        def take(name: str | None) -> None:
            if not name:
                self._context.flash(f"B measures {', '.join(chosen)}")
                return
            if name in broken:
                self._context.flash(f"the backend {name} cannot be used: {about[name]}", "error")
                return
            left = tuple(one for one in chosen if one != name)
            self._state.measure_on(left if name in chosen else (*chosen, name))
            self._context.show()
            self.choose_backends(name)

        picker = Picker(f"Measure on ({MARKS['on']}); enter changes one", rows, last, broken)
        self._context.app.push_screen(picker, take)

    # ---------------------------------------------------------------- what was measured before

    def read_past(self, *, always: bool = False) -> None:
        """Have the database read for the rows that are shown, or `always`, for the charts, if it was not."""
        rows, program = tuple(self._state.history.rows), self._state.program
        if not rows and (not always or program is None):
            return
        file = rows[-1].file if rows or program is None else file_of(program)
        if self._past_request == (request := (file, len(rows))):
            return
        self._past_request = request

        def read() -> None:
            past = measurements.read(file, rows)
            if self._past_request == request:  # or the answer to a later question may be there already
                self._context.app.call_later(self._take_past, past)

        Thread(target=read, name="idbg-past", daemon=True).start()

    def _take_past(self, past: measurements.PastMeasurements) -> None:
        self._state.take_past(past)
        self._context.show()

    # ---------------------------------------------------------------- the views

    def look_into(self, request: BenchRequest) -> None:
        """Show all that is known of one measurement."""
        from idbg_tui.panes.benchmarks.charts import measurement

        row = next((row for row in self._state.history.rows if measurements.key(row) == request.row), None)
        if row is not None:
            made = view.measurement(row, self._state.measurements.past.change_of(row))
            self._listings.open(Reading(made.title, "", partial(measurement, made)))

    def show_charts(self) -> None:
        """Chart what was measured now and before."""
        from idbg_tui.panes.benchmarks.chart_listing import ChartListing

        self.read_past(always=True)
        self._listings.open(ChartListing(self._keys["charts"], self._state, Path(self._session.folder)))
