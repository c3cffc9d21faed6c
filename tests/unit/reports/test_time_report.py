"""Where the time of a compile went, in words, as JSON, and as a trace that Perfetto opens."""

import json
from pathlib import Path

import pytest

from idbg.render.text import lines, text
from idbg.reports import chrome_trace
from idbg.schema import events
from idbg.schema.decisions.inductor import Span
from idbg.schema.errors import OutputError
from idbg.schema.graphs import Frame, Graph, GraphId, Node
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run
from idbg.schema.strict_json import encode
from idbg.views import earlier_times, time

COMPILE = Span(id=2, name="frame compile", began=101.0, seconds=18.0, parent=1, frame="0/0")


def a_run(*spans: Span, ended: bool = True) -> Run:
    run = Run(1, Program("p.py"), Target(), 100.0)
    run.apply(events.FrameStarted(run=1, frame=Frame("0/0", "forward", "m.py", 3)))
    run.apply(
        events.DecisionsRecorded(run=1, decisions=(Span(id=1, name="run", began=100.0, seconds=20.0), COMPILE, *spans))
    )
    if ended:
        run.apply(events.RunEnded(run=1, verdict="clean", seconds=20.0))
    return run


def told(*spans: Span) -> str:
    return text(time.view(a_run(*spans)))


def test_c_plus_plus_that_dominates_is_named_with_what_helps() -> None:
    page = told(
        Span(id=3, name="load", began=102.0, seconds=17.0, parent=2),
        Span(id=4, name="precompiled header", began=102.0, seconds=7.0, parent=3),
        Span(id=5, name="kernel build", began=109.0, seconds=9.0, parent=3),
        Span(id=6, name="c++ compile", what="cpp_fused_add_0", began=109.0, seconds=9.0, parent=5, thread=1),
        Span(id=7, name="c++ compile", what="cpp_fused_add_1", began=109.0, seconds=3.0, parent=5, thread=2),
    )
    assert "most of it: building C++ kernels: 16.0 s, 89 %" in page
    assert "7.0 s of it is the header that all kernels share: it is precompiled once for all such folders," in page
    assert "2 builds, at most 2 at a time: TORCHINDUCTOR_COMPILE_THREADS" in page
    assert any(line.split() == ["cpp_fused_add_0", "c++", "compile", "9.00", "s"] for line in page.splitlines())


def test_recompiles_are_told_beside_what_the_largest_part_went_into() -> None:
    page = told(
        Span(id=3, name="frame compile", began=119.0, seconds=30.0, parent=1, frame="0/1"),
        Span(id=4, name="kernel build", began=119.0, seconds=29.0, parent=3),
        Span(id=5, name="c++ compile", what="cpp_fused_add_0", began=119.0, seconds=29.0, parent=4, thread=1),
    )
    lead = page.splitlines()
    assert lead[1] == "most of it: building C++ kernels: 29.0 s, 60 %"
    assert "1 recompile took 30.0 s of it, 62 %" in lead


def test_less_than_half_is_not_most_and_what_has_no_name_may_be_more() -> None:
    some = Span(id=3, name="lowering", began=101.0, seconds=8.0, parent=2)
    assert "the largest part that is attributed: lowering: 8.00 s, 44 %" in told(some)
    page = told(some, Span(id=4, name="dynamo", began=110.0, seconds=5.0, parent=2))
    assert "the largest part: lowering: 8.00 s, 44 %" in page and "most of it" not in page


def test_builds_that_are_not_listed_are_counted() -> None:
    builds = [
        Span(id=4 + at, name="c++ compile", what=f"k{at}", began=102.0, seconds=1.0, parent=2, thread=1 + at)
        for at in range(60)
    ]
    assert "  and 10 more" in told(*builds).splitlines()


def test_a_loop_that_dynamo_unrolled_is_named_by_its_line() -> None:
    run = a_run(Span(id=3, name="dynamo", began=101.0, seconds=17.0, parent=2, frame="0/0"))
    nodes = tuple(Node(name=f"n{at}", op="call_function", target="add", file="m.py", line=7) for at in range(300))
    run.apply(events.GraphCaptured(run=1, graph=Graph(GraphId("0/0", "dynamo"), nodes)))
    page = text(time.view(run))
    assert "Dynamo's tracing of Python: 17.0 s" in page
    assert "300 of 300 nodes of forward, frame 0/0 come from one line, m.py:7" in page
    assert "nested_compile_region" in page


def test_the_tree_names_the_function_and_what_a_pass_did_and_what_never_ended() -> None:
    page = told(
        Span(id=3, name="pass", what="joint: fold", began=101.0, seconds=8.0, parent=2, nodes=(45, 41)),
        Span(id=4, name="codegen", began=110.0, parent=2),
    )
    assert "frame compile   forward m.py:3" in page
    assert "pass joint: fold, 45 to 41 nodes" in page
    assert "codegen  not ended" in page


def test_a_run_without_compiles_says_so() -> None:
    run = Run(1, Program("p.py"), Target(), 100.0)
    assert list(lines(time.view(run))) == ["nothing was compiled: no compile time"]
    assert chrome_trace.trace(run).trace_events[2:] == []


def test_two_runs_are_compared_and_which_was_cold_is_said() -> None:
    cold = a_run(Span(id=3, name="lowering", began=101.0, seconds=9.0, parent=2))
    warm = a_run(Span(id=3, name="load", began=101.0, seconds=1.0, parent=2))
    lines = list(earlier_times.compared(cold, warm))
    assert lines[0] == "compile time: 18.0 s, then 18.0 s"
    assert "the first was cold" in lines[1] and "the second warm" in lines[1]
    assert any("lowering" in line and line.endswith("-9.00 s") for line in lines)


def test_json_has_every_span_and_the_share_that_has_a_name() -> None:
    run = a_run(Span(id=3, name="dynamo", began=101.0, seconds=17.1, parent=2), Span(id=4, name="codegen", began=119.0))
    found = json.loads(encode(time.as_json(run)))
    assert found["explained"] == pytest.approx(0.953, abs=0.001)
    assert [(each["span"]["id"], each["depth"], each["ended"]) for each in found["spans"]] == [
        *[(1, 0, True), (2, 1, True), (3, 2, True), (4, 0, False)]
    ]


# ------------------------------------------------------------- the trace


def test_the_trace_keeps_the_rules_of_the_format(tmp_path: Path) -> None:
    """Complete events have ts and dur in microseconds, each pid and tid a number; those of a thread nest."""
    run = a_run(
        Span(id=3, name="dynamo", began=101.0, seconds=2.0, parent=2, frame="0/0"),
        Span(id=4, name="load", began=103.0, seconds=16.000_000_1, parent=2),
        Span(id=5, name="c++ compile", what="k0", began=103.5, seconds=9.0, parent=4, thread=1),
        Span(id=6, name="c++ compile", what="k1", began=103.5, seconds=20.0, parent=4, thread=2),
        Span(id=7, name="pass", began=102.0, seconds=0.1, parent=3, times=9),
        Span(id=8, name="codegen", began=118.0, parent=4),
    )
    path = tmp_path / "out.json"
    chrome_trace.write(run, path)
    trace = json.loads(path.read_text())
    assert set(trace) == {"traceEvents", "displayTimeUnit"}
    complete = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert {event["ph"] for event in trace["traceEvents"]} == {"X", "M"}
    assert all(isinstance(event[key], int) for event in trace["traceEvents"] for key in ("pid", "tid"))
    assert {event["name"]: (event["ts"], event["dur"]) for event in complete}["dynamo"] == (1e6, 2e6)
    assert_nested(complete)
    args = {event["name"]: event.get("args") for event in complete}
    assert args["dynamo"]["short ones in it"] == {"pass": "9 times, 100.00 ms in all"}
    assert args["codegen"]["ended"].startswith("no")


def assert_nested(events_of_trace: list[dict[str, float]]) -> None:
    """In each thread any two events are apart, or one holds the other."""
    for tid in {event["tid"] for event in events_of_trace}:
        around: list[float] = []
        mine = [event for event in events_of_trace if event["tid"] == tid]
        for event in sorted(mine, key=lambda each: (each["ts"], -each["dur"])):
            assert event["ts"] >= 0 and event["dur"] >= 0
            while around and around[-1] <= event["ts"]:
                around.pop()
            assert not around or event["ts"] + event["dur"] <= around[-1], event
            around.append(event["ts"] + event["dur"])


def test_a_trace_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write the trace"):
        chrome_trace.write(a_run(), tmp_path / "none" / "out.json")
