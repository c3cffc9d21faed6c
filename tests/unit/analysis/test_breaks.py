"""Breaks by line: how often, what lies on either side, and what they cost."""

from msgspec.structs import replace

from idbg.analysis.decisions.break_report import of_program, whose
from idbg.analysis.decisions.breaks import places, suggestions, words
from idbg.schema import events
from idbg.schema.decisions.dynamo import FrameResult, GraphBreak, StackLine
from idbg.schema.programs import Target
from tests.harness.decided import has
from tests.harness.framed import BROKEN, FILE, PRINT, again, done, run_of, started


def test_a_break_knows_the_frames_on_either_side_and_what_crosses():
    (place,) = places(run_of(*BROKEN))
    assert (place.count, place.frames, place.ways) == (2, ("0/0", "1/0"), ("call", "call"))
    outer, inner = place.sides
    assert (outer.before, outer.called, outer.after) == ("0/0", ("1/0",), ("3/0",))
    assert (inner.before, inner.called, inner.after) == ("1/0", (), ("2/0",))
    assert (outer.tensors, outer.size, outer.unsized) == (2, 64, 0)
    assert (outer.seconds, inner.seconds) == (3.0 + 4.0 + 0.5, 1.0)
    assert place.seconds == 8.5
    assert place.worst is outer
    assert place.page == "GB0059"


def test_the_place_is_the_users_innermost_line_also_where_torch_names_one_of_its_own():
    torchs = replace(PRINT, file="/x/site-packages/torch/_dynamo/external_utils.py", line=69)
    (place,) = places(run_of(events.GraphBroke(run=1, graph_break=torchs)))
    assert (place.file, place.line) == (FILE, 5)


def test_what_costs_most_comes_first_and_then_what_is_met_most():
    other = replace(PRINT, line=30, stack=(), frame="7/0")
    third = replace(PRINT, line=40, stack=(), frame="8/0")
    told: list[events.SessionEvent] = [
        *(events.GraphBroke(run=1, graph_break=each) for each in (PRINT, other, third)),
        *(started("6/0", "a"), started("7/0", "b"), started("8/0", "c")),
        *(again("8/0", 2), again("8/0", 2)),
        *(started("9/0", "d", "7/0"), done("9/0", 5.0)),
    ]
    assert [place.line for place in places(run_of(*told))] == [30, 40, 5]


def test_a_frame_that_was_given_up_hands_nothing_on():
    told = [event for event in BROKEN if not has(event, FrameResult)]
    (place,) = places(run_of(*told, done("0/0", end="eager")))
    assert place.sides[0].tensors == 0


def test_a_line_that_breaks_in_two_ways_is_one_place():
    first = events.GraphBroke(run=1, graph_break=PRINT)
    (place,) = places(run_of(first, again("4/0", way="frame"), again("5/0", way="frame")))
    assert place.ways == ("call", "frame", "frame")


def test_plain_words_where_we_have_them_else_torchs():
    assert words(PRINT) == "print() cannot be in a graph"
    assert words(GraphBreak("x", kind="Data-dependent branching")) == "Python branches on the value of a tensor"
    drawn = GraphBreak("x", kind="Data-dependent branching", explanation="random_value_0: graph input (random_value_0)")
    assert words(drawn) == "Python branches on a number that its module random draws"
    assert words(GraphBreak("x", kind="something of a torch to come")) == "something of a torch to come"
    assert words(GraphBreak("all that is known\nof it")) == "all that is known"
    asked = GraphBreak("x", "/x/site-packages/torch/optim/optimizer.py", kind="Call to `torch._dynamo.graph_break()`")
    assert words(asked).startswith("torch asks")
    assert words(replace(asked, file=FILE)).startswith("the program asks")
    skipped = GraphBreak(
        "x",
        kind="Attempted to call function marked as skipped",
        explanation="Dynamo does not know how to trace the builtin `posix.stat.` This function is",
    )
    assert words(skipped).endswith("posix.stat")


def test_what_a_setting_can_do_can_be_tried():
    item = GraphBreak("x", kind="Unsupported Tensor.item() call with capture_scalar_outputs=False")
    (suggestion,) = suggestions(item)
    assert suggestion.can_be_tried
    assert suggestion.tried(Target()).settings == {"dynamo.capture_scalar_outputs": True}
    assert not next(suggestions(PRINT)).can_be_tried


def test_each_line_of_a_stack_belongs_to_the_user_torch_idbg_or_a_library():
    assert [whose(line.file) for line in PRINT.stack] == ["library", "idbg", "user", "torch", "user"]
    assert whose("/a/site-packages/torchvision/x.py") == "library"
    assert whose("/home/me/idbg_like/m.py") == "user"


def test_a_stack_begins_with_the_program() -> None:
    ours = StackLine("/x/idbg/worker/main.py", 1, "main", "")
    runpy = StackLine("/usr/lib/python3.11/runpy.py", 1, "run", "")
    theirs, torchs = StackLine("/home/me/model.py", 3, "f", ""), StackLine("/e/site-packages/torch/nn.py", 4, "g", "")
    assert of_program((ours, runpy, theirs, torchs)) == (theirs, torchs)
    assert of_program((ours, torchs)) == (ours, torchs) and of_program(()) == ()
    command = StackLine("<string>", 1, "<module>", "")
    assert of_program((command, ours, theirs)) == (theirs,) and of_program((command, ours)) == (command, ours)
