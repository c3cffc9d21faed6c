"""How long each backend takes to compile and to run, how much memory, and whether it computes the same."""

from dataclasses import replace

from idbg.schema.kernel_times import KernelTime
from idbg.schema.runs import Run
from idbg.views import kernel_edits, kernel_times
from idbg_tui.messages import BenchRequest, Flash, KernelChosen, SourceRequest, VersionChosen
from idbg_tui.panes.benchmarks import rows as bench_list
from idbg_tui.panes.section_pane import SectionPane
from idbg_tui.state import measurements, queries
from idbg_tui.state.state import State
from idbg_tui.widgets.section_rows import Row, text_rows


class BenchmarksPane(SectionPane):
    """The last measurement of each backend, and what is measured now."""

    ID = "benchmarks"
    WHOLE = "the measurements"
    HINTS = (
        ("enter", "look into"),
        ("B", "measure"),
        ("R", "kernels"),
        ("T", "on what"),
        ("C", "charts"),
    )

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._elsewhere = ""  # why the timed kernels are not those of the run that is shown

    @property
    def run(self) -> Run | None:
        """The run that is shown, where its kernels are those that were timed."""
        return super().run if not self._elsewhere else None

    def show(self, state: State) -> None:
        bench = state.measurements
        self._elsewhere = _elsewhere(state)
        measured = bench.waiting, bench.chosen, bench.past
        if not self.is_news(state, state.versions.run, state.shown, *measured, state.target.backend):
            return
        self.mark = bench_list.mark(state)
        self.lay()

    def lay(self) -> None:
        if (state := self._state) is None:
            return
        look = replace(self.look, width=self.lines.room - 1)
        found = bench_list.rows(state, look)
        for number, text in enumerate(_why_empty(state) if not found else ()):
            found.add_all(text_rows(text, look, key=("empty", number), style="dim"))
        self.lines.show_rows(found, "")

    # ---------------------------------------------------------------- keys

    def open_row(self, row: Row) -> None:
        if (state := self._state) is None:
            return
        kernels = state.history.kernels.times.kernels if state.history.kernels and state.history.kernels.times else ()
        kernel = next((each for each in kernels if kernel_times.key(each) == row.key), None)
        about = {row.key, *row.inside}
        version = next((key for key in about if isinstance(key, tuple) and key[0] == "version"), None)
        measured = next((each for each in state.history.rows if measurements.key(each) in about), None)
        if kernel is not None:
            self._go_to(kernel)
        elif version is not None:
            self.post_message(VersionChosen(*kernel_edits.version_of(version)))
        elif measured is not None:
            self.post_message(BenchRequest(measurements.key(measured)))
        elif row.fold is not None:
            self.action_fold()
        else:
            self.post_message(Flash("enter on a measurement shows all of it, on a kernel goes to its source"))

    def _go_to(self, kernel: KernelTime) -> None:
        """The launch's source and nodes, where what was timed is what is shown."""
        if self._elsewhere:
            self.post_message(Flash(self._elsewhere, "warning"))
            return
        self.post_message(KernelChosen(kernel.frame, kernel.part, kernel.name, kernel.handle, kernel.line))
        self.post_message(SourceRequest())


def _elsewhere(state: State) -> str:
    timed, shown = state.history.kernels, state.shown
    if timed is None or queries.kernel_times(state) is not None:
        return ""
    if shown is None:
        return "no run is shown whose kernels these are: r compiles"
    if timed.backend != shown.backend:
        return f"these are kernels of {timed.backend}, and {shown.backend} is shown: b chooses the backend"
    return f"run {shown.number} was compiled since these were timed: R times its kernels"


def _why_empty(state: State) -> tuple[str, ...]:
    if not state.live:
        program = state.program.label if state.program else "FILE.py"
        return "this session has no measurement", f"idbg bench {program} measures"
    backends = state.measurements.backends(state.target)
    return (
        f"not measured: B measures {', '.join(backends)}",
        f"R times each kernel of {state.target.backend}",
        "T chooses backends, C charts what was measured before",
    )
