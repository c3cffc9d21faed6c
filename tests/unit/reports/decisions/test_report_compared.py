"""What changed from one run to another is told in words, the worst first."""

import json

from idbg.render.text import lines as text_lines
from idbg.schema import events
from idbg.schema.bench import Latency
from idbg.schema.decisions.dynamo import GraphBreak
from idbg.schema.decisions.inductor import Span
from idbg.schema.programs import Failure
from idbg.schema.runs import Run
from idbg.schema.strict_json import encode
from idbg.views import compared
from tests.harness.two_runs import run

BEFORE = {"extern_mm": "mm", "k0": "relu add", "k1": "mul", "k2": "sum"}
SPLIT = {"extern_mm": "mm", "a": "relu", "b": "add", "k1": "mul", "k2": "sum"}


def told(before: Run, after: Run, latency: tuple[Latency, Latency] | None = None) -> list[str]:
    return list(text_lines(compared.view(before, after, latency), 20))


def test_what_changed_is_told_the_worst_first() -> None:
    after = run(SPLIT, options={"max_fusion_size": 1}, number=2)
    after.breaks = [GraphBreak("a print", "m.py", 7)]
    after.seconds = 3.5
    section = compared.view(run(BEFORE), after)
    assert (section.verdict, section.count) == ("ok", 3)
    assert told(run(BEFORE), after) == [
        "0 → 1 graph break; kernels: 4 → 5: 1 split, 3 the same; time: 2 s → 3.5 s",
        "run 2 compared with run 1",
        "changed: max_fusion_size: default → 1",
        "graph breaks",
        "  0 → 1  a print   m.py:7",
        "kernels that differ",
        "  split: k0 (2 nodes) → a (1 node) and b (1 node)",
        "time: 2 s → 3.5 s (caches may have helped one of them: --cold runs both with empty ones)",
    ]


def test_a_run_that_failed_is_told_first_and_with_its_reason() -> None:
    after = run({}, number=2, mode="max-autotune")
    after.apply(
        events.RunEnded(run=2, verdict="failed", seconds=1.0, failure=Failure(kind="torch", message="no such\nkernel"))
    )
    lines = told(run(BEFORE), after)
    assert compared.view(run(BEFORE), after).verdict == "error"
    assert lines[0].startswith("worse: before ")
    assert "after: no such" in lines


def test_latency_is_said_with_what_is_noise() -> None:
    steady = Latency.of([10.0, 10.1, 9.9, 10.0], 1, 1, True)
    slow = Latency.of([15.0, 15.1, 14.9, 15.0], 1, 1, True)
    assert "latency: 10 ms → 15 ms a call: 1.50x slower" in told(run(BEFORE), run(BEFORE), (steady, slow))
    assert "latency: 10 ms → 10 ms a call: within the noise" in told(run(BEFORE), run(BEFORE), (steady, steady))


def test_much_is_cut_and_json_has_all_of_it() -> None:
    before = run({f"k{at}": f"n{at}" for at in range(50)}, nodes=tuple(f"n{at}" for at in range(50)))
    lines = told(before, run({}, nodes=tuple(f"n{at}" for at in range(50))))
    assert "  and 30 more" in lines
    after = run(SPLIT)
    plain = json.loads(encode(compared.as_json(run(BEFORE), after)))
    assert plain["runs"] == [1, 1]
    assert [change["how"] for change in plain["kernels"]] == ["same", "split", "same", "same"]
    assert "-def k0(in_ptr0):" in plain["kernels"][1]["diff"]
    assert plain["numbers"] is None


def test_sources_stand_beside_each_other() -> None:
    lines = list(text_lines(compared.view(run(BEFORE), run(SPLIT)), sides=30))
    assert any(line.split() == ["def", "k0(in_ptr0):", "|", "def", "a(in_ptr0):"] for line in lines)


def test_where_both_were_told_span_by_span_it_says_what_the_time_was_spent_on() -> None:
    one, other = run(BEFORE), run(BEFORE, number=2)
    one.phases, other.phases = {"lowering": 9.0}, {"lowering": 1.0}
    assert ["lowering", "9.00", "s", "1.00", "s", "-8.00", "s"] in [line.split() for line in told(one, other)]
    for each, name, seconds in ((one, "lowering", 9.0), (other, "load", 1.0)):
        spans = (
            Span(id=1, name="frame compile", began=0.0, seconds=10.0),
            Span(id=2, name=name, began=1.0, seconds=seconds, parent=1),
        )
        each.apply(events.DecisionsRecorded(run=each.number, decisions=spans))
    lines = told(one, other)
    rows = [line.split() for line in lines]
    assert any(row[:6] == ["compile", "time", "10.0", "s", "10.0", "s"] for row in rows)
    assert any("lowering" in row and row[-2:] == ["-9.00", "s"] for row in rows)
