"""The charts of what was measured: drawn, as numbers, and as files."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from idbg.schema import events
from idbg_tui.panes.benchmarks import charts as bench_charts
from idbg_tui.terminal import suspend
from idbg_tui.widgets.listing import Listing
from tests.harness.benched import keep, listed, memory, opened, rows, scaled, with_kernels
from tests.harness.recorded import state_of
from tests.harness.screen import bar, until


@pytest.fixture(autouse=True)
def _nothing_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


async def test_one_list_goes_through_the_charts(tmp_path: Path) -> None:
    keep(*(scaled(rows()["inductor"], 1 + day / 10, days=day) for day in (1, 2, 3)))
    async with opened(tmp_path) as (app, pilot):
        await pilot.press("C")
        await pilot.pause()
        titles = []
        for _ in range(8):
            titles.append(listed(app)[0])
            await pilot.press("right_square_bracket")
            await pilot.pause()
        assert [title.split("   ")[1].split(":")[0] for title in titles] == [
            "Latency",
            "Speed-up",
            "Compile time",
            "Compile phases of run 1 (mock)",
            "Time by kernel",
            "Roofline",
            "Memory over the graph 0/0 inference",
            "History",
        ]
        assert listed(app)[0] == titles[0]
        chart = "\n".join(listed(app))
        assert "inductor  59.8 µs┤█" in chart and "tvm  not measured┤ " in chart
        await pilot.press("left_square_bracket")
        await pilot.pause()
        history = "\n".join(listed(app))
        assert "x inductor" in history.splitlines()[-1]
        assert "\n".join(history.splitlines()[:-1]).count("x") == 4
        await pilot.press("C")
        assert not isinstance(app.screen, Listing)


async def test_the_numbers_of_a_chart_are_one_key_away_and_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as (app, pilot):
        await pilot.press("C", "o")
        await pilot.pause()
        table = listed(app)
        assert ["measured", "median", "ms", "p5", "p95"] in [row.split() for row in table]
        assert any(row.split()[:2] == ["inductor", "0.059758"] for row in table)
        assert any(row.split()[:3] == ["tvm", "not", "measured"] for row in table)
        copied: list[str] = []
        monkeypatch.setattr(suspend, "copy", lambda app, text, *_: copied.append(text) or "copied")
        await pilot.press("Y")
        await until(pilot, lambda: bool(copied))
        assert "0.059758" in copied[0]
        await pilot.press("o")
        await pilot.pause()
        assert "█" in "".join(listed(app))


async def test_a_chart_is_written_to_the_sessions_folder(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        await pilot.press("C", "O")
        await until(pilot, lambda: "written to" in bar(app, "footer"))
        names = {path.name for path in Path(app.session.folder).glob("bench-*")}
        assert names == {"bench-latency.csv", "bench-latency.json", "bench-latency.svg"}


@pytest.mark.parametrize("width", [40, 70, 134])
def test_every_chart_fits_and_each_bar_is_as_long_as_its_figure(width: int) -> None:
    state = with_kernels(state_of("benched"))
    charts = [chart for make in bench_charts.CHARTS if (chart := make(state)).figures]
    assert {chart.axis for chart in charts} == {"", "date", "FLOPs/byte"}
    for chart in (*charts, memory()):
        for row in bench_charts.drawn(chart, width):
            assert sum(len(text) for text, _ in row) <= width, chart.name
    cold = bench_charts.bars(bench_charts.CHARTS[2](state), width)
    bars = {"".join(text for text, _ in row).partition("┤")[0].split("  ")[0].strip(): row for row in cold}
    lengths = {name: sum(text.count("█") for text, _ in row) for name, row in bars.items()}
    assert lengths["inductor cold"] > 5 * lengths["inductor warm"] > 0 == lengths["tvm cold"]


PLAIN = """
from idbg.format import glyphs
glyphs.use("ascii")
from tests.harness.benched import memory, told, with_kernels
from msgspec.structs import replace
from tests.harness.recorded import state_of
from idbg_tui.panes.benchmarks import charts as bench_charts
state = with_kernels(state_of("benched"))
print("".join(told(state, 120)))
for chart in (memory(), *(make(state) for make in bench_charts.CHARTS)):
    for row in bench_charts.drawn(chart, 70) if chart.figures else []:
        print("".join(text for text, _ in row))
"""


def test_a_terminal_with_plain_signs_alone_shows_tables_and_charts() -> None:
    places = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", PLAIN]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": places})
    assert (
        done.stdout.isascii()
        and "inductor  59.8 us+@" in done.stdout
        and "~ std" in done.stdout
        and "2.41 us" in done.stdout
    )


async def test_the_charts_open_at_what_was_measured_last_wherever_the_focus_is(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        for pane in ("2", "6", "1"):
            await pilot.press(pane, "C")
            await pilot.pause()
            assert "Latency" in listed(app)[0]
            await pilot.press("C")
        with_kernels(app.state)
        await pilot.press("2", "C")
        await pilot.pause()
        assert "5 of 8   Time by kernel" in listed(app)[0]
        await pilot.press("right_square_bracket", "C", "C")
        await pilot.pause()
        assert "Roofline" in listed(app)[0]  # nothing was measured since: where the user left it
        await pilot.press("C")
        app.state.apply([events.RowMeasured(row=replace(rows()["inductor"], at=time.time()))])
        await pilot.press("C")
        await pilot.pause()
        assert "Latency" in listed(app)[0]
