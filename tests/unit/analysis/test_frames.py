"""The tree of frames, and what is alike in it."""

from idbg.analysis.decisions.frames import FrameRow, resumed, rows
from idbg.schema import events
from idbg.schema.decisions.dynamo import Skip
from tests.harness.framed import BROKEN, again, done, run_of, started
from tests.harness.work import lines_run


def _told(found: list[FrameRow]) -> list[tuple[int, str, tuple[str, ...]]]:
    return [(row.depth, row.name, row.ids) for row in found]


def test_what_goes_on_after_a_break_stands_beside_its_function_and_what_is_called_below_it():
    assert _told(rows(run_of(*BROKEN))) == [
        (0, "f", ("0/0",)),
        (1, "inner", ("1/0",)),
        (1, "inner, after line 5", ("2/0",)),
        (0, "f, after line 20", ("3/0",)),
    ]


def test_the_name_of_what_goes_on_tells_function_and_line():
    assert resumed("torch_dynamo_resume_in_forward_at_27") == ("forward", 27)
    assert resumed("torch_dynamo_resume_in_a_at_1_at_2") == ("a_at_1", 2)
    assert resumed("forward") is None


def _twelve_layers() -> list[events.SessionEvent]:
    told: list[events.SessionEvent] = [started("0/0", "model"), done("0/0")]
    for at in range(12):
        told += [started(f"1/{at}", "layer", "0/0", 7), done(f"1/{at}", 0.5)]
        told += [started(f"2/{at}", "norm", f"1/{at}", 9), done(f"2/{at}", 0.25), again(f"2/{at}")]
    return told


def test_frames_that_are_alike_are_one_row_and_so_is_what_they_call():
    run = run_of(*_twelve_layers())
    model, layers, norms = rows(run)
    assert (model.count, layers.count, norms.count) == (1, 12, 12)
    assert (layers.depth, norms.depth) == (1, 2)
    assert (layers.seconds, norms.seconds, norms.breaks) == (6.0, 3.0, 12)
    assert norms.ids == tuple(f"2/{at}" for at in range(12))
    assert len(rows(run, folded=False)) == 25


def test_what_has_other_ops_or_calls_others_is_not_alike():
    told = [*_twelve_layers(), done("1/3", ops=9), started("3/0", "other", "1/5")]
    layers = [row for row in rows(run_of(*told)) if row.function == "layer"]
    assert [row.ids for row in layers if row.count == 1] == [("1/3",), ("1/5",)]
    assert sum(row.count for row in layers) == 12


def test_a_frame_whose_end_was_not_told_has_none():
    (row,) = rows(run_of(started("0/0", "f")))
    assert (row.end, row.seconds, row.ops) == ("", None, None)


def test_a_run_in_which_everything_is_left_alone_has_no_rows():
    skip = events.DecisionsRecorded(
        run=1, decisions=(Skip("g", "m.py", 7, "no tensor-related objects found in frame"),)
    )
    assert rows(run_of(skip)) == []


def test_parents_that_go_round_in_circles_or_are_not_there_stand_at_the_top():
    told = [started("0/0", "f", "1/0"), started("1/0", "g", "0/0"), started("2/0", "h", "9/9")]
    assert [(row.depth, row.name) for row in rows(run_of(*told))] == [(0, "f"), (1, "g"), (0, "h")]


def test_a_thousand_frames_one_in_the_other_take_no_time():
    told: list[events.SessionEvent] = [started("0/0", "f")]
    for at in range(1, 1000):
        told += [started(f"{at}/0", f"torch_dynamo_resume_in_f_at_{at}", f"{at - 1}/0"), done(f"{at}/0", at)]
    for at in range(1000, 2000):
        told.append(started(f"{at}/0", f"g{at}", f"{at - 1}/0"))
    run = run_of(*told)
    found, work = lines_run(lambda: rows(run))
    assert len(found) == 2000 and work < 600 * 2_000
    assert {row.depth for row in found if row.function == "f"} == {0}
    assert max(row.depth for row in found) == 1000
