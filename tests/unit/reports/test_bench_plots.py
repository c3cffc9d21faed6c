"""The charts of benchmark rows: their numbers, and their pictures."""

import csv
import io
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from idbg.reports.drawings.files import write_chart
from idbg.schema.bench import Latency, Machine, Row
from idbg.schema.errors import OutputError
from idbg.views import bench_charts
from idbg.views.bench_charts import Chart, Figure


def row(backend: str = "inductor", median: float | None = 2.0, **others: object) -> Row:
    samples = None if median is None else [median * (1 + part / 100) for part in range(-10, 11)]
    latency = None if samples is None else Latency.of(samples, 1, 10, True)
    return Row(program="a.py", file="/a.py", backend=backend, latency_ms=latency, **others)  # type: ignore[arg-type]


EAGER = row("eager", 4.0)
FAILED = row("mock", None, status="failed", reason="no such op", cold_compile_s=1.5)
ROWS = [EAGER, row(speedup=2.0, cold_compile_s=12.0, warm_compile_s=0.25), FAILED]
HISTORY = bench_charts.history([row(at=86400.0 * day) for day in (3, 1, 2)] + [EAGER])
CHARTS = [
    bench_charts.latency(ROWS),
    bench_charts.speedup(ROWS),
    bench_charts.compile_time(ROWS),
    bench_charts.phases({"dynamo": 0.5, "codegen": 2.0}, "run 3"),
    HISTORY,
]


def test_a_latency_has_its_spread_and_a_failed_row_none() -> None:
    eager, inductor, failed = bench_charts.latency(ROWS).figures
    assert (eager.name, eager.value) == ("eager", 4.0)
    assert inductor.low == pytest.approx(1.82) and inductor.high == pytest.approx(2.18)
    assert failed == Figure("mock", None)


def test_eager_is_neither_compiled_nor_sped_up() -> None:
    assert [one.name for one in bench_charts.speedup(ROWS).figures] == ["inductor", "mock"]
    cold, warm, cold_failed, warm_failed = bench_charts.compile_time(ROWS).figures
    assert (cold.value, warm.value, cold_failed.value, warm_failed.value) == (12.0, 0.25, 1.5, None)
    assert not bench_charts.speedup([EAGER]).figures


def test_a_chart_of_latencies_says_which_are_doubtful() -> None:
    busy = "other processes used 73 % of the processors"
    rows = [row("eager", 4.0, caveats=(busy, "noisy")), row(speedup=2.0)]
    for chart in (bench_charts.latency(rows), bench_charts.speedup(rows)):
        assert chart.title.endswith(f"; eager: {busy}, noisy")


def test_the_longest_phase_is_first() -> None:
    assert [one.name for one in bench_charts.phases({"dynamo": 0.5, "codegen": 2.0}, "run 3").figures] == [
        "codegen",
        "dynamo",
    ]


def test_the_history_is_a_line_for_each_backend_size_and_machine_by_date() -> None:
    inductor = [one.at for one in HISTORY.figures if one.name == "inductor"]
    assert inductor == [86400.0, 2 * 86400.0, 3 * 86400.0]
    others = [row(batch=8), row(machine=Machine(host="one")), row(machine=Machine(host="two")), FAILED]
    assert [one.name for one in bench_charts.history(others).figures] == [
        "inductor batch 8",
        "inductor one",
        "inductor two",
    ]


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_the_numbers_are_those_of_the_chart(chart: Chart) -> None:
    heads, *lines = csv.reader(io.StringIO(bench_charts.to_csv(chart)))
    at = heads.index(next(head for head in heads if head not in ("measured", "at")))
    assert [line[at] for line in lines] == ["" if one.value is None else str(one.value) for one in chart.figures]
    found = json.loads(bench_charts.to_json(chart), parse_constant=lambda name: 1 / 0)
    assert found["schema"] == bench_charts.SCHEMA and found["unit"] == chart.unit
    assert [one["value"] for one in found["figures"]] == [one.value for one in chart.figures]


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_a_chart_becomes_three_files(tmp_path: Path, chart: Chart) -> None:
    written = list(write_chart(chart, tmp_path))
    assert [path.name for path in written] == [f"bench-{chart.name}.{kind}" for kind in ("csv", "json", "svg")]
    root = ElementTree.parse(written[-1]).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0].startswith(chart.title[:20]) and len(texts) > 3


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write"):
        list(write_chart(CHARTS[0], tmp_path / "gone"))
