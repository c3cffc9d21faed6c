"""The Benchmarks pane over a real measurement: inductor's numbers are wrong, tvm is not installed, all are noisy."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from idbg.schema import events
from idbg.schema.programs import Failure
from idbg.views import bench
from idbg.views.tree import items
from idbg_tui.app import IdbgApp
from idbg_tui.panes.benchmarks import charts
from idbg_tui.panes.benchmarks import rows as bench_list
from idbg_tui.state.state import State
from idbg_tui.widgets.listing import Listing
from idbg_tui.widgets.section_rows import Look, place_of
from tests.harness.benched import listed, opened, rows, scaled, told, with_rows
from tests.harness.recorded import app_of
from tests.harness.screen import SMALL, WIDE, bar, settle, texts

MIDDLE = (110, 32)


def shown_rows(app: IdbgApp) -> list[str]:
    """The rows of the pane, without what stands before their words."""
    return [row.strip(" ▾▸") for row in texts(app, "benchmarks")]


@pytest.fixture(autouse=True)
def _nothing_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


# ---------------------------------------------------------------- the table


async def test_a_saved_session_shows_its_rows_and_what_is_wrong_with_them(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        await pilot.press("z")
        await settle(pilot)
        shown = shown_rows(app)
        assert shown[0] == "✘ of 4 rows, 1 failed and 1 with numbers that do not agree"
        for head in ("cold", "warm", "median", "± std", "p95", "speed-up", "peak", "graphs", "violations", "numbers"):
            assert head in shown[2]
        inductor = next(row for row in shown if row.startswith("✘ inductor"))
        for figure in ("18.3 s", "1.89 s", "59.8 µs", "2.41 µs", "64.6 µs", "1.24x", "65.6 MiB", "WRONG"):
            assert figure in inductor
        assert any(row.strip().startswith("✘ failed: BackendCompilerFailed: ImportError: Pl") for row in shown)
        below = [row.strip() for row in shown[shown.index(inductor) + 1 :]]
        assert below[0] == '✘ 1 tensor wrong: out["late"]' and below[1].startswith("⚠ other processes used 76 %")
        assert app.body.panes["benchmarks"].mark == "✘"


def test_a_failed_row_is_red_and_wrong_numbers_are() -> None:
    def tones(backend: str) -> dict[object, str]:
        (row,) = [item.row for item in items(bench.view([rows()[backend]]), lambda row: False) if item.row]
        return {cell.value: cell.tone for cell in row.cells}

    assert set(tones("tvm").values()) == {"reject"}
    assert tones("inductor")["WRONG"] == "reject" and tones("mock")["agree"] == "clean"


def test_a_row_that_failed_late_keeps_its_figures_and_says_why_below() -> None:
    late = replace(rows()["mock"], status="failed", reason="the check died", diff=None)
    lines = told(with_rows(late))
    (at,) = [at for at, line in enumerate(lines) if "✘ mock  " in line]
    assert "151 µs" in lines[at] and lines[at].endswith("failed")
    assert lines[at + 1].strip() == "✘ failed: the check died"


def test_a_reason_cannot_colour_the_terminal() -> None:
    coloured = replace(rows()["tvm"], reason="\x1b[31mno\x1b[0m such op")
    assert any("failed: no such op" in line for line in told(with_rows(coloured)))


def test_the_mark_never_says_fine_when_a_row_is_not() -> None:
    fine = replace(rows()["mock"], caveats=())
    assert bench_list.mark(with_rows(fine)) == "✔"
    assert bench_list.mark(with_rows(rows()["mock"])) == "⚠"
    assert bench_list.mark(with_rows(fine, rows()["tvm"])) == "✘"
    assert bench_list.mark(with_rows(fine, rows()["inductor"])) == "✘"
    assert bench_list.mark(with_rows(replace(fine, diff="error"))) == "✘"
    assert bench_list.mark(State()) == ""
    going = with_rows()
    going.apply([events.BenchStarted(cases=2), events.RowMeasured(row=fine)])
    assert bench_list.mark(going) == ""
    going.apply([events.BenchEnded(failure=Failure(kind="cancelled", message="cancelled"))])
    assert bench_list.mark(going) == "⚠"


def test_the_last_measurement_of_each_is_shown() -> None:
    again = replace(scaled(rows()["mock"], 2.0, days=-1.0), caveats=())
    lines = [line for line in told(with_rows(rows()["mock"], rows()["eager"], again)) if "mock  " in line]
    assert len(lines) == 1 and "301 µs" in lines[0]


@pytest.mark.parametrize("size", [WIDE, MIDDLE, SMALL])
async def test_the_most_wanted_figures_are_whole_at_any_size(tmp_path: Path, size: tuple[int, int]) -> None:
    async with opened(tmp_path, size) as (app, _):
        shown = shown_rows(app)
        (inductor,) = [row for row in shown if "✘ inductor  " in row]
        for figure in ("59.8 µs", "1.24x", "WRONG"):
            assert f"  {figure}" in inductor
        (heads,) = [row for row in shown if row.strip().startswith("backend")]
        assert {"median", "numbers", "speed-up"} <= set(heads.split())


# ---------------------------------------------------------------- looking into


async def test_enter_on_a_row_shows_everything_about_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        lines = app.body.panes["benchmarks"].lines  # type: ignore[attr-defined]
        lines.place_cursor(place_of(lines.items, bench.key(rows()["inductor"])))
        await pilot.press("enter")
        await pilot.pause()
        shown = "\n".join(listed(app))
        for text in (
            '✘ 1 tensor wrong: out["late"]',
            "cold compile    18.3 s",
            "median 59.8 µs, p95 64.6 µs",
            "65.6 MiB (68,837,376 bytes)",
            "violations      not measured: this backend checks no rules",
            "30 samples, each one call, after 30 calls of warm-up: it had settled",
            "AMD EPYC",
            "torch 2.15.0+cu132, Python 3.11.7",
            "4231b6b-dirty",
        ):
            assert text in shown
        assert shown.count("█") > 20


async def test_enter_on_what_is_said_of_a_row_opens_that_row(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        lines = app.body.panes["benchmarks"].lines  # type: ignore[attr-defined]
        about = place_of(lines.items, (bench.key(rows()["mock"]), 0))
        lines.place_cursor(about)
        await pilot.press("enter")
        await pilot.pause()
        assert any("noisy" in row for row in listed(app))
        await pilot.press("escape", "g", "enter")
        await pilot.pause()
        assert not isinstance(app.screen, Listing)


def test_what_was_not_measured_is_said_and_is_no_number() -> None:
    entries = charts.measurement(bench.measurement(rows()["tvm"]), Look(100))
    shown = ["".join(text for text, _ in one.draw(100)) for one in entries]
    for label in ("cold compile", "latency", "speed-up", "peak memory", "graphs", "numbers", "machine"):
        assert f" {label:<16}not measured" in shown
    assert shown[0].startswith(" ✘ failed: BackendCompilerFailed")


def test_the_histogram_holds_every_sample() -> None:
    shown = ["".join(text for text, _ in row) for row in charts.histogram([1.0] * 9 + [2.0], 60)]
    inside = [row.partition("│")[2] or row.partition("┤")[2] for row in shown]
    tall, small = (sum(row[at] == "█" for row in inside if len(row) > 40) for at in (3, 50))
    assert tall == 8 and 0 < small <= 2
    assert "9┤" in shown[1] and charts.histogram([1.0], 60)


# ---------------------------------------------------------------- nothing to show


async def test_an_empty_pane_says_what_would_fill_it(tmp_path: Path) -> None:
    app = app_of("mlp_train", tmp_path)
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        await pilot.press("6")
        await settle(pilot)
        assert shown_rows(app)[:2] == [
            "this session has no measurement",
            "idbg bench examples/mlp_train.py measures",
        ]
        await pilot.press("B")
        await pilot.pause()
        assert "was read from disk" in bar(app, "footer")
        await pilot.press("C")
        await pilot.pause()
        assert "4 of 8   Compile phases" in "\n".join(listed(app))  # the first that has something to show
        await pilot.press("[", "[", "[")
        await pilot.pause()
        assert "nothing was measured yet: B measures" in "\n".join(listed(app))
        await pilot.press("right_square_bracket", "right_square_bracket", "right_square_bracket")
        await pilot.pause()
        assert "c++ compile" in "\n".join(listed(app))
