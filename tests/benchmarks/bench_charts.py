"""How long does each chart of the Benchmarks pane take to build?

    python tests/benchmarks/bench_charts.py

Over the recorded session, with five backends and a hundred earlier measurements of each; the best of many, at three
widths. The bound is 10 ms each.
"""

import time
from collections.abc import Callable

from msgspec.structs import replace

from idbg_tui.panes.benchmarks import charts
from idbg_tui.state import measurements
from idbg_tui.state.state import State
from idbg_tui.widgets.section_rows import Look
from tests.benchmarks.bench_browser import line
from tests.harness.benched import with_kernels
from tests.harness.recorded import state_of

DAYS, TIMES, BOUND = 100, 40, 10.0
WIDTHS = {"80x24": 72, "110x32": 101, "160x45": 134}


def filled() -> State:
    state = with_kernels(state_of("benched"))
    good = [row for row in state.history.rows if row.latency_ms]
    more = [replace(good[-1], backend=f"inductor:mode-{number}") for number in range(2)]
    state.history.rows += more
    earlier = [replace(row, at=row.at - 86400.0 * day) for day in range(DAYS, 0, -1) for row in (*good, *more)]
    state.take_past(measurements.PastMeasurements(earlier))
    return state


def best(do: Callable[[], object]) -> float:
    """Milliseconds: the least of many, because other programs share the machine."""
    found = []
    for _ in range(TIMES):
        began = time.perf_counter()
        do()
        found.append(time.perf_counter() - began)
    return 1e3 * min(found)


def main() -> None:
    state = filled()
    samples = state.history.rows[0].latency_ms
    assert samples is not None
    for size, width in WIDTHS.items():
        for place, make in enumerate(charts.CHARTS):

            def draw(place: int = place, width: int = width) -> object:
                return charts.rows(state, place, Look(width), numbers=False)

            line(f"{size} {make(state).name}", best(draw), "ms", BOUND)
        line(f"{size} samples", best(lambda width=width: charts.histogram(samples.samples, width)), "ms", BOUND)


if __name__ == "__main__":
    main()
