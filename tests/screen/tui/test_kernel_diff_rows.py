"""What do the rows, figures and charts of the KernelDiff pane say, without a screen?"""

from typing import Any

import pytest
from msgspec.structs import replace

from idbg.format.amounts import column_figure
from idbg.format.glyphs import LEVELS
from idbg.schema.diff import (
    LARGEST,
    Baseline,
    Block,
    Counts,
    DiffReport,
    ErrorMap,
    KernelError,
    TensorDiff,
    Worst,
)
from idbg.schema.faults import CrashSite, LaunchArgument, NanOrigin
from idbg.schema.graphs import GraphId, TensorMeta
from idbg.schema.programs import Failure
from idbg.views.tensors import spot
from idbg_tui.panes.kernel_diff import overlays, pictures
from idbg_tui.panes.kernel_diff.rows import ORDERS, Choice, badness, root
from idbg_tui.panes.kernel_diff.tensor import tensor_lines
from idbg_tui.widgets.charts import Series, log_chart
from idbg_tui.widgets.cutting import distinct
from idbg_tui.widgets.section_rows import Look
from tests.harness.compared import report, rows, subjects, texts


def words(report: DiffReport) -> str:
    """What the list says."""
    return "\n".join(texts(report, width=250))


def test_a_program_that_did_not_come_to_its_end_says_why() -> None:
    failure = Failure(kind="worker", message="killed by SIGSEGV")
    found = DiffReport(test="a", reference="eager", verdict="failed", mode="float64", failure=failure)
    assert "did not come to its end: killed by SIGSEGV" in words(found)


def failing(*outputs: TensorDiff, kernels: tuple[KernelError, ...] = ()) -> DiffReport:
    return DiffReport(test="a", reference="eager", verdict="failed", mode="float64", outputs=outputs, kernels=kernels)


def drawn(*found: TensorDiff, width: int = 118) -> list[str]:
    """The rows of outputs."""
    listed = [row for row in rows(failing(*found), width=width) if isinstance(row.key, tuple) and len(row.key) == 2]
    return ["".join(text for text, _ in row.draw(width)) for row in listed if row.key[0] == "output"]  # type: ignore[index]


def test_a_tensor_without_figures_says_what_is_wrong() -> None:
    diff = TensorDiff(name="out[1]", passed=False, failed_by=("missing",), note="only the reference has it")
    assert drawn(diff)[0].split("-  ")[-1].strip() == "by missing  only the reference has it"
    assert badness(diff) == float("inf")


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
    found = failing(*outputs)
    order = {how: [one.name for one in subjects(found, Choice(how)) if isinstance(one, TensorDiff)] for how in ORDERS}
    worst = ["nan", "b", "a", "fine"]
    assert list(order.values()) == [["a", "b", "nan", "fine"], worst, worst, ["fine", "a", "b", "nan"]]


def test_kernels_are_sorted_by_what_has_come_together_and_by_what_each_adds() -> None:
    kernels = tuple(
        replace(launched(True), name=name, error=error, isolated=isolated)
        for name, error, isolated in (("a", 1e-7, 1e-7), ("b", 0.5, 0.4), ("c", 0.6, 1e-8), ("d", 0.7, None))
    )
    found = failing(kernels=kernels)
    order = {how: [one.name for one in subjects(found, Choice(how)) if isinstance(one, KernelError)] for how in ORDERS}
    assert order["the worst first"] == ["d", "c", "b", "a"] and order["the worst alone first"] == ["b", "a", "c", "d"]
    shown = texts(found)
    heads = next(text for text in shown if "kernel launch " in text)
    assert heads.split()[-8:] == ["alone", "eager", "alone", "so", "far", "inputs", "eager", "line"]
    assert next(text for text in shown if "✔ b " in text).split()[1:5] == ["b", "0.4", "-", "0.5"]
    alone = texts(failing(kernels=(launched(True),)))
    heads = next(text for text in alone if "kernel launch " in text)
    assert "alone" not in heads and heads.split()[-5:] == ["so", "far", "inputs", "eager", "line"]


def test_figures_that_nan_makes_meaningless_are_not_shown() -> None:
    row = drawn(NAN)[0]
    assert row.split("wanted")[0].split() == ["▾", "✘", "nan", "inf", "0", "-", "by", "nan", "[1,", "2]", "nan,"]
    view = "\n".join("".join(text for text, _ in entry.draw(80)) for entry in tensor_lines(NAN, None, Look(80)))
    assert "RMSE" not in view and "worst row" not in view and "the worst is" not in view
    assert "inf: NaN or infinity on one side" in view and "[1, 2]: nan, wanted 0.5" in view
    assert drawn(wrong("a", 5.0))[0].split()[5] == "inf"  # eager is exact


def test_two_values_are_told_with_as_many_digits_as_tell_them_apart() -> None:
    assert spot(Worst((3,), 0.5, 0.25)) == "[3]: 0.25, wanted 0.5"
    assert spot(Worst((), 0.60908731, 0.60908735)) == "0.60908735, wanted 0.60908731"


@pytest.mark.parametrize("width", [78, 108])
def test_long_names_that_differ_are_not_cut_to_the_same(width: int) -> None:
    names = [f"layers.{at}.self_attention.{part}_projection.weight" for at in range(12) for part in "qkv"]
    shown = distinct([*names, "x"], 20)
    assert len(set(shown.values())) == len(names) + 1
    assert all(len(text) <= 20 for text in shown.values())
    meta = TensorMeta("float32", (3, 100, 200), (20000, 200, 1), "cpu")
    diffs = [replace(wrong(name, 2.0), test=meta, worst=Worst((1, 50, 150), 0.6, 1.60824)) for name in names]
    listed = drawn(*diffs, width=width)
    assert len(listed) == len({row.split("✘")[1].split()[0] for row in listed}) == len(names)
    assert any("worst: [1, 50, 150]: 1.60824, wanted 0.6" in text for text in texts(failing(*diffs), width=width))


def launched(observed: bool, **known: Any) -> KernelError:
    return KernelError(frame="0/0", part="", name="k", observed=observed, error=1e-7 if observed else None, **known)


@pytest.mark.parametrize(
    ("kernels", "bad", "text"),
    [
        ([launched(True)] * 2, None, "2 kernel launches, 2 observed; none is worse than its inputs"),
        (
            [launched(True), launched(False, reason="no"), launched(False, reason="no")],
            None,
            "3 kernel launches; none of the 1 observed is worse than its inputs; not observed: 2",
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
    assert text in [line.strip(" ▾▸") for line in words(found).splitlines()]
    head = "".join(entry.draw(200)[0][0] for entry in overlays.growth(found, Look(200), 24)[:1])
    assert head.strip().startswith(text)


def test_a_long_note_takes_as_many_rows_as_it_needs() -> None:
    found = replace(failing(), notes=("word " * 40, "short"))
    notes = [text for text in texts(found, width=60) if "word" in text or "short" in text]
    assert len(notes) > 4 and all(len(text) <= 60 for text in notes) and notes[-1].strip() == "note: short"


def test_a_wide_map_is_made_to_fit() -> None:
    found = ErrorMap("out", (), (2, 128), ((0.0,) * 127 + (0.5,), (0.0,) * 128))
    rows = ["".join(text for text, _ in entry.draw(74)) for entry in pictures.error_map(found, Look(74), colours=False)]
    cells = [row for row in rows if row.rstrip().endswith(LEVELS[-1]) and "to" not in row]
    assert len(cells) == 1 and len(cells[0].strip()) == 1 and len(cells[0]) == 69
    assert "1 × 2 block" in rows[0]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0.0, "0"), (1e-7, "1.0e-07"), (0.12345, "0.123"), (LARGEST, "inf"), (float("nan"), "nan")],
)
def test_a_figure_is_short_and_none_is_no_number(value: float | None, text: str) -> None:
    assert column_figure(value) == text


def test_the_histogram_counts_every_element() -> None:
    diff = report().outputs[0]
    assert sum(diff.histogram) == diff.elements
    rows = ["".join(text for text, _ in entry.draw(200)) for entry in tensor_lines(diff, None, Look(200))]
    bars = rows[rows.index(next(row for row in rows if "|test - reference|" in row)) + 1 :]
    bars = [row for row in bars if "─" in row]
    assert sum(int(row.split("─")[0].split()[-1].replace(",", "")) for row in bars) == diff.elements


def test_a_map_is_hot_where_the_error_is_and_plain_without_colours() -> None:
    found = ErrorMap("out", (), (3, 2), ((0.0, 1e-3), (1e-9, LARGEST), (0.5, 0.0)))
    rows = [entry.draw(100) for entry in pictures.error_map(found, Look(100))]
    cells = [style for _, style in rows[1][1:]]
    assert cells[0].endswith(pictures.RAMP[0]) and cells[1].endswith("#ffffff")
    assert rows[2][1][1].startswith(pictures.RAMP[-1])
    plain = [
        "".join(text for text, _ in entry.draw(100)) for entry in pictures.error_map(found, Look(100), colours=False)
    ]
    assert [row[5:] for row in plain[1:4]] == [f" {LEVELS[4]}", f"{LEVELS[0]}!", f"{LEVELS[-1]} "]


def test_a_map_without_errors_says_so() -> None:
    rows = [entry.draw(100) for entry in pictures.error_map(ErrorMap("out", (), (1, 2), ((0.0, 0.0),)), Look(100))]
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
    assert "D compares every kernel" in overlays.growth(empty, Look(100), 24)[0].draw(100)[0][0]


LOG = NanOrigin(
    side="eager", what="nan", phase="forward", op="log", operands="-0.2", dtype="float32", file="/m/train.py", line=40
)


def test_births_are_listed_and_each_has_a_row_of_its_own() -> None:
    found = replace(report(), births=(LOG,))
    listed = [row for row in rows(found, width=40) if root(row.key) == ("nan", 0)]
    text = " ".join("".join(text for text, _ in row.draw(60)).strip() for row in listed)
    assert len(listed) == 3 and text == "NaN is born in eager at /m/train.py:40: log of -0.2 in float32"
    assert "no NaN and no infinity is born in eager" in words(replace(report(), births=()))
    assert "born" not in words(report())


def test_a_failure_tells_the_launch_that_crashed() -> None:
    given = LaunchArgument("buf0", "float32", (4, 8), (8, 1), "cpu", 64)
    site = CrashSite(
        cause="SIGSEGV", kernel="cpp_fused_sin_0", nodes=("sin",), arguments=(given,), arguments_of="crash"
    )
    failure = Failure(kind="worker", message="the worker was killed by SIGSEGV in cpp_fused_sin_0", crash=site)
    said = "\n".join(text for entry in overlays.failure_rows(failure, Look(100)) for text, _ in entry.draw(100))
    assert "in the launch cpp_fused_sin_0" in said and "it computes sin" in said
    assert "buf0: f32[4, 8], strides [8, 1], cpu, at a multiple of 64 bytes" in said
