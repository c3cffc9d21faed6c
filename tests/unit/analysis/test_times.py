"""What follows from a run's spans: the tree, own time, what it was spent on, which run was cold, and the flame view."""

import pytest

from idbg.analysis.decisions import times
from idbg.schema import events
from idbg.schema.decisions.inductor import Span
from idbg.schema.graphs import Graph, GraphId, Node
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run
from idbg.views import time

# name, began, seconds, parent, more
COLD = (
    Span(id=1, name="run", began=100.0, seconds=20.0),
    Span(id=2, name="frame compile", began=101.0, seconds=18.0, parent=1, frame="0/0"),
    Span(id=3, name="dynamo", began=101.0, seconds=2.0, parent=2, frame="0/0"),
    Span(id=4, name="graph compile", began=103.0, seconds=15.0, parent=2, frame="0/0"),
    Span(id=5, name="lowering", began=103.0, seconds=1.0, parent=4, frame="0/0"),
    Span(id=6, name="load", began=105.0, seconds=13.0, parent=4, frame="0/0"),
    Span(id=7, name="kernel build", began=106.0, seconds=12.0, parent=6, frame="0/0"),
    Span(id=8, name="c++ compile", what="k0", began=106.0, seconds=9.0, parent=7, frame="0/0", thread=1),
    Span(id=9, name="c++ compile", what="k1", began=106.0, seconds=12.0, parent=7, frame="0/0", thread=2),
    Span(id=10, name="pass", began=103.5, seconds=0.25, parent=5, frame="0/0", times=30),
)


def a_run(*spans: Span, ended: bool = True) -> Run:
    run = Run(1, Program("p.py"), Target(), 100.0)
    run.apply(events.DecisionsRecorded(run=1, decisions=spans))
    if ended:
        run.apply(events.RunEnded(run=1, verdict="clean", seconds=20.0))
    return run


def test_own_time_leaves_out_what_is_inside_but_not_what_goes_on_beside() -> None:
    own = {timing.span.id: timing.own for timing in times.tree(a_run(*COLD))}
    assert own == {1: 2.0, 2: 1.0, 3: 2.0, 4: 1.0, 5: 0.75, 6: 1.0, 7: 12.0, 8: 9.0, 9: 12.0, 10: 0.25}


def test_a_compile_in_a_thread_of_the_programs_is_not_beside_one() -> None:
    run = Span(id=1, name="run", began=100.0, seconds=20.0)
    frame = Span(id=2, name="frame compile", began=101.0, seconds=4.0, parent=1, frame="0/1", thread=1)
    dynamo = Span(id=3, name="dynamo", began=101.0, seconds=3.0, parent=2, frame="0/1", thread=1)
    build = Span(id=4, name="c++ compile", began=104.0, seconds=1.0, parent=2, frame="0/1", thread=2)
    ran = a_run(run, frame, dynamo, build)
    assert [timing.span.id for timing in times.tree(ran) if timing.beside] == [4]
    assert {each.use: each.seconds for each in times.spent(times.tree(ran))} == {"dynamo": 3.0, "unnamed": 1.0}
    assert time.view(ran).summary.startswith("compiling took 4.00 s") and time.as_json(ran)
    assert "no compile time" in time.view(a_run(run)).summary  # its spans were recorded


def test_each_span_stands_below_the_one_that_it_is_in() -> None:
    told = [(timing.span.id, timing.depth) for timing in times.tree(a_run(*reversed(COLD)))]
    assert told == [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (10, 4), (6, 3), (7, 4), (8, 5), (9, 5)]


def test_what_did_not_end_lasts_until_now_or_until_the_run_was_over() -> None:
    open_span = Span(id=1, name="codegen", began=110.0)
    (live,) = times.tree(a_run(open_span, ended=False), now=113.0)
    (over,) = times.tree(a_run(open_span), now=500.0)
    assert (live.seconds, live.lasts, over.seconds, over.lasts) == (3.0, True, 10.0, True)


def test_a_damaged_log_with_spans_in_a_circle_is_read() -> None:
    circle = (Span(id=1, name="a", began=1.0, seconds=1.0, parent=2), Span(id=2, name="b", began=1.0, parent=1))
    assert {timing.span.name for timing in times.tree(a_run(*circle))} == {"a", "b"}


def test_a_name_inside_of_itself_counts_once() -> None:
    outer = Span(id=1, name="c++ compile", began=1.0, seconds=5.0)
    inner = Span(id=2, name="c++ compile", began=2.0, seconds=3.0, parent=1)
    (row,) = times.by_name(times.tree(a_run(outer, inner)))
    assert (row.times, row.seconds, row.own, row.longest) == (2, 5.0, 5.0, 5.0)


def test_waiting_for_kernels_is_spent_on_their_compiler_and_all_of_it_adds_up() -> None:
    spent = times.spent(times.tree(a_run(*COLD)))
    assert {each.use: each.seconds for each in spent} == {
        "cpp": 12.0,
        "dynamo": 2.0,
        "unnamed": 2.0,
        "lowering": 0.75,
        "passes": 0.25,
        "caches": 1.0,
    }
    assert spent[0].use == "cpp" and sum(each.share for each in spent) == pytest.approx(1)


def test_waiting_for_tritons_kernels_is_tritons() -> None:
    triton = Span(id=11, name="triton compile", what="t", began=106.0, seconds=2.0, parent=6, thread=9)
    assert times.spent(times.tree(a_run(*COLD, triton)))[0].use == "triton"


@pytest.mark.parametrize(
    ("names", "heat"),
    [
        (["lowering", "load"], "cold"),
        (["load"], "warm"),
        (["lowering", "load", "load"], "mixed"),
        (["dynamo"], ""),
    ],
)
def test_a_run_that_made_code_was_cold(names: list[str], heat: str) -> None:
    spans = [Span(id=at, name=name, began=1.0, seconds=1.0) for at, name in enumerate(names, 1)]
    assert times.heat(a_run(*spans)) == heat


def test_compiles_of_frames_that_had_been_compiled_are_counted() -> None:
    spans = [
        Span(id=1, name="frame compile", began=100.0, seconds=1.0, frame="0/0"),
        Span(id=2, name="frame compile", began=101.0, seconds=2.0, frame="0/1"),
        Span(id=3, name="dynamo", began=101.0, seconds=1.0, frame="0/1", parent=2),
        Span(id=4, name="frame compile", began=103.0, seconds=4.0, frame="0/2#2"),
    ]
    assert times.again(times.tree(a_run(*spans))) == (6.0, 2)


def test_the_line_that_most_nodes_come_from_is_named() -> None:
    run = a_run(Span(id=1, name="dynamo", began=100.0, seconds=4.0, frame="0/0"))
    lines = [3, 7, 7, 7]
    nodes = tuple(
        Node(name=f"n{at}", op="call_function", target="add", file="m.py", line=line) for at, line in enumerate(lines)
    )
    run.apply(events.GraphCaptured(run=1, graph=Graph(GraphId("0/0", "dynamo"), nodes)))
    found = times.unrolled(run, times.tree(run))
    assert found is not None and (found.line, found.nodes, found.of, found.seconds) == (7, 3, 4, 4.0)


def test_what_differs_most_between_two_runs_comes_first() -> None:
    warm = (*COLD[:3], Span(id=4, name="load", began=103.0, seconds=0.5, parent=2))
    changes = times.compared(times.tree(a_run(*COLD)), times.tree(a_run(*warm)))
    assert (changes[0].use, changes[0].before, changes[0].after) == ("unnamed", 2.0, 15.5)
    assert (changes[1].use, changes[1].before, changes[1].after) == ("cpp", 12.0, None)


def test_the_typical_time_of_a_phase_is_the_median_of_the_runs_that_had_it() -> None:
    past = [{"codegen": 1.0, "dynamo": 2.0}, {"codegen": 9.0}, {"codegen": 2.0}]
    assert times.typical(past) == {"codegen": 2.0, "dynamo": 2.0}


def test_the_flame_view_fills_its_width_and_no_box_lies_on_another() -> None:
    boxes = times.layout(times.tree(a_run(*COLD)), 80)
    assert max(box.start + box.length for box in boxes) == 80
    cells = [(box.row, cell) for box in boxes for cell in range(box.start, box.start + box.length)]
    assert len(cells) == len(set(cells))
    beside = {8: 5, 9: 6}
    assert {box.timing.span.id: box.row for box in boxes} == {1: 0, 2: 1, 3: 2, 4: 2, 5: 3, 6: 3, 7: 4} | beside


def test_the_flame_view_of_one_span_takes_the_whole_width() -> None:
    boxes = times.layout(times.tree(a_run(*COLD)), 40, under=6)
    assert [(box.timing.span.id, box.row, box.start) for box in boxes][:1] == [(6, 0, 0)]
    assert max(box.start + box.length for box in boxes) == 40


def test_ten_thousand_spans_are_laid_out_in_no_time() -> None:
    spans = [Span(id=at, name="pass", began=100.0 + at * 1e-3, seconds=1e-3) for at in range(1, 10_001)]
    boxes = times.layout(times.tree(a_run(*spans)), 100)
    assert 90 <= len(boxes) <= 100
