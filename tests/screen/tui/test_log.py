"""Does the log tell what happened, in order, with what the programs printed, and stay small?"""

from pathlib import Path

import pytest

from idbg.format.plain_text import uncoloured
from idbg.schema import events
from idbg.schema.decisions.dynamo import GraphBreak
from idbg.schema.diff import Comparison
from idbg.schema.programs import Failure, Program, Target
from idbg.schema.repros import Sought
from idbg.schema.runs import Run, fold
from idbg_tui.messages import CopyRequest, Flash, LineChosen
from idbg_tui.panes.log.event_lines import event_lines
from idbg_tui.panes.log.pane import LogPane
from idbg_tui.panes.log.rows import LIMIT, LogLines
from idbg_tui.state.state import State
from idbg_tui.widgets.lines import Lines
from tests.harness import repro_events
from tests.harness.pane_host import Host, session_events


def output(text: str, stream: str = "stdout") -> events.OutputWritten:
    return events.OutputWritten(run=1, stream=stream, text=text)  # type: ignore[arg-type]


def texts(*batch: events.SessionEvent) -> list[str]:
    log = LogLines()
    started = events.RunStarted(run=1, program=Program("m.py"), target=Target())
    log.take(batch, fold([started, *batch]).runs)
    return [line.content.text for line in log.lines]


def failed(**what: str) -> events.RunEnded:
    return events.RunEnded(run=1, verdict="failed", seconds=2.0, failure=Failure(**what))  # type: ignore[arg-type]


# what is told


def test_a_run_is_told_from_its_start_to_its_verdict() -> None:
    assert texts(*session_events("/home/u/model.py")) == [
        "── run 1 ── model.py · aot · small (warn)",
        "frame 0/0  f  model.py:4",
        "graph 0/0 dynamo: 3 nodes",
        "graph 0/0 inference: 6 nodes",
        "graph 0/0 post_grad (inference): 6 nodes",
        "code 0/0 (inference): 2 kernels",
        "✔ run 1: no rule broken after 1.5 s",
    ]


def test_a_failure_says_its_message_first_then_the_hint_then_the_users_traceback() -> None:
    what = {"type": "ValueError", "message": "bad size", "hint": "look there", "traceback": "Traceback\n  x\n"}
    assert texts(failed(kind="user", **what)) == [
        "✘ run 1: failed after 2.0 s",
        "  your program: ValueError: bad size",
        "  → look there",
        "    Traceback",
        "      x",
    ]


def test_a_cancelled_run_is_not_called_failed() -> None:
    assert texts(failed(kind="cancelled", message="cancelled by the user"))[0] == "… run 1: cancelled after 2.0 s"


def test_a_dead_worker_is_told_with_its_last_output_and_what_to_do() -> None:
    died = events.WorkerDied(cause="killed by SIGSEGV", last_output="one\ntwo\n")
    first, *others = texts(died)
    assert first == "✘ the worker died: killed by SIGSEGV"
    assert others == ["  r starts another and runs again", "    one", "    two"]


def test_long_phases_are_told_with_their_time_and_short_ones_are_not() -> None:
    begun = events.PhaseChanged(run=1, phase="codegen")
    long, short = (events.PhaseChanged(run=1, phase="codegen", seconds=seconds) for seconds in (12.43, 0.01))
    assert texts(begun, long, short) == ["    12.4 s  codegen"]


def test_what_a_comparisons_own_sides_compile_is_no_recompile_in_the_log() -> None:
    run = Run(1, Program("m.py"), Target(), 0.0, Comparison())
    ours = events.Recompiled(run=1, frame="0/1", reason="0/0: BACKEND_MATCH failure")
    theirs = events.Recompiled(run=1, frame="0/1", reason="0/0: tensor 'x' size mismatch")
    assert list(event_lines(ours, run)) == []
    assert "recompiled 0/1" in next(event_lines(theirs, run)).text


@pytest.mark.parametrize(
    ("reproduced", "words"),
    [(True, "✔ r/repro.py reproduces"), (False, "✘ r/repro.py does not reproduce"), (None, "· r/repro.py not tried")],
)
def test_a_repro_is_told_with_its_path_and_whether_it_reproduces(reproduced: bool | None, words: str) -> None:
    ended = events.ReproEnded(run=1, path="r/repro.py", reproduced=reproduced, output="said\n")
    assert texts(ended) == [words, "    said"]


def test_a_kind_of_event_that_the_log_does_not_tell_adds_nothing() -> None:
    assert list(event_lines(events.ViolationsFound(run=1, violations=()))) == []


# output


def test_output_is_cut_at_newlines_however_it_arrives() -> None:
    assert texts(output("on"), output("e\ntwo\n\nthr"), output("ee")) == ["one", "two", "", "three"]


def test_the_streams_do_not_mix_within_a_line() -> None:
    assert texts(output("out"), output("err\n", "stderr"), output("put\n")) == ["output", "err"]


def test_a_carriage_return_leaves_the_last_state_of_the_line() -> None:
    assert texts(output("10 %\r"), output("20 %\r"), output("30 %\ndone\r\n")) == ["30 %", "done"]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b[2J\x1b[Hhome", "home"),
        ("a\x08b\x00c\x9b", "abc"),
        ("\x1b(Bplain", "plain"),
    ],
)
def test_no_control_sequence_reaches_the_terminal(raw: str, shown: str) -> None:
    assert uncoloured(raw) == shown


def test_the_prefix_of_torchs_log_is_folded_and_copied_whole() -> None:
    prefix = "W1121 12:00:27.320000 8310 torch/utils/cpp_extension.py:183] [0/0] "
    log = LogLines()
    for piece in (f"{prefix}No CUDA", " runtime is found\n", f"{prefix}as there is none\nW1121 is mine\n"):
        log.take([output(piece, "stderr")], {})
    assert [line.content.text for line in log.lines] == [
        "⚠ No CUDA runtime is found  ([0/0] cpp_extension.py:183)",
        "  as there is none",
        "W1121 is mine",
    ]
    assert log.lines[0].copied == f"{prefix}No CUDA runtime is found"


def test_an_escape_sequence_cut_in_two_by_the_pipe_is_still_removed() -> None:
    assert texts(output("a\x1b[3"), output("1mb\n")) == ["ab"]


def test_memory_is_bounded_and_the_last_lines_are_kept() -> None:
    log = LogLines()
    for start in range(0, 100_000, 1_000):
        log.take([output("".join(f"{number}\n" for number in range(start, start + 1_000)))], {})
    assert LIMIT <= len(log.lines) <= LIMIT * 1.1
    assert log.lines[-1].content.text == "99999"
    assert log.dropped + len(log.lines) == 100_000


def test_a_line_that_never_ends_takes_bounded_memory() -> None:
    log = LogLines()
    for _ in range(100):
        log.take([output("x" * 10_000)], {})
    assert len(log.lines) == 1
    assert len(log.lines[0].content.text) <= LIMIT + 10_000


# the pane


def running() -> State:
    state = State()
    state.apply([events.RunStarted(run=1, program=Program("m.py"), target=Target())])
    return state


async def test_the_log_follows_its_end_until_the_cursor_leaves_it() -> None:
    state, pane = running(), LogPane()
    async with Host(pane, state).run_test(size=(60, 12)) as pilot:
        await pilot.pause()
        rows = pane.query_one(Lines)
        for number in range(100):
            state.apply([output(f"{number}\n")])
        pane.show(state)
        await pilot.pause()
        assert rows.cursor == 100
        assert rows.render_line(rows.size.height - 1).text.rstrip() == " │ 99"
        await pilot.press("k")
        state.apply([output("more\n")])
        pane.show(state)
        await pilot.pause()
        assert rows.cursor == 99
        await pilot.press("G")
        state.apply([output("again\n")])
        pane.show(state)
        await pilot.pause()
        assert rows.cursor == 102


async def test_enter_on_a_line_about_the_users_code_goes_there_and_y_copies_the_whole_block() -> None:
    state, pane = running(), LogPane()
    state.apply([events.GraphBroke(run=1, graph_break=GraphBreak("print() is\nnot traced", "/a/m.py", 7, "0/0"))])
    app = Host(pane, state)
    async with app.run_test(size=(60, 12)) as pilot:
        await pilot.pause()
        await pilot.press("y", "k", "k", "enter")
    assert [message.text for message in app.of(CopyRequest)] == [
        "⚠ graph break  m.py:7\n    print() is\n    not traced"
    ]
    assert [(message.file, message.line) for message in app.of(LineChosen)] == [("/a/m.py", 7)]


async def test_a_failed_run_marks_the_panes_tab() -> None:
    state, pane = running(), LogPane()
    async with Host(pane, state).run_test(size=(60, 12)) as pilot:
        await pilot.pause()
        assert pane.heading().plain == "Log"
        state.apply([failed(kind="torch", message="no")])
        pane.show(state)
        assert pane.heading().plain == "Log ✘"


async def test_an_empty_log_says_what_would_fill_it() -> None:
    pane = LogPane()
    async with Host(pane, State()).run_test(size=(80, 12)) as pilot:
        await pilot.press("y", "enter", "G", "k")
        assert "r compiles the program" in pane.query_one(Lines).render_line(0).text


async def test_a_failure_is_shown_from_its_message_on_and_the_next_run_is_followed_again() -> None:
    state, pane = running(), LogPane()
    async with Host(pane, state).run_test(size=(60, 12)) as pilot:
        await pilot.pause()
        state.apply([output("a\nb\n"), failed(kind="user", message="bad", traceback="x\n" * 50)])
        pane.show(state)
        await pilot.pause()
        rows = pane.query_one(Lines)
        assert rows.render_line(0).text.strip() == "✘ run 1: failed after 2.0 s"
        assert rows.render_line(1).text.strip() == "your program: bad"
        state.apply([events.RunStarted(run=2, program=Program("m.py"), target=Target())])
        pane.show(state)
        await pilot.pause()
        assert rows.cursor == rows.row_count - 1


async def test_a_failure_is_wrapped_to_the_width_and_nothing_of_it_is_cut() -> None:
    state, pane = running(), LogPane()
    words = " ".join(f"word{number}" for number in range(60)) + " /a/path/" + "x" * 90
    state.apply([failed(kind="user", type="E", message=words, repro="/a/repro.py"), output("y" * 200)])
    async with Host(pane, state).run_test(size=(60, 30)) as pilot:
        await pilot.pause()
        rows = pane.query_one(Lines)
        shown = [rows.render_line(y).text.strip() for y in range(rows.row_count)]
        assert "".join("".join(shown[2:]).split()).startswith("".join(f" your program: E: {words}".split()))
        assert any(line == "repro: /a/repro.py" for line in shown)
        assert rows.row_count < 20, "output is not wrapped"
        before = rows.row_count
        await pilot.resize_terminal(120, 30)
        await pilot.pause()
        assert rows.row_count < before


def test_torchs_own_error_comes_before_what_it_was_doing_when_it_met_it() -> None:
    message = "RuntimeError when making fake tensor call\n  Explanation: x\n  got RuntimeError('bad shapes')"
    told = texts(failed(kind="torch", type="TorchRuntimeError", message=message))
    assert told[1] == "  torch: RuntimeError: bad shapes"
    assert [line.strip() for line in told[2:]] == [line.strip() for line in message.split("\n")]


async def test_slash_finds_in_the_log_and_its_letters_do_nothing_else() -> None:
    state, pane = running(), LogPane()
    state.apply([output("".join(f"line {number}\n" for number in range(100)))])
    app = Host(pane, state)
    async with app.run_test(size=(60, 12)) as pilot:
        await pilot.pause()
        await pilot.press("slash", *"ine 7", "enter")
        rows = pane.query_one(Lines)
        assert rows.cursor == 8, "from the end, round to the first"
        await pilot.press("n")
        assert rows.cursor == 71
        await pilot.press("N", "slash", *"qrczz", "enter")
        assert rows.cursor == 8
    assert [message.text for message in app.of(Flash)][-1] == "nothing here has qrczz"


def test_a_search_is_told_step_by_step_and_its_end_with_all_that_was_found(tmp_path: Path) -> None:
    state = State(live=False)
    state.apply(
        [events.RunStarted(run=1, program=Program("m.py"), target=state.target), *repro_events.session(tmp_path)]
    )
    state.apply([events.MinifyStarted(run=1, sought=Sought("wrong"))])
    steps = [("prefix", 1), ("prefix", 2), ("cone", 3), ("cone", 4)]
    state.apply(
        [events.MinifyProgressed(run=1, progress=repro_events.progress(calls=n, doing=what)) for what, n in steps]
    )
    state.apply([events.MinifyEnded(run=1, failure=Failure(kind="idbg", message="no graph has it", hint="ask again"))])
    log = LogLines()
    log.take(state.events, state.history.runs)
    told = [line.content.text for line in log.lines]
    assert [text.strip().partition(":")[0] for text in told if "of 300 tries" in text] == ["prefix", "prefix", "cone"]
    text = "\n".join(told)
    assert "looking for a small script of unsupported-op at convolution_1" in text
    assert "the nearest that does not fail (it lacks cumsum)" in text and "met on the way: TypeError" in text
    assert "it was stopped: X on it in 9 Repros goes on" in text
    assert "the search did not come to its end" in text and "no graph has it" in text


async def test_long_lines_of_output_are_wrapped_on_request() -> None:
    state = running()
    state.apply([output("a long line " * 20 + "its end\n")])
    pane = LogPane()
    app = Host(pane, state)
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        pane.show(state)
        await pilot.pause()

        def ends() -> bool:
            lines = pane.query_one(Lines)
            return any("its end" in lines.line(y).text for y in range(lines.size.height))

        assert not ends()
        await pilot.press("backslash")
        await pilot.pause()
        assert ends()
        await pilot.press("backslash")
        await pilot.pause()
        assert not ends()
