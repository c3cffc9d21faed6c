"""How frames, breaks and recompiles are told: the worst first, in plain words, and the same as JSON."""

import json

import msgspec
from msgspec.structs import replace

from idbg.render.text import lines, text
from idbg.reports import decisions
from idbg.schema import events
from idbg.schema.decisions.dynamo import FailedGuard, Skip, SkipsDropped
from idbg.schema.decisions.inductor import PhaseRun
from idbg.views import about, breaks, frames, graphs, passes, recompiles
from idbg.views.tree import referring
from tests.harness.framed import BROKEN, FILE, PRINT, again, done, graph, recompiled, run_of, started
from tests.harness.work import lines_run

SIZE = FailedGuard(
    text="tensor 'L['x']' size mismatch at index 0. expected 2, actual 3",
    kind="size",
    what="size 0",
    against="0/0",
    source="L['x']",
    expected="2",
    actual="3",
    file=FILE,
    line=4,
)
DTYPE = replace(SIZE, kind="tensor", what="dtype", expected="Float", actual="Double")
REFUSED = done("0/2", end="eager", why="recompile_limit is 2", limit=2, limit_all=256, failed=(DTYPE,), ops=None)
AGAIN = (
    *(started("0/0", "f"), done("0/0", entries=1, alike=1, limit=2, limit_all=256)),
    *(recompiled("0/1", SIZE), started("0/1", "f"), done("0/1", entries=2, alike=2, limit=2, limit_all=256)),
)


def test_frames_are_a_tree_with_how_they_ended():
    shown = text(frames.view(run_of(*BROKEN, started("4/0", "g"), done("4/0", end="eager", why="no", ops=None))))
    first, *rest = shown.splitlines()
    assert first.startswith("5 frames, 4 compiled, 1 left to eager")
    found = [line for line in rest if "/0" in line]
    assert found[0].startswith("✔ f  0/0, traced 2 times") and "2.00 s" in found[0]
    assert any(line.startswith("  ✔ inner  1/0") for line in found)
    assert any(line.startswith("✔ f, after line 20  3/0") for line in found)
    assert any("g  4/0, left to eager" in line for line in found) and "  no" in rest


def test_a_frame_that_failed_shows_the_users_stack():
    failed = done("0/0", end="failed", why="boom", stack=PRINT.stack, ops=None)
    shown = text(frames.view(run_of(started("0/0", "f"), failed)))
    assert "f  0/0, failed" in shown and "boom" in shown
    assert "in inner" in shown and "print(" in shown
    assert "1 line of torch" in shown
    assert frames.view(run_of(started("0/0", "f"), failed)).verdict == "error"


def test_skipped_functions_of_the_user_are_listed_and_others_counted():
    own = Skip("g", FILE, 7, "no tensor-related objects found in frame")
    torchs = Skip("h", "/x/site-packages/torch/nn/m.py", 7, "frame is in the Dynamo skipfiles list")
    skips = [events.DecisionsRecorded(run=1, decisions=(skip,)) for skip in (own, torchs)]
    run = run_of(*skips, events.DecisionsRecorded(run=1, decisions=(SkipsDropped(5),)))
    shown = text(frames.view(run)).splitlines()
    assert shown[0] == "nothing was compiled: Dynamo skipped every function"
    assert "7 functions skipped, 1 of them yours; 2 are listed" in shown[1]
    assert shown[2].endswith("no tensors in it") and shown[3].strip() == "1 function of torch and libraries"
    assert len(shown) == 4
    assert [row.refs.line for row in referring(frames.view(run))] == [7, 7]


def test_nothing_is_said_to_be_nothing():
    assert text(frames.view(run_of())) == "nothing was compiled: torch.compile was called for no function"
    assert text(breaks.view(run_of())) == "no graph breaks"
    assert text(recompiles.view(run_of())).startswith("no recompiles: nothing was compiled")
    assert "every call fitted" in text(recompiles.view(run_of(graph("0/0"))))


def test_a_break_tells_why_how_it_goes_on_what_it_costs_and_what_to_do():
    told = text(breaks.view(run_of(*BROKEN)))
    assert told.startswith("2 graph breaks at 1 place")
    for words in (
        "⚠ print() cannot be in a graph",
        "Python makes this call, and the rest is another graph",
        "8.50 s of compiling, for the 3 frames that it causes",
        "before it frame 0/0, called between 1/0, after it 3/0",
        "2 tensors (64 B) through memory in each call",
        "reorderable_logging_functions.add(print)",
        "gb0059.html",
        "1 line of idbg",
    ):
        assert words in told, words


def test_a_guard_that_torch_only_quotes_is_told_without_what_torch_fills_its_line_with():
    quoted = FailedGuard(text="not L['items']" + " " * 40 + "  # if items: (m.py:3)", against="0/0")
    assert recompiles.guard_words(quoted) == "not L['items']"


def test_another_object_is_not_called_the_same_one() -> None:
    of = FailedGuard(text="", kind="identity", source="L['fn']", expected="the same function", actual="torch.cos")
    assert recompiles.guard_words(of) == "fn is torch.cos, and was another function"


def test_phases_of_passes_say_milliseconds_and_functions_are_named_as_everywhere():
    phase = PhaseRun(phase="joint", ran=2, seconds=0.0031, nodes=(3, 3))
    name = "torch_dynamo_resume_in_f_at_7"
    run = run_of(started("0/0", name), events.DecisionsRecorded(run=1, frame="0/0", decisions=(phase,)), graph("0/0"))
    shown = list(lines(passes.view(run)))
    assert shown[1].startswith("0/0  f, after line 7  ") and shown[2].endswith("  3.1 ms")
    assert list(lines(graphs.view(run)))[1].startswith("0/0  f, after line 7  ")


def test_a_break_is_about_the_line_that_the_user_wrote():
    row, *below = referring(breaks.view(run_of(*BROKEN)))
    assert (row.refs.file, row.refs.line, row.refs.frame, row.cells[0].value) == (FILE, 5, "0/0", 2)
    assert all(each.opens == "edit" for each in below), "below it is the stack alone"


def test_a_break_that_an_error_was_made_of_is_not_said_to_be_none():
    told = list(lines(breaks.view(run_of(started("0/0", "f"), done("0/0", end="failed")))))
    assert told[0] == "no graph breaks"
    assert "1 frame failed" in told[1]


def test_recompiles_are_a_timeline_with_warnings_at_their_function_and_what_to_do_last():
    run = run_of(*AGAIN, REFUSED)
    told = list(lines(recompiles.view(run)))
    assert told[0].startswith("1 recompile of 1 function, 1 function at the limit")
    assert told[0].split()[-2:] == ["time", "line"]
    assert "2 of 2: other calls run in eager, and are not counted" in told[1]  # torch calls no compiler for them
    assert told[2].split()[:2] == ["compile", "0"]
    assert "size 0 of x is 3, and was 2" in told[3]
    assert "dtype of x is Double, and was Float  (recompile_limit is 2)" in told[4] and "not compiled" in told[4]
    advised = [line.strip() for line in told[5:]]
    assert "torch._dynamo.mark_dynamic(x, 0)" in advised
    assert "x = x.to(torch.float32)" in advised  # each guard's best, before a second of the first


def test_a_recompile_is_about_its_function_and_the_line_of_its_guard():
    rows = referring(recompiles.view(run_of(*AGAIN)))
    assert [(row.key[0], row.refs.frame, row.refs.line) for row in rows if row.key[0] in ("function", "compile")] == [
        ("function", "0/0", 1),
        ("compile", "0/0", 1),
        ("compile", "0/1", 4),
    ]


def test_all_of_it_is_json_and_each_is_a_type_of_analyze():
    run = run_of(*BROKEN, recompiled("0/1", SIZE), started("0/1", "f"))
    for name in ("frames", "breaks", "recompiles"):
        assert name in decisions.TYPES
        assert json.loads(msgspec.json.encode(decisions.as_json(name, run)))
    (row,) = (each for each in decisions.refs("breaks", run) if each.get("frame"))
    assert (row["line"], row["frame"]) == (5, "0/0") and "print() cannot be in a graph" in str(row["row"])


def test_a_thousand_frames_that_break_are_told_in_a_moment():
    told: list[events.SessionEvent] = [events.GraphBroke(run=1, graph_break=PRINT)]
    for at in range(1000):
        told += [
            started(f"{at}/0", f"f{at}"),
            recompiled(f"{at}/1", SIZE),
            started(f"{at}/1", f"f{at}"),
            again(f"{at}/0"),
        ]
        told += [done(f"{at}/0"), done(f"{at}/1", entries=2, alike=2, limit=8, limit_all=256)]
    run = run_of(*told)

    def tell() -> None:
        for name in ("frames", "breaks", "recompiles"):
            assert len(list(decisions.text(name, run))) < 1_000
            msgspec.json.encode(decisions.as_json(name, run))
        list(about.sections(run, about.Subject(frozenset(), places=frozenset({(FILE, 4)}))))

    assert lines_run(tell)[1] < 4_450 * 1_000
