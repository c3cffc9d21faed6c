"""A summary says PASS only where every row was measured and right, and what was not measured is not a number."""

import csv
import io
import json

from idbg.bench.suite import change
from idbg.format.amounts import NOTHING
from idbg.render.text import text
from idbg.schema import strict_json
from idbg.schema.bench import Latency, Machine, Row, SpeedChange
from idbg.views import bench


def row(backend: str = "inductor", median: float | None = 2.5, **others: object) -> Row:
    latency = None if median is None else Latency.of([median] * 9 + [2 * median], 1, 10, True)
    return Row(program="a.py", file="/a.py", backend=backend, latency_ms=latency, **others)  # type: ignore[arg-type]


def report(rows: list[Row], changes: list[SpeedChange] | None = None) -> str:
    return text(bench.view(rows, changes))


def to_json(rows: list[Row]) -> str:
    return strict_json.formatted(bench.as_json(rows)).decode()


EAGER = row("eager", 5.0, machine=Machine(device="a CPU", threads=2, processors=4, torch="2.15"))
FAILED = row("mock", None, status="failed", reason="ValueError: no such op")


def test_pass_is_said_where_all_is_well() -> None:
    told = report([EAGER, row(diff="passed", speedup=2.0, cold_compile_s=11.25)])
    assert told.startswith("✔ 2 rows measured\n")
    assert "a.py   forward, a CPU, 2 threads of 4, torch 2.15" in told
    (line,) = [line for line in told.splitlines() if "inductor" in line]
    assert line.startswith("✔ inductor ")
    for figure in ("11.2 s", "2.5 ms", "2.00x", "agree"):
        assert figure in line


def test_a_failed_row_or_wrong_numbers_are_no_pass() -> None:
    failed = report([EAGER, FAILED])
    assert failed.startswith("✘ of 2 rows, 1 failed\n")
    assert "  ✘ failed: ValueError: no such op" in failed
    wrong = report([EAGER, row(diff="failed", diff_note="1 tensor wrong: out")])
    assert wrong.startswith("✘") and "WRONG" in wrong and "1 tensor wrong: out" in wrong
    assert not bench.passed([]) and "nothing was measured" in report([])


def test_what_was_not_measured_is_no_number() -> None:
    (line,) = [line for line in report([FAILED]).splitlines() if line.startswith("✘ mock")]
    assert line.split()[2:] == [NOTHING] * 10 + ["failed"]  # type: ignore[attr-defined]
    found = json.loads(to_json([FAILED]))
    assert found["passed"] is False
    assert found["rows"][0]["latency_ms"] is None and found["rows"][0]["cold_compile_s"] is None


def test_the_json_has_the_keys_of_the_issue_and_every_sample() -> None:
    found = json.loads(to_json([EAGER]), parse_constant=lambda name: 1 / 0)
    keys = "program backend status reason cold_compile_s warm_compile_s latency_ms speedup peak_bytes graphs breaks"
    assert found["schema"] == "idbg.bench/1"
    assert {*keys.split(), "violations", "diff"} <= found["rows"][0].keys()
    assert {"median", "p95", "mean", "std", "samples"} <= found["rows"][0]["latency_ms"].keys()
    assert len(found["rows"][0]["latency_ms"]["samples"]) == 10


def test_the_csv_is_a_line_a_row() -> None:
    lines = list(csv.DictReader(io.StringIO(bench.as_csv([EAGER, FAILED]))))
    assert [line["status"] for line in lines] == ["ok", "failed"]
    assert lines[0]["latency_ms_median"] == "5.0" and lines[1]["latency_ms_median"] == ""


def test_a_change_is_told_with_what_else_changed() -> None:
    before = row(median=5.0, machine=Machine(torch="2.11"), program_hash="a")
    found = change(row(median=2.5, machine=Machine(torch="2.15"), program_hash="a"), before)
    assert found is not None
    told = report([found.now], [found])
    assert "faster: 5 ms → 2.5 ms (p " in told and "also changed: torch 2.11 → 2.15" in told


def test_marks_stand_under_the_table() -> None:
    told = report([row(caveats=("noisy",)), EAGER]).splitlines()
    assert told[told.index("  ⚠ noisy") - 1].startswith("⚠ inductor")
    assert told[0] == "⚠ 2 rows measured, 1 with doubtful times"
