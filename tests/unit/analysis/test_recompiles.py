"""Timelines of functions, their and what to do about a guard that failed."""

import pytest
from msgspec.structs import replace

from idbg.analysis.decisions.guards import read_failed
from idbg.analysis.decisions.recompile_advice import advice_on
from idbg.analysis.decisions.recompiles import CompileRow, Timeline, nearest_first, place_of, shown, timelines
from idbg.analysis.decisions.suggestions import Suggestion
from idbg.schema import events
from idbg.schema.decisions.dynamo import FailedGuard, FrameGuards, Guard
from idbg.schema.programs import Target
from tests.harness.framed import FILE, done, recompiled, run_of, started


def failed(text: str, actual: str = "") -> FailedGuard:
    read = read_failed(text).failed
    return replace(read, actual=actual) if actual else read


def suggestions(guard: FailedGuard, *, dynamic: bool | None = None, inside: bool = False) -> list[Suggestion]:
    run = run_of()
    run.target = Target(dynamic=dynamic)
    timeline = Timeline("0", "f", FILE, 1, (CompileRow("0/0", 0), CompileRow("0/1", 1, failed=(guard,))), None, inside)
    return advice_on(guard, timeline, run)


SIZE = failed("0/0: tensor 'L['x']' size mismatch at index 1. expected 3, actual 4")


def _compiled(times: int, limit: int = 8) -> list[events.SessionEvent]:
    told: list[events.SessionEvent] = []
    for at in range(times):
        told += [recompiled(f"0/{at}", SIZE)] if at else []
        told += [started(f"0/{at}", "f"), done(f"0/{at}", entries=at + 1, alike=at + 1, limit=limit, limit_all=256)]
    return told


def test_a_timeline_has_each_compile_with_its_guard():
    (timeline,) = timelines(run_of(*_compiled(3), started("1/0", "g"), done("1/0")))
    assert [(row.number, row.frame, len(row.failed)) for row in timeline.compiles] == [
        (0, "0/0", 0),
        (1, "0/1", 1),
        (2, "0/2", 1),
    ]
    assert len(timeline.recompiles) == 2
    assert timeline.limit is None


@pytest.mark.parametrize(("times", "near"), [(1, False), (6, False), (7, True), (8, True)])
def test_a_limit_is_shown_when_one_more_compile_is_left(times: int, near: bool):
    found = [each for each in timelines(run_of(*_compiled(times))) if each.limit is not None]
    assert bool(found) == near
    if near:
        assert found[0].limit is not None
        assert found[0].limit.words.startswith(f"{times} of 8: ")
        assert not found[0].limit.hit


def test_a_compile_that_the_limit_refused_stands_at_the_end():
    refused = done("0/2", end="eager", why="recompile_limit is 2", limit=2, limit_all=256, failed=(SIZE,), ops=None)
    (timeline,) = timelines(run_of(*_compiled(2, limit=2), refused))
    assert [row.refused for row in timeline.compiles] == [False, False, True]
    assert timeline.compiles[-1].failed == (SIZE,)
    assert timeline.limit is not None
    assert (timeline.limit.hit, timeline.limit.used, timeline.limit.most) == (True, 2, 2)


def test_the_version_that_differs_least_from_the_call_comes_first():
    dtype = failed("0/1: tensor 'x' dtype mismatch. expected Float, actual Double")
    rank = failed("0/2: tensor 'x' rank mismatch. expected 1, actual 2")
    assert nearest_first((dtype, rank, SIZE)) == (SIZE, rank, dtype)
    newer = failed("0/3: tensor 'x' dtype mismatch. expected Float, actual Double")
    assert nearest_first((newer, dtype)) == (newer, dtype)


def test_frames_after_a_reset_have_a_timeline_of_their_own():
    told = [*_compiled(2), started("0/0#2", "f"), done("0/0#2"), started("0/1#2", "f"), done("0/1#2")]
    assert [len(timeline.compiles) for timeline in timelines(run_of(*told))] == [2, 2]


def test_sources_are_shown_as_the_user_writes_them():
    assert shown("L['self'].n") == "self.n"
    assert shown("G['k']") == "k"
    assert shown("L['d']['a'][0]") == "d['a'][0]"


def test_the_line_of_a_tensors_guard_is_that_of_the_guard_which_torch_does_not_name():
    guard = Guard(kind="TENSOR_MATCH", source="L['x']", file=FILE, line=12)
    run = run_of(events.DecisionsRecorded(run=1, decisions=(FrameGuards(frame="0/0", guards=(guard,)),)))
    assert place_of(run, SIZE) == (FILE, 12)
    assert place_of(run_of(), SIZE) == ("", 0)


CASES: dict[str, tuple[FailedGuard, str, dict[str, object]]] = {
    "size": (SIZE, "mark_dynamic(x, 1)", {"dynamic_sources": ("L['x']",)}),
    "one": (failed("0/0: tensor 'L['x']' size mismatch at index 0. expected 1, actual 4"), "", {}),
    "rank": (failed("0/0: tensor 'x' rank mismatch. expected 1, actual 2"), "", {}),
    "int": (failed("0/0: L['n'] == 3", "4"), "dynamic_sources", {"dynamic_sources": ("L['n']",)}),
    "module": (
        failed("0/0: L['self'].n == 3  # (HINT: use torch._dynamo.config.allow_unspec_int_on_nn_module = True)", "4"),
        "allow_unspec_int_on_nn_module = True",
        {"settings": {"dynamo.allow_unspec_int_on_nn_module": True}},
    ),
    "float": (failed("0/0: L['f'] == 1.5", "2.5"), "dynamic=True", {"dynamic": True}),
    "text": (failed("0/0: L['s'] == 'a'", "'b'"), "", {}),
    "dtype": (failed("0/0: tensor 'x' dtype mismatch. expected Float, actual Double"), "x.to(torch.float32)", {}),
    "gradient": (failed("0/0: tensor 'x' requires_grad mismatch. expected requires_grad=0"), "requires_grad_", {}),
    "length": (failed("0/0: len(L['l']) == 1", "2"), "", {}),
    "identity": (failed("0/0: ___check_obj_id(L['f'].__code__, 14), type=<class 'code'>"), "", {}),
    "state": (failed("0/0: GLOBAL_STATE changed: grad_mode "), "", {}),
    "alias": (failed("0/0: Duplicate tensors found: [\"L['a']\"]"), "", {}),
    "key": (failed("0/0: ___dict_contains('a', L['d'])"), "", {}),
    "type": (failed("0/0: ___check_type_id(L['l'], 140), type=<class 'list'>"), "l = list(l)", {}),
}


@pytest.mark.parametrize("case", CASES)
def test_what_to_do_in_words_in_code_and_as_a_target(case: str):
    guard, code, changes = CASES[case]
    first = suggestions(guard)[0]
    assert first.words
    assert code in first.code
    tried = first.tried(Target())
    assert first.can_be_tried == bool(changes)
    assert {name: getattr(tried, name) for name in changes} == changes


def test_what_dynamic_is_already_is_not_suggested():
    assert all(each.dynamic is None and not each.dynamic_sources for each in suggestions(SIZE, dynamic=True))


def test_what_crosses_a_break_is_not_the_users_to_mark():
    stacked = failed("0/0: tensor 'L['___stack0']' size mismatch at index 0. expected 2, actual 3")
    assert [each.code for each in suggestions(stacked, inside=True)] == ["torch.compile(f, dynamic=True)"]
    inside = suggestions(SIZE, inside=True)
    assert not any("mark_" in each.code for each in inside)
    assert inside[0].dynamic_sources == ("L['x']",)
