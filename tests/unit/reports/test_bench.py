"""A summary says PASS only where every row was measured and right, and what was not measured is not a number."""

import csv
import io
import json

from idbg.bench.change import change
from idbg.format.amounts import NOTHING
from idbg.reports import bench
from idbg.schema.bench import Latency, Machine, Row


def row(backend: str = "inductor", median: float | None = 2.5, **others: object) -> Row:
    latency = None if median is None else Latency.of([median] * 9 + [2 * median], 1, 10, True)
    return Row(program="a.py", file="/a.py", backend=backend, latency_ms=latency, **others)  # type: ignore[arg-type]


EAGER = row("eager", 5.0, machine=Machine(device="a CPU", threads=2, processors=4, torch="2.15"))
FAILED = row("mock", None, status="failed", reason="ValueError: no such op")


def test_pass_is_said_where_all_is_well() -> None:
    told = bench.report([EAGER, row(diff="passed", speedup=2.0, cold_compile_s=11.25)])
    assert told.endswith("✔ PASS   2 rows")
    assert "a.py   forward, a CPU, 2 threads of 4, torch 2.15" in told
    (line,) = [line for line in told.splitlines() if line.strip().startswith("inductor")]
    assert line.split("  ")[1:2] == ["inductor"]
    for figure in ("11.2 s", "2.5 ms", "2.00 x", "agree"):
        assert figure in line


def test_a_failed_row_or_wrong_numbers_are_no_pass() -> None:
    failed = bench.report([EAGER, FAILED])
    assert "PASS" not in failed and failed.endswith("✘ of 2 rows, 1 failed")
    assert "✘ mock failed: ValueError: no such op" in failed
    wrong = bench.report([EAGER, row(diff="failed", diff_note="1 tensor wrong: out")])
    assert "PASS" not in wrong and "WRONG" in wrong and "1 tensor wrong: out" in wrong
    assert not bench.passed([]) and "nothing was measured" in bench.report([])


def test_what_was_not_measured_is_no_number() -> None:
    (line,) = [line for line in bench.report([FAILED]).splitlines() if line.strip().startswith("mock")]
    assert line.split()[1:] == [NOTHING] * 9 + ["failed"]  # type: ignore[attr-defined]
    found = json.loads(bench.to_json([FAILED]))
    assert found["passed"] is False
    assert found["rows"][0]["latency_ms"] is None and found["rows"][0]["cold_compile_s"] is None


def test_the_json_has_the_keys_of_the_issue_and_every_sample() -> None:
    found = json.loads(bench.to_json([EAGER]), parse_constant=lambda name: 1 / 0)
    keys = "program backend status reason cold_compile_s warm_compile_s latency_ms speedup peak_bytes graphs breaks"
    assert found["schema"] == "idbg.bench/1"
    assert {*keys.split(), "violations", "diff"} <= found["rows"][0].keys()
    assert {"median", "p95", "mean", "std", "samples"} <= found["rows"][0]["latency_ms"].keys()
    assert len(found["rows"][0]["latency_ms"]["samples"]) == 10


def test_the_csv_is_a_line_a_row() -> None:
    lines = list(csv.DictReader(io.StringIO(bench.to_csv([EAGER, FAILED]))))
    assert [line["status"] for line in lines] == ["ok", "failed"]
    assert lines[0]["latency_ms_median"] == "5.0" and lines[1]["latency_ms_median"] == ""


def test_a_change_is_told_with_what_else_changed() -> None:
    before = row(median=5.0, machine=Machine(torch="2.11"), program_hash="a")
    found = change(row(median=2.5, machine=Machine(torch="2.15"), program_hash="a"), before)
    assert found is not None
    told = bench.report([row()], [found])
    assert "5 ms → 2.5 ms   faster" in told and "also changed: torch 2.11 → 2.15" in told


def test_marks_stand_under_the_table() -> None:
    assert "  ⚠ inductor: noisy" in bench.report([row(caveats=("noisy",))]).splitlines()
