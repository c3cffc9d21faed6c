"""Do the header and the footer say what is so, in words, and fit?"""

from pathlib import Path

import pytest

from idbg.schema import events
from idbg.schema.decisions.dynamo import GraphBreak
from idbg.schema.diff import DiffReport
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Graph, GraphId
from idbg.schema.programs import Failure, Program, Target
from idbg.schema.remarks import Remark
from idbg.schema.violations import SEVERITIES
from idbg_tui import keymap
from idbg_tui.state.state import State
from idbg_tui.status_bar import flashes
from idbg_tui.status_bar.footer import footer_keys, footer_progress
from idbg_tui.status_bar.header import header
from idbg_tui.widgets.bars import BarPart
from idbg_tui.widgets.lines import Lines
from tests.harness.recorded import app_of, chain, state_of, under
from tests.harness.rule_texts import FALL, PAD, PEAK
from tests.harness.screen import bar, settle

KEYS = keymap.in_force({})


def words(pieces: list[BarPart]) -> str:
    return "".join(text for text, _ in pieces)


def live(*more: SessionEvent, live: bool = True) -> State:
    state = State(live=live, target=Target(strict=True))
    state.apply([events.RunStarted(run=1, program=Program("m.py"), target=Target()), *more])
    return state


def test_the_header_names_program_target_and_result() -> None:
    left, right = header(state_of("resnet"), 160)
    assert words(left).startswith("idbg  resnet.py   aot · cpu · mock (warn)")
    assert "kernels · aot took" in words(right)


def test_a_narrow_header_keeps_the_counts_and_the_mode_and_leaves_out_the_rest_of_the_target() -> None:
    left, right = header(state_of("resnet"), 78)
    assert "mock (warn)" in words(left) and "20 reject" in words(left) and "cpu" not in words(left)
    assert len(words(left)) + len(words(right)) < 78


def test_strict_is_said() -> None:
    assert "(strict)" in words(header(live(), 160)[0])


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (Failure(kind="user", type="ValueError", message="x"), "the program raised ValueError"),
        (Failure(kind="cancelled", message="x"), "cancelled"),
        (Failure(kind="torch", message="x"), "torch could not compile it"),
        (Failure(kind="constraints", message="x"), "stopped by the rules"),
    ],
)
def test_a_failed_run_says_whose_failure_it_is(failure: Failure, said: str) -> None:
    state = live(events.RunEnded(run=1, verdict="failed", seconds=1.5, failure=failure))
    assert said + " after 1.5 s" in words(header(state, 160)[1])


def test_a_run_in_progress_shows_its_phase_and_the_usual_time_as_such() -> None:
    state = live(
        events.GraphCaptured(run=1, graph=chain(2)),
        events.RunEnded(run=1, verdict="clean", seconds=18.4),
        events.RunStarted(run=2, program=Program("m.py"), target=Target()),
        events.PhaseChanged(run=2, phase="codegen"),
    )
    said = words(footer_progress(state, 160))
    assert said.startswith("codegen") and said.endswith("usually 18 s")


def test_no_time_is_given_that_was_not_measured() -> None:
    assert "usually" not in words(footer_progress(live(), 160))


def test_no_kernels_are_counted_where_none_were_made() -> None:
    state = live(events.GraphCaptured(run=1, graph=chain(2)), events.RunEnded(run=1, verdict="clean", seconds=1.0))
    assert "no kernels" in words(header(state, 160)[1])


def test_a_saved_run_that_was_not_finished_says_so() -> None:
    assert "not finished" in words(header(live(live=False), 160)[1])


def test_the_header_names_the_stages_that_it_counts_and_what_the_sign_means() -> None:
    left, right = header(state_of("resnet"), 160)
    assert "inference ✘ 20 reject" in words(left)
    assert words(right).startswith(
        ("saved session  ⚠ 37 violations (dynamo 37, inference 20)", "saved session  ✘ failed")
    )


def test_a_long_path_gives_way_before_the_mode_and_the_accelerator() -> None:
    state = under("resnet", FALL + PAD)
    state.program = Program("/a/long/way/to/the/program/examples/of/resnet.py")
    for width in (170, 150):
        left, _ = header(state, width)
        assert words(left).startswith("idbg  resnet.py   aot · cpu · unnamed (warn)   inference ⚠ 17 fallback")
    assert words(header(state, 130)[0]).startswith("idbg  resnet.py   unnamed (warn)   inference ⚠ 17 fallback")
    assert words(header(state, 108)[0]) == "idbg  resnet.py   unnamed (warn)   inference ⚠ 17  ◇ 435 · 18 parts"


@pytest.mark.parametrize("width", [58, 70, 90])
def test_a_narrow_header_gives_up_times_before_the_verdict(width: int) -> None:
    left, right = header(state_of("resnet"), width)
    assert "✘ 20" in words(left) and "violations" in words(right) and "took" not in words(right)


def test_a_failure_is_told_in_the_header_with_its_cause_and_place() -> None:
    failure = Failure(kind="user", type="ValueError", message="no layer", file="/x/m.py", line=3)
    state = live(events.RunEnded(run=1, verdict="failed", seconds=1.5, failure=failure))
    right = words(header(state, 160)[1])
    assert right == "✘ the program raised ValueError after 1.5 s: no layer (m.py:3)"


def test_input_that_cannot_be_used_has_no_duration() -> None:
    failure = Failure(kind="input", type="ProgramError", message="no main in it")
    state = live(events.RunEnded(run=1, verdict="failed", seconds=0.01, failure=failure))
    assert words(header(state, 160)[1]) == "✘ the program cannot be used: no main in it"


def test_a_run_that_strict_mode_stopped_names_its_repro() -> None:
    failure = Failure(kind="constraints", message="37 violations of the rules of mock:\n  x", repro="/x/repro.py")
    flash = flashes.of_event(events.RunEnded(run=1, verdict="failed", seconds=1.0, failure=failure))
    assert flash is not None
    assert flash[0].startswith("stopped by the rules: 37 violations; ") and "/x/repro.py" in flash[0]


def test_violations_of_another_graph_of_the_stage_are_pointed_to() -> None:
    assert flashes.in_other_graph(state_of("resnet")) is None
    said = flashes.in_other_graph(state_of("mlp_train"))
    assert said is not None and "in backward: v goes there" in said[0]


@pytest.mark.parametrize("width", [20, 40, 78, 158])
def test_the_footers_keys_fit_and_the_panes_own_come_first(width: int) -> None:
    said = words(footer_keys((("space", "fold"),), KEYS, live(), width))
    assert len(said) <= width
    assert said.startswith("space fold")


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_help_and_the_palette_are_at_the_right_of_every_footer(size: tuple[int, int], tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        for key in "1234567890-":
            await pilot.press(key)
            await settle(pilot)
            assert bar(app, "footer").endswith(" ? help ^p"), key
        await pilot.press("1", "slash")  # a letter is text here
        await settle(pilot)
        assert bar(app, "footer").endswith(" f1 help ^p")


def test_cancel_is_offered_while_something_runs_and_running_is_not_offered_for_a_saved_session() -> None:
    assert "c cancel" in words(footer_keys((), KEYS, live(), 200))
    saved = words(footer_keys((), KEYS, live(live=False), 200))
    assert "cancel" not in saved and "r run" not in saved and "repro" not in saved


@pytest.mark.parametrize(
    ("event", "said", "level"),
    [
        (events.WorkerDied(cause="killed by SIGSEGV"), "killed by SIGSEGV", "error"),
        (events.ReproEnded(run=1, path="/x/r.py", reproduced=True, status=1), "reproduced (exit 1): ", "info"),
        (events.ReproEnded(run=1, path="/x/r.py", reproduced=False, status=0), "NOT reproduce", "warning"),
        (events.ReproEnded(run=1, path="/x/r.py"), "not tried", "warning"),
        (events.Noted(level="warning", text="the disk is full"), "the disk is full", "warning"),
    ],
)
def test_what_happens_once_is_said_once(event: SessionEvent, said: str, level: str) -> None:
    flash = flashes.of_event(event)
    assert flash is not None and said in flash[0] and flash[1] == level


def test_a_cancelled_run_says_how_to_go_on_and_is_no_error() -> None:
    failure = Failure(kind="cancelled", message="cancelled")
    flash = flashes.of_event(events.RunEnded(run=1, verdict="failed", seconds=1.0, failure=failure))
    assert flash == ("cancelled: r runs again", "info")


def test_the_header_tells_the_peak_of_memory_and_the_partitions_once_they_are_counted() -> None:
    left = words(header(under("resnet", FALL + PAD), 160)[0])
    assert left.endswith("⚠ 17 fallback · ◇ 435 pad · peak 50.8 MiB · 18 partitions")
    left = words(header(under("mlp_train", FALL.replace('"relu"', '"add"')), 160)[0])
    assert "forward + backward ⚠" in left and left.endswith("peak 130.9 KiB (backward) · 4 + 3 partitions")
    left = words(header(state_of("resnet"), 160)[0])
    assert "peak" not in left and "partitions" not in left


def test_partitions_are_told_only_where_something_falls_back() -> None:
    assert "partition" not in words(header(under("resnet", PAD), 160)[0])


def test_the_peak_is_that_of_the_graph_that_needs_the_most() -> None:
    assert "peak 130.9 KiB" in words(header(under("mlp_train", PAD), 160)[0])


@pytest.mark.parametrize(
    ("width", "costs"),
    [
        (60, ""),
        (69, ""),
        (79, " · 18 parts"),
        (80, " · 18 parts"),
        (110, " · 18 parts"),
        (120, " · peak 50.8 MiB · 18 partitions"),
    ],
)
def test_a_narrow_header_gives_up_the_peak_before_the_programs_name(width: int, costs: str) -> None:
    left, right = map(words, header(under("resnet", FALL + PAD + PEAK), width))
    assert left.endswith(f"inference ✘ 1  ⚠ 17  ◇ 435{costs}") and right.endswith("old rules: ⚠")
    assert "resnet.py" in left and ("idbg" in left) == (width > 60)
    assert ("unnamed (warn)" in left) == (width >= 110)
    assert len(left) + len(right) <= width


def test_no_sign_stands_beside_a_separator_that_looks_like_it() -> None:
    slow = PAD.replace('"pad"', '"slow"')
    assert "fallback · 435 slow" in words(header(under("resnet", FALL + slow), 160)[0])


def test_every_severity_has_a_style() -> None:
    assert set(SEVERITIES) <= Lines.LOOKS.keys()


def test_why_there_is_no_repro_is_said_once() -> None:
    failure = Failure(kind="input", message="no repro can be written: relu is no tensor\nmore")
    flash = flashes.of_event(events.ReproEnded(run=1, path="", failure=failure))
    assert flash == ("no repro can be written: relu is no tensor", "error")


def test_graph_breaks_and_recompiles_are_counted_in_the_header() -> None:
    state = state_of("resnet")
    assert "break" not in words(header(state, 160)[0])
    run = state.shown
    assert run is not None
    run.breaks += [GraphBreak("print"), GraphBreak("item")]
    run.recompiles.append(events.Recompiled(at=0.0, run=run.number, frame="0/1", reason="x.size(0) was 8"))
    assert "2 breaks, 1 recompile" in words(header(state, 160)[0])
    assert "2 breaks, 1 recompile" in words(header(state, 80)[0])


def test_a_comparison_ends_with_the_first_bad_kernel_and_not_with_rules() -> None:
    said, level = flashes.of_comparison(state_of("planted")) or ("", "")
    kernel = "cpp_fused__softmax__unsafe_view_add_mul_1"
    assert said == f"the first bad kernel is `{kernel}` (planted.py:18): enter goes there" and level == "error"
    assert flashes.of_comparison(state_of("resnet")) is None


def test_a_comparison_ends_with_what_it_did_not_judge_and_why_it_has_no_verdict() -> None:
    def said(**known: object) -> str:
        report = DiffReport(test="inductor", reference="eager", mode="float64", **known)  # type: ignore[arg-type]
        return (flashes.of_comparison(live(events.Compared(run=1, report=report))) or ("", ""))[0]

    unjudged = said(verdict="passed", notes=(Remark("random as eager", "inductor"),))
    assert unjudged == "inductor agrees with eager, random operators not judged"
    apart = said(verdict="waiting", not_comparable=Remark("other draws", "inductor"))
    assert apart.startswith("inductor and eager are not comparable: the compiled program draws other random numbers")


@pytest.mark.parametrize("width", [58, 78, 118, 158])
def test_violations_have_their_number_at_every_width(width: int) -> None:
    state = state_of("resnet")
    assert state.run is not None
    assert f"⚠ {state.run.violation_count} violations" in words(header(state, width)[1])


def test_a_narrow_header_says_in_which_graphs_the_violations_are_before_it_counts_kernels() -> None:
    """The count of the run beside that of the shown graph is a riddle without it."""
    state = state_of("resnet")
    wide, right = header(state, 160)
    enough = words(wide) + "  " + words(right).partition(" · ")[0]
    assert "(dynamo" in enough
    said = words(header(state, len(enough))[1])
    assert "(dynamo" in said and "kernel" not in said


@pytest.mark.parametrize("width", [36, 50, 70, 160])
def test_a_header_of_any_width_marks_what_was_not_judged(width: int) -> None:
    notes = (Remark("random as eager", "inductor"),)
    report = DiffReport(test="inductor", reference="eager", verdict="passed", mode="float64", notes=notes)
    ended = events.RunEnded(run=1, verdict="clean", seconds=1.0)
    graph = events.GraphCaptured(run=1, graph=Graph(GraphId("0/0", "inference"), ()))
    state = live(graph, events.Compared(run=1, report=report), ended)
    result = words(header(state, width)[1])
    assert result.startswith("✔") and "⚠" in result
