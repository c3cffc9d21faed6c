"""Does the app follow a session that lives: runs that start, end, fail and are cancelled?"""

import pytest
from textual.widgets import Input

from idbg.schema import events
from idbg.schema.programs import Failure, Program
from idbg_tui.choices import OURS
from idbg_tui.panes.graph.pane import GraphPane
from idbg_tui.widgets.picker import Choices
from tests.harness.live import living
from tests.harness.recorded import chain
from tests.harness.screen import WIDE, bar, settle, texts, until


async def test_the_session_is_started_after_the_first_paint_and_a_graph_is_shown_as_it_comes() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.state.running)
        assert session.calls == ["start", "run aot warn"]
        assert "compiling" in "".join(texts(app, "graph")) and "compiling" in "".join(texts(app, "findings"))
        session.emit(events.GraphCaptured(run=1, graph=chain(3)))
        await settle(pilot)
        assert "relu_2" in "".join(texts(app, "graph"))
        assert "3 reject" in bar(app, "header")


async def test_many_events_are_shown_at_once_and_not_one_by_one() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.state.running)
        shown = []
        app.show, show = lambda: shown.append(show()), app.show  # type: ignore[method-assign]
        for number in range(500):
            session.emit(events.PhaseChanged(run=1, phase=f"phase {number}"))
        await settle(pilot)
        assert 1 <= len(shown) < 10
        assert "phase 499" in bar(app, "footer")


async def test_strict_and_backend_are_one_key_and_run_again() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.state.running)
        await pilot.press("semicolon")
        assert session.calls[-1] == "run aot strict"
        await pilot.press("b")
        await pilot.pause()
        await pilot.press("down", "enter")
        await pilot.pause()
        assert session.calls[-1] == "run mock strict"


async def test_a_broken_backend_is_listed_with_its_error_and_choosing_it_says_so() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.state.running)
        known = (events.KnownBackend("npu", "an NPU"), events.KnownBackend("wreck", error="ImportError: no driver"))
        session.emit(events.WorkerStarted(pid=1, torch="2", python="3", devices=(), seconds=1.0, backends=known))
        await settle(pilot)
        await pilot.press("b")
        await pilot.pause()
        lines = app.screen.query_one(Choices)
        npu, wreck = len(OURS), len(OURS) + 1
        assert "npu" in lines.line(npu).text and "an NPU" in lines.line(npu).text
        assert "wreck" in lines.line(wreck).text and "ImportError: no driver" in lines.line(wreck).text
        assert [row[1][1] for row in (lines.row(npu, 80), lines.row(wreck, 80))] == ["strong", "dim"]
        calls = len(session.calls)
        await pilot.press("pagedown", "enter")
        await pilot.pause()
        assert "the backend wreck cannot be used: ImportError: no driver" in bar(app, "footer")
        assert len(session.calls) == calls
        await pilot.press("b")
        await pilot.pause()
        await pilot.press("pagedown", "up", "enter")
        await pilot.pause()
        assert session.calls[-1] == "run npu warn"


async def test_control_c_cancels_and_a_second_one_quits() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.state.running)
        await pilot.press("ctrl+c")
        assert session.calls[-1] == "cancel" and app.is_running
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert app._exit


async def test_a_failed_run_says_why_and_the_screen_stays_usable() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.state.running)
        failure = Failure(kind="user", type="SyntaxError", message="invalid syntax (m.py, line 3)")
        session.emit(events.RunEnded(run=1, verdict="failed", seconds=0.5, failure=failure))
        await settle(pilot)
        assert "invalid syntax (m.py, line 3)" in bar(app, "footer")
        assert "SyntaxError" in bar(app, "header")
        empty = " ".join(texts(app, "graph"))
        assert "invalid syntax (m.py, line 3)" in empty and "7 Log has the rest" in empty
        await pilot.press("r")
        assert session.calls[-1] == "run aot warn"


async def test_an_edit_recompiles_once_the_keys_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("idbg_tui.controllers.compiling.RECOMPILE", 0.2)
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.state.running)
        for multiple in (2, 4, 8):
            session.edit_rules(f'[[rules]]\nkind = "alignment"\nmultiple = {multiple}\n')
            await pilot.pause(0.06)
        assert session.runs == 1
        await until(pilot, lambda: session.runs == 2)
        assert session.runs == 2


async def test_x_reproduces_the_selected_nodes_violation_and_says_how_it_went() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.state.running)
        session.emit(events.GraphCaptured(run=1, graph=chain(3)))
        await settle(pilot)
        await pilot.press("x")
        await pilot.pause()
        assert session.calls[-1] == "repro relu_0 unsupported_ops"
        session.emit(events.ReproEnded(run=1, path="/tmp/repro.py", reproduced=True, status=1))
        await settle(pilot)
        assert "reproduced (exit 1): /tmp/repro.py" in bar(app, "footer")


async def test_typing_in_the_filter_presses_no_key_of_the_program() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.state.running)
        session.emit(events.GraphCaptured(run=1, graph=chain(3)))
        await settle(pilot)
        await pilot.press("slash", *"qsrz8")
        assert app.is_running and session.runs == 1 and not app.body.zoomed
        assert app.query_one(GraphPane).query_one(Input).value == "qsrz8"


async def test_a_run_that_another_one_took_the_place_of_ends_without_a_word() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.state.running)
        cancelled = Failure(kind="cancelled", message="cancelled")
        session.emit(events.RunEnded(run=1, verdict="failed", seconds=0.5, failure=cancelled))
        await settle(pilot)
        assert "cancelled" not in bar(app, "footer")


async def test_what_was_said_of_a_run_goes_when_the_next_one_starts() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.state.running)
        await pilot.press("c")
        assert "cancelling" in bar(app, "footer")
        cancelled = Failure(kind="cancelled", message="cancelled")
        session.emit(events.RunEnded(run=1, verdict="failed", seconds=0.5, failure=cancelled))
        await until(pilot, lambda: "cancelled: r runs again" in bar(app, "footer"))
        session.emit(events.RunStarted(run=2, program=Program("m.py"), target=session.target))
        await until(pilot, lambda: "cancelled" not in bar(app, "footer"))


async def test_an_edit_that_changes_no_rule_does_not_recompile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("idbg_tui.controllers.compiling.RECOMPILE", 0.05)
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.state.running)
        session.edit_rules(session.target.rules + "# a comment\n")
        await settle(pilot)
        assert session.runs == 1


async def test_one_key_compares_and_the_pane_says_which_side_runs() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.state.running)
        await pilot.press("d")
        assert session.calls[-1] == "run aot warn compared"
        session.emit(events.SideStarted(run=session.runs, side="float64"))
        await until(pilot, lambda: "comparing: float64" in texts(app, "kernel_diff")[0])
        await pilot.press("D")
        assert session.calls[-1] == "run aot warn kernels compared"
