"""The KernelDiff pane over a real comparison: one output is wrong, and the third kernel is to blame."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from idbg.format.amounts import column_figure, figure
from idbg.format.glyphs import LEVELS
from idbg.schema.diff import (
    LARGEST,
    Baseline,
    Block,
    Counts,
    DiffReport,
    ErrorMap,
    KernelError,
    SideResult,
    TensorDiff,
    Worst,
)
from idbg.schema.graphs import GraphId, TensorMeta
from idbg.schema.programs import Failure
from idbg_tui.app import IdbgApp
from idbg_tui.panes.kernel_diff import chart as diff_chart
from idbg_tui.panes.kernel_diff import detail, heat
from idbg_tui.panes.kernel_diff import rows as diff_list
from idbg_tui.panes.kernel_diff.columns import told_apart
from idbg_tui.panes.kernel_diff.rows import ORDERS, Told, items, level
from idbg_tui.panes.node import facts
from idbg_tui.state import queries
from idbg_tui.widgets.charts import Series, log_chart
from idbg_tui.widgets.listing import Listing
from tests.harness.recorded import app_of, state_of
from tests.harness.screen import SMALL, WIDE, bar, settle, texts


def report() -> DiffReport:
    compared = queries.compared_run(state_of("planted"))
    assert compared is not None and compared.diff is not None
    return compared.diff


def culprit() -> KernelError:
    bad = report().culprit
    assert bad is not None
    return bad


@asynccontextmanager
async def opened(folder: Path, size: tuple[int, int] = WIDE) -> AsyncIterator[tuple[IdbgApp, Pilot[None]]]:
    app = app_of("planted", folder)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("5")
        await settle(pilot)
        yield app, pilot


def listed(app: IdbgApp) -> list[str]:
    assert isinstance(app.screen, Listing)
    lines = app.screen.lines
    return [lines.text(row) for row in range(lines.row_count)]


async def test_the_verdict_the_outputs_and_the_first_bad_kernel_are_listed(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        await pilot.press("z")
        await settle(pilot)
        rows = texts(app, "kernel_diff")
        assert rows[0].startswith(" ✘ aot does not agree with eager, against float64")
        late = next(row for row in rows if row.startswith(' ✘ out["late"]'))
        assert re.search(r"\[\d, \d+, \d+\]: [\d.]+, wanted [\d.]+  by rmse, maximum", late)
        early = next(row for row in rows if row.startswith(' ✔ out["early"]'))
        assert rows.index(late) < rows.index(early)
        culprits = [row for row in rows if row.startswith(" ✘ cpp_fused")]
        assert len(culprits) == 1 and "planted.py:18" in culprits[0]
        assert app.body.panes["kernel_diff"].mark == "✘"


async def test_enter_on_a_kernel_goes_to_its_source_and_its_node(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        bad = culprit()
        lines = app.body.panes["kernel_diff"].lines  # type: ignore[attr-defined]
        lines.place_cursor(lines.items.index(bad))
        await pilot.press("enter")
        await settle(pilot)
        assert app.body.current == "source"
        assert app.state.kernel is not None and app.state.kernel.name == bad.name
        assert app.state.selected is not None and app.state.selected.name == bad.node


async def test_enter_on_an_output_shows_every_metric_and_where_the_error_lies(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        lines = app.body.panes["kernel_diff"].lines  # type: ignore[attr-defined]
        diff = next(one for one in report().outputs if not one.passed)
        lines.place_cursor(lines.items.index(diff))
        await pilot.press("enter")
        await pilot.pause()
        rows = "\n".join(listed(app))
        assert diff.worst is not None and diff.baseline is not None
        assert f"{diff.name} f32[4,48,48] fails by: rmse, maximum, row, column, tile" in rows
        assert f"[{', '.join(map(str, diff.worst.index))}]" in rows
        assert f"{figure(diff.baseline.rmse)}, eager's {figure(diff.baseline.reference_rmse)}" in rows
        assert f"{diff.name}[1, :, :] 48 × 48" in rows
        assert rows.count("▀") > 48 * 24


async def test_only_what_failed_and_the_worst_first(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        await pilot.press("f")
        await settle(pilot)
        assert not any('out["early"]' in row for row in texts(app, "kernel_diff"))
        await pilot.press("f", "o")
        await settle(pilot)
        kernels = [row for row in app.body.panes["kernel_diff"].lines.items if isinstance(row, KernelError)]  # type: ignore[attr-defined]
        errors = [row.error or 0.0 for row in kernels]
        assert errors == sorted(errors, reverse=True)
        await pilot.press("o")
        await settle(pilot)
        tensors = [row for row in app.body.panes["kernel_diff"].lines.items if isinstance(row, TensorDiff)]  # type: ignore[attr-defined]
        assert tuple(tensors) == report().outputs


async def test_the_chart_marks_the_bad_kernel_and_gives_the_figures(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        await pilot.press("t")
        await pilot.pause()
        chart, figures = "\n".join(listed(app)).split("relative RMSE, launch by launch")
        assert chart.count("✘") == 1
        assert chart.count("●") == len(report().kernels) - 1
        assert figures.count("planted.py:") == len(report().kernels)
        await pilot.press("t")
        assert not isinstance(app.screen, Listing)


async def test_c_is_left_to_cancel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled: list[str] = []
    async with opened(tmp_path) as (app, pilot):
        monkeypatch.setitem(app.actions, "cancel", lambda: cancelled.append(app.body.current))
        await pilot.press("c")
        await settle(pilot)
        assert cancelled == ["kernel_diff"]


async def test_the_chart_opens_at_its_top_and_leads_to_the_first_bad_kernel(tmp_path: Path) -> None:
    async with opened(tmp_path, SMALL) as (app, pilot):
        await pilot.press("t")
        await settle(pilot)
        assert isinstance(app.screen, Listing)
        lines = app.screen.lines
        assert lines.scroll_offset.y == 0 and lines.cursor == 0
        rows = [lines.line(y).text for y in range(lines.size.height)]
        assert any("launch by launch" in row for row in rows)
        await pilot.press("enter")
        await settle(pilot)
        assert app.state.selected is not None
        assert app.state.selected.name == culprit().node


async def test_a_filter_lists_only_what_has_the_text_and_escape_shows_all(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, pilot):
        lines = app.body.panes["kernel_diff"].lines  # type: ignore[attr-defined]
        everything = list(lines.items)
        await pilot.press("slash", *"early", "enter")
        await settle(pilot)
        assert 'out["early"]' in lines.searched(lines.cursor)
        assert [row.name for row in lines.items if isinstance(row, TensorDiff | KernelError)] == ['out["early"]']
        assert "2 outputs, 1 failed; 1 with early" in "\n".join(texts(app, "kernel_diff"))
        assert "only outputs and kernels with early" in bar(app, "footer")
        await pilot.press("escape")
        await settle(pilot)
        assert lines.items == everything


@pytest.mark.parametrize("size", [SMALL, (110, 32), WIDE])
async def test_figures_places_and_values_are_whole_at_every_size(tmp_path: Path, size: tuple[int, int]) -> None:
    async with opened(tmp_path, size) as (app, pilot):
        await pilot.press("z")
        await settle(pilot)
        rows = texts(app, "kernel_diff")
        assert all(len(row) <= size[0] for row in rows)
        told = next(row for row in rows if row.startswith(" ✘ cpp"))
        assert figure(culprit().error) in told
        assert "planted.py:18" in told
        late = next(diff for diff in report().outputs if not diff.passed)
        assert late.worst is not None
        row = next(row for row in rows if row.startswith(' ✘ out["late"]'))
        assert diff_list.spot(late.worst) in row and column_figure(late.max_abs) in row


async def test_no_figure_of_an_output_is_cut_on_a_small_screen(tmp_path: Path) -> None:
    async with opened(tmp_path, SMALL) as (app, pilot):
        await pilot.press("slash", *"late", "enter", "enter")
        await pilot.pause()
        assert isinstance(app.screen, Listing)
        lines = app.screen.lines
        narrow = [entry.draw(lines.line_width) for entry in lines.entries]
        assert all(sum(map(len, (text for text, _ in row))) <= lines.line_width for row in narrow)


def test_the_graph_and_the_node_tell_the_error_of_their_kernel() -> None:
    state = state_of("planted")
    bad = culprit()
    assert bad.graph is not None
    from idbg.schema.graphs import NodeId

    assert state.choose(NodeId(bad.graph, bad.node))
    told = [fact.text for fact in facts.facts(state) if fact.label == "error"]
    assert any(text.startswith(column_figure(bad.error)) for text in told)


FAILURE = Failure(
    kind="torch",
    message="CppCompileError: C++ compile error\n\nCommand:\ng++ -O3\n/tmp/a.cpp:3:1: error: no such type\nnote",
    hint="look at the source",
    file="/tmp/a.cpp",
    line=3,
    traceback="Traceback\n  somewhere",
)


def failed_side() -> DiffReport:
    sides = (SideResult("eager", 0.1), SideResult("inductor", 1.0, FAILURE))
    return DiffReport(test="inductor", reference="eager", verdict="error", mode="tolerance", sides=sides)


def test_a_side_that_failed_is_told_before_anything_else_with_the_compilers_first_error() -> None:
    told = [one for one in items(failed_side()) if isinstance(one, Told)]
    assert told[1].text == "   inductor failed: CppCompileError: C++ compile error: no such type"


def test_a_program_that_did_not_come_to_its_end_is_told() -> None:
    failure = Failure(kind="worker", message="killed by SIGSEGV")
    found = DiffReport(test="a", reference="eager", verdict="failed", mode="float64", failure=failure)
    assert "did not come to its end: killed by SIGSEGV" in words(found)


async def test_enter_on_a_side_that_failed_shows_the_whole_failure(tmp_path: Path) -> None:
    async with opened(tmp_path, SMALL) as (app, pilot):
        compared = queries.compared_run(app.state)
        assert compared is not None
        compared.diff = failed_side()
        pane = app.body.panes["kernel_diff"]
        pane.show(app.state)
        await pilot.press("g", "j", "enter")
        await settle(pilot)
        rows = "\n".join(listed(app))
        for line in (*FAILURE.message.split("\n"), FAILURE.hint, "/tmp/a.cpp:3", "  somewhere"):
            assert line in rows


def words(report: DiffReport, **how: Any) -> str:
    """What the list says, headings and notes."""
    return "\n".join(one.text for one in items(report, **how) if isinstance(one, Told))


def drawn(*found: diff_list.Item, width: int = 120) -> list[str]:
    """The rows of outputs or kernels."""
    tensors, kernels = diff_list.tensor_columns(found, width), diff_list.kernel_columns(found, width)
    rows = [
        diff_list.tensor_row(one, tensors) if isinstance(one, TensorDiff) else diff_list.kernel_row(one, kernels, False)
        for one in found
        if isinstance(one, TensorDiff | KernelError)
    ]
    return ["".join(text for text, _ in row) for row in rows]


def test_a_tensor_without_figures_says_what_is_wrong() -> None:
    diff = TensorDiff(name="out[1]", passed=False, failed_by=("missing",), note="only the reference has it")
    assert "only the reference has it  by missing" in drawn(diff)[0]
    assert diff_list.badness(diff) == float("inf")


NAN = TensorDiff(
    name="nan",
    passed=False,
    failed_by=("nan",),
    elements=4,
    max_abs=LARGEST,
    mean_abs=0.0,
    max_rel=LARGEST,
    mean_rel=0.0,
    max_scaled=LARGEST,
    rmse=0.0,
    mismatches=1,
    atol=1e-5,
    worst=Worst((1, 2), 0.5, "nan"),
    nan=Counts(0, 1, 1),
    blocks=(Block("row", (0, 1), (0, 4), 0.0, 0.0),),
    baseline=Baseline(0.0, 0.0, 0.0, 0.0),
)


def wrong(name: str, ratio: float) -> TensorDiff:
    block = Block("row", (0, 1), (0, 4), 1.0, ratio)
    base = Baseline(1.0, 1.0, 0.0, 0.0)
    return TensorDiff(
        name=name, passed=False, failed_by=("rmse",), max_abs=1.0, rmse=1.0, blocks=(block,), baseline=base
    )


def test_nan_is_the_worst_and_what_failed_stands_first() -> None:
    outputs = (TensorDiff(name="fine", elements=1, max_abs=0.0), wrong("a", 5.0), wrong("b", 1e9), NAN)
    found = DiffReport(test="a", reference="eager", verdict="failed", mode="float64", outputs=outputs)
    order = {how: [one.name for one in items(found, order=how) if isinstance(one, TensorDiff)] for how in ORDERS}
    assert list(order.values()) == [["a", "b", "nan", "fine"], ["nan", "b", "a", "fine"], ["fine", "a", "b", "nan"]]


def test_figures_that_nan_makes_meaningless_are_not_shown() -> None:
    row = drawn(NAN)[0]
    assert row.split("wanted")[0].split() == ["✘", "nan", "inf", "-", "-", "[1,", "2]:", "nan,"]
    view = "\n".join("".join(text for text, _ in entry.draw(80)) for entry in detail.entries(NAN, 80))
    assert "RMSE" not in view and "worst row" not in view and "the worst is" not in view
    assert "inf: NaN or infinity on one side" in view and "[1, 2]: nan, wanted 0.5" in view
    assert drawn(wrong("a", 5.0))[0].split()[4] == "inf"  # eager is exact


def test_two_values_are_told_with_as_many_digits_as_tell_them_apart() -> None:
    assert diff_list.spot(Worst((3,), 0.5, 0.25)) == "[3]: 0.25, wanted 0.5"
    assert diff_list.spot(Worst((), 0.60908731, 0.60908735)) == "0.60908735, wanted 0.60908731"


@pytest.mark.parametrize("width", [78, 108])
def test_long_names_that_differ_are_not_cut_to_the_same(width: int) -> None:
    names = [f"layers.{at}.self_attention.{part}_projection.weight" for at in range(12) for part in "qkv"]
    shown = told_apart([*names, "x"], 20)
    assert len(set(shown.values())) == len(names) + 1
    assert all(len(text) <= 20 for text in shown.values())
    meta = TensorMeta("float32", (3, 100, 200), (20000, 200, 1), "cpu")
    diffs = [replace(wrong(name, 2.0), test=meta, worst=Worst((1, 50, 150), 0.6, 1.60824)) for name in names]
    rows = drawn(*diffs, width=width)
    assert all("[1, 50, 150]: 1.60824, wanted 0.6" in row for row in rows)
    assert len({row.split()[1] for row in rows}) == len(names)


def launched(observed: bool, **known: Any) -> KernelError:
    return KernelError(frame="0/0", part="", name="k", observed=observed, error=1e-7 if observed else None, **known)


@pytest.mark.parametrize(
    ("kernels", "bad", "text"),
    [
        ([launched(True)] * 2, None, "2 kernel launches, 2 observed; none is worse than its inputs"),
        (
            [launched(True), launched(False, reason="no"), launched(False, reason="no")],
            None,
            "3 kernel launches; none of the 1 observed is worse than its inputs; 2 were not observed",
        ),
        ([launched(False, reason="no")], None, "1 kernel launch, none observed"),
        ([launched(True), launched(True, bad=True)], 1, "2 kernel launches, 2 observed; the first bad one is k"),
        (
            [launched(True, bad=True, graph=GraphId("0/0", "dynamo"))],
            0,
            "the first bad node (bisected): k",
        ),
    ],
)
def test_what_is_said_of_the_kernels_holds_for_those_that_were_observed(
    kernels: list[KernelError], bad: int | None, text: str
) -> None:
    found = DiffReport(
        test="a",
        reference="eager",
        verdict="failed",
        mode="float64",
        kernels=tuple(kernels),
        first_bad_kernel=bad,
    )
    assert words(found).endswith(f" {text}")
    head = "".join(entry.draw(200)[0][0] for entry in diff_chart.entries(found, 200, 24)[:1])
    assert head.strip().startswith(text)


def test_a_long_note_takes_as_many_rows_as_it_needs() -> None:
    told = Told("   " + "word " * 40).rows(60)
    assert len(told) > 3 and all(len(one.text) < 60 for one in told)
    assert Told("short").rows(60) == [Told("short")]


def test_a_wide_map_is_made_to_fit() -> None:
    found = ErrorMap("out", (), (2, 128), ((0.0,) * 127 + (0.5,), (0.0,) * 128))
    rows = ["".join(text for text, _ in entry.draw(74)) for entry in heat.entries(found, 74, colours=False)]
    cells = [row for row in rows if row.rstrip().endswith(LEVELS[-1]) and "to" not in row]
    assert len(cells) == 1 and len(cells[0]) == 65
    assert "1 × 2 block" in rows[0]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0.0, "0"), (1e-7, "1.0e-07"), (0.12345, "0.123"), (LARGEST, "inf"), (float("nan"), "nan")],
)
def test_a_figure_is_short_and_none_is_no_number(value: float | None, text: str) -> None:
    assert column_figure(value) == text


def test_the_growth_bar_has_a_step_for_each_part_of_the_range() -> None:
    assert level(None) == " "
    assert (level(0.0), level(1e-9), level(1.0), level(LARGEST)) == (LEVELS[0], LEVELS[0], LEVELS[-1], LEVELS[-1])


def test_the_histogram_counts_every_element() -> None:
    diff = report().outputs[0]
    assert sum(diff.histogram) == diff.elements
    rows = ["".join(text for text, _ in entry.draw(200)) for entry in detail.entries(diff, 200)]
    bars = rows[rows.index(next(row for row in rows if "|test - reference|" in row)) + 1 :]
    assert sum(int(row.split("─")[0].split()[-1].replace(",", "")) for row in bars) == diff.elements


def test_a_map_is_hot_where_the_error_is_and_plain_without_colours() -> None:
    found = ErrorMap("out", (), (3, 2), ((0.0, 1e-3), (1e-9, LARGEST), (0.5, 0.0)))
    rows = [entry.draw(100) for entry in heat.entries(found, 100)]
    cells = [style for _, style in rows[1][1:]]
    assert cells[0].endswith(heat.RAMP[0]) and cells[1].endswith("#ffffff")
    assert rows[2][1][1].startswith(heat.RAMP[-1])
    plain = ["".join(text for text, _ in entry.draw(100)) for entry in heat.entries(found, 100, colours=False)]
    assert plain[1:4] == [f"  {LEVELS[4]}", f" {LEVELS[0]}!", f" {LEVELS[-1]} "]


def test_a_map_without_errors_says_so() -> None:
    rows = [entry.draw(100) for entry in heat.entries(ErrorMap("out", (), (1, 2), ((0.0, 0.0),)), 100)]
    assert "every element of this slice is equal" in rows[-1][0][0]


@pytest.mark.parametrize("height", [8, 12, 16])
def test_the_points_of_a_chart_have_their_style_on_every_row(height: int) -> None:
    rows = log_chart([Series([(1, 1e-7), (2, 1e-2)], "●", "accent")], 60, height, least=1e-10, most=1e3)
    assert [style for row in rows for text, style in row if "●" in text] == ["accent", "accent"]


def test_an_infinite_error_stands_at_the_top_of_the_chart() -> None:
    rows = log_chart([Series([(1, 1e-7), (2, LARGEST)], "●", "accent")], 60, 12, least=1e-10, most=1e3)
    drawn_rows = ["".join(text for text, _ in row) for row in rows]
    assert "●" in next(row for row in drawn_rows if "1e+03" in row)
    assert "1e+04" not in "".join(drawn_rows)


def test_a_chart_without_kernels_names_the_key_that_observes_them() -> None:
    empty = DiffReport(test="aot", reference="eager", verdict="passed", mode="float64")
    assert "D compares every kernel" in diff_chart.entries(empty, 100, 24)[0].draw(100)[0][0]
