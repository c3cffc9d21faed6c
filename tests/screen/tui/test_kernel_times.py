"""Each kernel's time stands in the list, in the graph's rows, at its node and beside its source."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from idbg.render import text
from idbg.schema import events
from idbg.schema.code import Lowered, LoweredText, Resources
from idbg.schema.kernel_times import KernelTime, KernelTimes, Peaks
from idbg.schema.programs import Failure
from idbg.views import bench_charts, kernel_times
from idbg.views.kernel_times import doubts
from idbg.views.tree import Table
from idbg_tui.messages import LowerRequest
from idbg_tui.panes.benchmarks import rows
from idbg_tui.panes.source.pane import Caption, SourcePane
from idbg_tui.panes.source.sheets import make
from idbg_tui.state import queries
from idbg_tui.state.state import State
from idbg_tui.widgets.section_rows import Look
from tests.harness.node_facts import facts
from tests.harness.pane_host import Host, follow_choices, make_state, write_model
from tests.harness.recorded import app_of
from tests.harness.screen import WIDE, settle, texts

TIME = KernelTime(
    frame="0/0",
    part="inference",
    name="k",
    kind="cpp",
    samples_us=(10.0, 12.5, 14.0),
    share=0.31,
    bytes=250_000,
    peak_bytes_per_s=25e9,
)
SMALL = replace(TIME, name="extern_kernels.mm", handle="mm:9", samples_us=(2.0,) * 3, share=0.05, bytes=None)


def times_of(*kernels: KernelTime) -> KernelTimes:
    peaks = Peaks(device="a CPU", torch="2.15")
    return KernelTimes(kernels=kernels, samples_us=(40.0,), hooked_samples_us=(41.0,), peaks=peaks)


TIMES = times_of(SMALL, TIME)


def told(state: State, width: int = 120) -> list[str]:
    return ["".join(part for part, _ in row.draw(width)) for row in rows.rows(state, Look(width))]


def timed(state: State, times: KernelTimes = TIMES, **other: str) -> State:
    assert state.shown is not None
    place = {"program": state.shown.program.label, "backend": state.shown.target.backend, **other}
    state.apply([events.KernelsTimed(times=times, **place)])  # type: ignore[arg-type]
    return state


@pytest.fixture
def state(tmp_path: Path) -> State:
    return make_state(write_model(tmp_path))


def test_the_longest_comes_first_with_what_bounds_it(state: State) -> None:
    lines = told(timed(state))
    (at,) = [at for at, line in enumerate(lines) if line.split()[:1] == ["kernel"]]
    assert [line.split()[0] for line in lines[at + 1 :]] == ["k", "mm:9"]
    said = " ".join(lines[:at])
    assert "2 kernels of" in said and "14.5 µs of a forward's 40 µs" in said and "+2.5 %" in said
    for figure in ("12.5 µs", "31.0 %", "80.0 %", "memory-bound"):
        assert figure in lines[at + 1]


@pytest.mark.parametrize("width", [120, 78, 50, 40])
def test_no_figure_of_a_row_is_cut(state: State, width: int) -> None:
    lines = told(timed(state), width)
    assert all(len(line) <= width for line in lines)
    (row,) = [line for line in lines if line.split()[:1] == ["k"]]
    assert "12.5 µs" in row and "31.0 %" in row


def test_the_node_and_the_graph_tell_the_time(state: State) -> None:
    kernel, call = queries.launches_of_node(state)[0]
    mine = replace(TIME, frame=kernel.frame, part=kernel.part, name=kernel.name, handle=call.handle)
    timed(state, times_of(SMALL, mine))
    assert queries.time_of(state, kernel, call) == mine
    words = "12.5 µs, 31 % of a call; memory-bound: 80 % of a copy's bandwidth"
    assert [fact.text for fact in facts(state) if fact.label == "time"] == [words]
    assert make("kernel", state).caption.startswith(words)
    assert [kernel_times.short_time(of) for of in ([], [TIME], [TIME, TIME])] == ["", "12.5µs", "25µs"]
    timed(state, times_of(mine), backend="another")
    assert queries.time_of(state, kernel, call) is None


def test_why_none_was_timed_is_told(state: State) -> None:
    failure = Failure(kind="input", message="no kernel of Inductor's ran")
    state.apply([events.KernelsTimed(program="m.py", backend="eager", failure=failure)])
    assert [line.strip() for line in told(state)] == [
        "the kernels of eager were not timed",
        "no kernel of Inductor's ran",
    ]


# what a kernel was lowered to

LOWERED = Lowered(
    (LoweredText("PTX", "ptx", ".entry k\nret;"), LoweredText("SASS", "sass", "EXIT ;")),
    Resources(40, 0, 2048, 4, 0.5),
)


async def test_m_asks_once_and_then_goes_down_level_by_level(state: State) -> None:
    pane = SourcePane()
    app = Host(pane, state, follow_choices)
    captions = []
    async with app.run_test(size=(110, 20)) as pilot:
        await pilot.pause()
        await pilot.press("o")
        await pilot.pause()
        (asked,) = app.of(LowerRequest)
        assert isinstance(asked, LowerRequest) and state.shown is not None
        kernel = asked.kernel
        state.apply(
            [
                events.KernelLowered(
                    run=state.shown.number, frame=kernel.frame, part=kernel.part, name=kernel.name, lowered=LOWERED
                )
            ]
        )
        pane.show(state)
        for _ in range(3):
            await pilot.pause()
            captions.append(str(pane.query_one(Caption).render()))
            await pilot.press("o")
    assert "PTX · 1 of 2 · 40 registers · none spilled" in captions[0] and "occupancy 50 %" in captions[0]
    assert "SASS · 2 of 2" in captions[1]
    assert "SASS" not in captions[2] and "PTX" not in captions[2]
    assert len(app.of(LowerRequest)) == 1


def test_a_kernel_is_no_faster_than_the_machine(state: State) -> None:
    """The peaks were measured while something else took the machine."""
    product = replace(SMALL, samples_us=(2.0,), bytes=250_000, flops=10**7, dtype="float32", peak_flops_per_s=5e10)
    over = times_of(replace(product, peak_bytes_per_s=25e9), TIME)
    over = replace(over, peaks=replace(over.peaks, others=0.45))
    assert product.beyond_compute and product.of_compute is None and product.bound == "unknown"
    assert "faster than the matmul that was measured" in kernel_times.sentence(product)
    lines = " ".join(told(timed(state, over), 200))
    chart = bench_charts.roofline(state.history.kernels).title
    for said in (lines, chart, text.text(kernel_times.view(over))):
        assert "other processes used 45 % of the processors while the peaks were measured" in said
        assert "1 kernel ran faster than the matmul that was measured as the peak" in said
    assert "10,0" not in lines and "10000 %" not in lines
    fine = times_of(replace(product, peak_flops_per_s=6e12), TIME)
    assert fine.kernels[0].of_compute is not None and list(doubts(fine)) == []


def test_rows_that_do_not_add_up_to_the_title_say_so(state: State) -> None:
    one, other = replace(TIME, samples_us=(10.0, 10.0, 20.0)), replace(SMALL, samples_us=(9.0, 5.0, 9.0))
    lines = " ".join(told(timed(state, times_of(one, other)), 200))
    assert "19 µs of a forward" in lines and "add up to 19 µs" not in lines  # 19, 15, 29: the median is their sum
    one = replace(one, samples_us=(10.0, 10.0, 4.0, 4.0, 10.0))
    other = replace(other, samples_us=(4.0, 4.0, 10.0, 10.0, 10.0))
    lines = " ".join(told(timed(state, times_of(one, other)), 200))
    assert "14 µs of a forward" in lines and "the medians of the rows add up to 20 µs" in lines


def test_slow_are_the_kernels_that_are_far_from_every_peak_and_cost_much() -> None:
    far = replace(TIME, name="far", share=0.4, bytes=25_000)  # a twentieth of what a copy moves
    near = replace(TIME, name="near", share=0.4)
    little = replace(far, name="little", share=0.04)
    launch = replace(far, name="launch", empty_us=10.0)
    cached = replace(far, name="cached", bytes=10_000_000)
    unknown = replace(far, name="unknown", bytes=None)
    found = kernel_times.slow(times_of(near, little, launch, cached, unknown, far))
    (table,) = found.body
    assert isinstance(table, Table) and found.count == 1
    assert [row.refs.kernel for row in table.rows] == [("0/0", "inference", "far")]
    lines = text.text(found)
    assert "8 % of a copy's bandwidth" in lines and "37 % of a call less" in lines


async def test_slow_kernels_are_findings_and_enter_leads_to_their_times(tmp_path: Path) -> None:
    app = app_of("benched", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        timed(app.state, times_of(replace(TIME, name="far", share=0.4, bytes=25_000)))
        app.show()
        await pilot.press("4")
        await settle(pilot)
        assert "planted.py: mismatch" in "\n".join(texts(app, "findings")), "its line is not known"
        assert "far: 12.5 µs, 40 % of a call" in "\n".join(texts(app, "findings"))
        await pilot.press("enter")
        await settle(pilot)
        assert app.body.current == "benchmarks"
