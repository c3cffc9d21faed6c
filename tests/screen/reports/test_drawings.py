"""A drawing is well-formed whatever is in it, says its numbers as text, and draws what was measured where it is."""

import re
from math import inf, nan
from xml.etree import ElementTree

import pytest

from idbg.analysis.decisions import times
from idbg.analysis.liveness import memory_profile
from idbg.format.amounts import figure
from idbg.reports import drawings
from idbg.reports.drawings import Axis, Bar, FlameBox, Line, Point, of_bench, of_diff, of_time
from idbg.reports.drawings.scales import Scale, scale, ticks
from idbg.reports.drawings.svg import cut
from idbg.schema.diff import DECADES, LARGEST, DiffReport, ErrorMap, TensorDiff
from idbg.schema.runs import Run, fold
from idbg.schema.steps import StepDistance, TrainingSteps
from idbg.views import bench_charts
from idbg.views.bench_charts import Chart, Figure
from tests.harness.markup import Markup
from tests.harness.recorded import log

HOSTILE = "</svg></script><img src=x onerror=alert(1)>]]>\x1b[31m\udc80\u202e'\"&"


def run_of(name: str) -> Run:
    run = fold(log(name)).last
    assert run is not None
    return run


def report_of(name: str) -> DiffReport:
    report = run_of(name).diff
    assert report is not None
    return report


def parsed(drawing: object) -> ElementTree.Element:
    """The drawing as strict XML, which is more than a browser asks for."""
    assert drawing is not None
    return ElementTree.fromstring(str(drawing))


def texts(drawing: object) -> list[str]:
    return ["".join(each.itertext()) for each in parsed(drawing).iter("text")]


def numbers(drawing: object) -> list[float]:
    """Each coordinate."""
    found = []
    for each in parsed(drawing).iter():
        for name in ("x", "y", "cx", "cy", "width", "height", "d"):
            found += [float(value) for value in re.findall(r"-?\d+(?:\.\d+)?", each.get(name, ""))]
    return found


def test_a_launch_that_is_bad_is_red_and_says_its_error() -> None:
    report = report_of("planted")
    drawing = parsed(of_diff.launches(report))
    bad = [each for each in drawing.iter("circle") if each.get("class") == "bad"]
    assert report.culprit is not None
    (tip,) = ["".join(each.itertext()) for each in bad]
    assert report.culprit.name in tip and figure(report.culprit.error) in tip


def test_what_was_not_observed_is_a_gap_and_two_points_are_needed() -> None:
    line = Line("one", [Point(1, 1e-3), Point(2, None), Point(3, 1e-2), Point(4, 1e-1)])
    drawing = drawings.lines([line], title="t", x=Axis("x"), y=Axis("y", log=True))
    _, path = (each.get("d", "") for each in parsed(drawing).iter("path") if each.get("class") == "curve c1")
    assert path.count("M") == 2 and path.count("L") == 1
    assert of_diff.launches(DiffReport(test="a", reference="b", verdict="passed", mode="float64")) is None


def test_a_logarithmic_axis_has_places_for_zero_and_for_what_is_no_number() -> None:
    points = [Point(1, 0.0), Point(2, 1e-6), Point(3, inf), Point(4, LARGEST), Point(5, nan)]
    drawing = drawings.lines([Line("one", points)], title="t", x=Axis("x"), y=Axis("y", log=True))
    assert {"0", "inf"} <= {*texts(drawing)}
    heights = [float(each.get("cy", "")) for each in parsed(drawing).iter("circle")]
    assert heights[0] > heights[1] > heights[2] == heights[3] == heights[4]


@pytest.mark.parametrize("values", [[], [0.0], [5.0, 5.0], [1e-320], [1e308], [inf], [-3.0, 2.0]])
@pytest.mark.parametrize("log", [False, True])
def test_any_values_have_an_axis(values: list[float], log: bool) -> None:
    of = scale(values, 0.0, 100.0, log=log)
    assert all(-20 <= of.at(value) <= 120 for value in (*values, 0.0, 1.0, inf, nan) if value == value or log)
    assert 1 <= len(ticks(of, 5)) <= 12


def test_ticks_are_round_and_few_however_far_from_zero() -> None:
    days = Scale(1.76e9, 1.76e9 + 3600, 0, 100)
    assert 2 <= len(ticks(days, 4)) <= 9
    assert ticks(Scale(0, 17.3, 0, 100), 5) == [0, 5, 10, 15]


def test_a_bar_ends_at_its_value_and_what_was_not_measured_has_none() -> None:
    bars = [Bar("a", 2.0, "2 s", low=1.0, high=4.0, samples=(1.0, 2.0, 4.0)), Bar("b", None, "not measured")]
    drawing = drawings.bars(bars, title="t", write="{:g}".format)
    (rect,) = parsed(drawing).iter("rect")
    spread = next(each.get("d", "") for each in parsed(drawing).iter("path") if each.get("class") == "spread")
    start, end = (float(each) for each in re.findall(r"^M([\d.]+) [\d.]+H([\d.]+)", spread)[0])
    left, width = float(rect.get("x", "")), float(rect.get("width", ""))
    assert start - left == pytest.approx(width / 2, abs=0.2) and end - left == pytest.approx(2 * width, abs=0.2)
    assert "not measured" in texts(drawing)


def test_a_benchmark_says_each_median_and_keeps_every_sample() -> None:
    rows = fold(log("benched")).rows
    chart = bench_charts.latency(rows)
    samples = [row.latency_ms.samples if row.latency_ms else () for row in rows]
    drawing = of_bench.chart(chart, samples)
    medians = [bench_charts.value_words(row.latency_ms.median if row.latency_ms else None, "ms") for row in rows]
    assert all(any(text.startswith(median) for text in texts(drawing)) for median in medians)
    strokes = [each.get("d", "") for each in parsed(drawing).iter("path") if each.get("class") == "samples"]
    assert len(strokes) == sum(bool(each) for each in samples)


@pytest.mark.parametrize("name", ["history", "memory", "roofline"])
def test_each_kind_of_chart_is_drawn(name: str) -> None:
    run = run_of("resnet")
    graph = next(iter(run.graphs.values()))
    roof = Figure("mm", 40.0, at=12.0), Figure("conv", 3.0, at=0.5)
    charts = {
        "history": bench_charts.history(fold(log("benched")).rows),
        "memory": bench_charts.memory(graph, memory_profile(graph).live_bytes),
        "roofline": Chart("roofline", "Roofline", "GFLOP/s", roof, "none", "FLOPs/byte", (10.0, 100.0)),
    }
    drawing = of_bench.chart(charts[name])
    assert len(str(drawing)) < 40_000
    assert all(-50 < value < 2000 for value in numbers(drawing))
    assert of_bench.chart(Chart(name, "t", "ms", (), "nothing was measured yet")) is None


def test_elements_are_counted_by_size_as_text_too() -> None:
    counts = [0] * (len(DECADES) + 2)
    counts[0], counts[5], counts[7] = 1_000_000, 1, 12
    drawing = of_diff.by_size(TensorDiff(name="out", histogram=tuple(counts)))
    assert texts(drawing)[::2][:2] == ["equal", "1e-17 to 1e-16"]
    assert texts(drawing)[1::2] == ["1,000,000", "1", "0", "12"]
    widths = [float(each.get("width", "")) for each in parsed(drawing).iter("rect")]
    assert widths == sorted(widths, reverse=True)[:1] + sorted(widths[1:])
    assert of_diff.by_size(TensorDiff(name="out")) is None


def test_a_map_tells_equal_hot_and_one_sided_cells_apart() -> None:
    drawing = of_diff.error_map(ErrorMap("out", (0,), (2, 3), ((0.0, 1e-3, 1e-9), (LARGEST, 1e-3, 1e-3))))
    classes = {each.get("class") for each in parsed(drawing).iter("path")}
    assert {"h8", "h9", "h7", "h1"} <= classes
    assert {"equal", "to 0.001", "NaN or infinity on one side"} <= {*texts(drawing)}
    assert of_diff.error_map(ErrorMap("out", (), (1, 2), ((0.0, 0.0),))) is None


def test_a_training_that_parts_is_red_from_there_on() -> None:
    rows = [
        StepDistance(step=at, tensor="w", kind="parameter", test=10.0**-at, reference=1e-7, allowed=1e-3, failed=at > 2)
        for at in range(1, 5)
    ]
    steps = TrainingSteps(requested=4, verdict="failed", taken=4, parted=rows[2], distances=tuple(rows))
    drawing = of_diff.training(steps, "inductor")
    assert sum(each.get("class") == "bad" for each in parsed(drawing).iter("circle")) == 2
    assert "inductor" in texts(drawing) and "allowed" in texts(drawing)


def test_a_flame_has_a_box_for_each_span_that_is_to_be_seen() -> None:
    run = run_of("breaking")
    timings = times.tree(run)
    drawing = parsed(of_time.compile_flame(run, timings))
    boxes = list(drawing.iter("g"))
    assert len(boxes) == len(times.layout(timings, of_time.CELLS))
    tips = ["".join(each.find("title").itertext()) for each in boxes if each.find("title") is not None]  # type: ignore[union-attr]
    assert len(tips) == len(boxes) and any("breaking.py:8" in tip for tip in tips)
    assert of_time.compile_flame(run_of("planted"), []) is None


def test_hostile_names_stay_text_and_long_ones_stay_short() -> None:
    long = "n" * 1_000_000
    for name in (HOSTILE, long):
        made = [
            drawings.bars([Bar(name, 1.0, name, tip=name)], title=name, write=lambda value: f"{value:g}"),
            drawings.histogram([(name, 3)], title=name),
            drawings.lines([Line(name, [Point(1, 1.0, name)])], title=name, x=Axis(name), y=Axis(name)),
            drawings.flame([FlameBox(0, 0, 10, name, name, "f0")], 10, 1.0, title=name),
            drawings.heat([[1]], title=name, shape=(1, 1), legend=[(1, name)]),
        ]
        for drawing in made:
            assert len(drawing) < 30_000
            found = Markup(str(drawing))
            assert found.faults == [] and "img" not in found.tags and "script" not in found.tags
            assert "\x1b" not in drawing and "\u202e" not in drawing
            parsed(drawing)


def test_a_name_is_cut_in_its_middle() -> None:
    short = cut("triton_poi_fused_relu_12", 80)
    assert short.startswith("triton") and "…" in short and short.endswith("_12")
    assert cut("abc", 300) == "abc"


def test_no_rule_of_the_drawings_reaches_beyond_them() -> None:
    rules = re.findall(r"([^{}]+)\{", drawings.style())
    assert rules and all(each.strip().startswith(".idbg-chart") for rule in rules for each in rule.split(","))
