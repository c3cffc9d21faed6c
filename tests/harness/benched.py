"""The recorded measurement (tests/recordings/benched.jsonl) as rows, as a state and as an app."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace
from textual.pilot import Pilot

from idbg.bench.history import BenchHistory, default_path
from idbg.schema import events
from idbg.schema.bench import Latency, Row
from idbg.schema.graphs import Graph, GraphId, Node
from idbg.schema.kernel_times import KernelTime, KernelTimes, Peaks
from idbg.views import bench_charts
from idbg.views.bench_charts import Chart
from idbg_tui.app import IdbgApp
from idbg_tui.panes.benchmarks import rows as bench_list
from idbg_tui.state.state import State
from idbg_tui.widgets.listing import Listing
from idbg_tui.widgets.section_rows import Look
from tests.harness.recorded import app_of, state_of
from tests.harness.screen import WIDE, settle, until


def rows() -> dict[str, Row]:
    return {row.backend: row for row in state_of("benched").history.rows}


def scaled(row: Row, times: float, days: float = 1.0) -> Row:
    """The same, measured earlier, when it took so many times as long."""
    assert row.latency_ms is not None
    samples = [times * sample for sample in row.latency_ms.samples]
    return replace(row, at=row.at - 86400 * days, latency_ms=Latency.of(samples, 1, 30, True))


def keep(*measured: Row) -> None:
    history = BenchHistory(default_path())
    suite = history.begin([])
    for row in measured:
        history.add(suite, row)
    history.close()


def with_rows(*measured: Row, live: bool = True) -> State:
    state = State(live=live)
    state.apply([events.RowMeasured(row=row) for row in measured])
    return state


def with_kernels(state: State) -> State:
    """The state once a product, which is compute-bound, and an addition were timed."""
    product = KernelTime(
        frame="0/0",
        part="forward",
        name="extern_kernels.mm",
        kind="extern",
        samples_us=(100.0, 110.0, 120.0),
        share=0.5,
        bytes=3 << 20,
        flops=2 << 27,
        peak_bytes_per_s=30e9,
        peak_flops_per_s=4e12,
    )
    addition = replace(product, name="add", kind="cpp", share=0.2, samples_us=(40.0, 41.0, 42.0), flops=None)
    times = KernelTimes(
        kernels=(addition, product),
        samples_us=(200.0,),
        hooked_samples_us=(204.0,),
        peaks=Peaks(device="a CPU", torch="2.15"),
    )
    state.apply([events.KernelsTimed(program="m.py", backend="inductor", times=times)])
    return state


def with_every_launch(state: State) -> State:
    """The state once each launch of the shown run was timed: 1 µs the first, 2 µs the second, and so on."""
    run = state.shown
    assert run is not None
    launches = [(kernel, call) for kernel in run.kernels for call in kernel.calls]
    kernels = tuple(
        KernelTime(
            frame=kernel.frame,
            part=kernel.part,
            name=kernel.name,
            kind="cpp" if kernel.source else "extern",
            handle=call.handle,
            line=call.line,
            samples_us=(float(at + 1),),
            share=1 / len(launches),
        )
        for at, (kernel, call) in enumerate(launches)
    )
    peaks = Peaks(device="a CPU", torch="2.15")
    times = KernelTimes(kernels=kernels, samples_us=(500.0,), hooked_samples_us=(510.0,), peaks=peaks)
    state.apply([events.KernelsTimed(program=run.program.label, backend=run.backend, times=times)])
    return state


def memory() -> Chart:
    """Of a graph of 300 nodes, of which the one in the middle needs most."""
    nodes = tuple(Node(name=f"n{at}", op="call_function", target="aten.add.Tensor") for at in range(300))
    live = [(150 - abs(at - 150)) << 20 for at in range(300)]
    return bench_charts.memory(Graph(GraphId("0/0", "forward"), nodes, ""), live)


def told(state: State, width: int = 200) -> list[str]:
    """The rows of the pane."""
    return ["".join(text for text, _ in row.draw(width)).rstrip() for row in bench_list.rows(state, Look(width))]


@asynccontextmanager
async def opened(folder: Path, size: tuple[int, int] = WIDE) -> AsyncIterator[tuple[IdbgApp, Pilot[None]]]:
    app = app_of("benched", folder)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.state.measurements.past.rows is not None)
        await pilot.press("6")
        await settle(pilot)
        yield app, pilot


def listed(app: IdbgApp) -> list[str]:
    assert isinstance(app.screen, Listing)
    lines = app.screen.lines
    return [lines.text(row) for row in range(lines.row_count)]
