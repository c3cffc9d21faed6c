"""What do keys answer before there is anything to answer about? That it is not known yet."""

import asyncio
import threading
from pathlib import Path

import pytest
import textual.events

from idbg.config.settings import Settings
from idbg.schema import events
from idbg.schema.programs import NO_ACCELERATOR, Failure, Target
from idbg.session.session import Session
from idbg_tui.app import IdbgApp
from idbg_tui.panes.findings.pane import why_no_findings
from idbg_tui.panes.graph.title import why_empty
from idbg_tui.state.state import State
from idbg_tui.status_bar.header import header
from idbg_tui.widgets.listing import Listing
from tests.harness.live import living
from tests.harness.recorded import app_of, chain
from tests.harness.screen import WIDE, bar, settle, until

KEYS = ("x", "v", "V", "i", "u", "right_square_bracket", "right_curly_bracket", "y", "slash")
IN_SOURCE = ("o", "comma", "full_stop")
DENIED = (
    "breaks no rule",
    "breaks a rule",
    "did not fail",
    "no inputs",
    "uses this node",
    "further",
    "heading",
    "only a",
)


@pytest.mark.parametrize("starting", [True, False], ids=["before a run", "before a graph"])
async def test_before_a_graph_every_key_says_that_it_is_not_known_yet(
    monkeypatch: pytest.MonkeyPatch, starting: bool
) -> None:
    app, session = living()
    if starting:
        monkeypatch.setattr(session, "run", lambda *_, **__: 0)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await until(pilot, lambda: app.state.running is not starting)
        why = "nothing compiled yet" if starting else "nothing captured yet"
        for pane, keys in (("1", KEYS), ("2", IN_SOURCE)):
            await pilot.press(pane)
            for key in keys:
                await pilot.press(key)
                await settle(pilot)
                said = bar(app, "footer")
                assert why in said and not any(words in said for words in DENIED), (key, said)
        for key in ("M", "P"):
            await pilot.press(key)
            await settle(pilot)
            assert isinstance(app.screen, Listing) and why in app.screen.lines.text(0)
            await pilot.press("escape")
        await pilot.press("8", "right_square_bracket", "right_square_bracket")
        await settle(pilot)
        assert why in app.body.panes["rules"].relax.empty  # type: ignore[attr-defined]
        assert not any("repro" in call for call in session.calls)


async def test_a_compile_that_goes_on_has_not_kept_from_failing() -> None:
    app, session = living()
    session.target = session.target.__class__(rules='[[rules]]\nkind = "unsupported_ops"\ndeny = ["mm"]\n')
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.state.running)
        session.emit(events.GraphCaptured(run=1, graph=chain(3)))
        await settle(pilot)
        await pilot.press("x")
        assert "the compile has not ended" in bar(app, "footer")
        await pilot.press("v")
        assert "captured so far" in bar(app, "footer")
        session.emit(events.RunEnded(run=1, verdict="clean", seconds=1.0))
        await settle(pilot)
        await pilot.press("X")
        assert "nothing fails at relu_" in bar(app, "footer")


async def test_a_run_that_was_cancelled_did_not_fail() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.state.running)
        failure = Failure(kind="cancelled", message="cancelled")
        session.emit(events.RunEnded(run=1, verdict="failed", seconds=1.0, failure=failure))
        await settle(pilot)
        await pilot.press("v")
        assert "the run was cancelled before one was" in bar(app, "footer")


async def test_while_a_saved_session_is_read_nothing_is_said_of_what_is_in_it(tmp_path: Path) -> None:
    reading = threading.Event()

    def read() -> Session:
        reading.wait(30)
        return app_of("attention", tmp_path)._opener()

    app = IdbgApp(read, Settings())
    async with app.run_test(size=WIDE) as pilot:
        try:
            for key in "123":
                app.post_message(textual.events.Key(key, key))
                await asyncio.sleep(0.05)
                screen = app.export_screenshot().replace("&#160;", " ")
                assert not app.ready and "1 Graph" in screen
                assert "PlaceholderPane" not in screen and "no graph" not in screen and "r compiles" not in screen
        finally:
            reading.set()
        await until(pilot, lambda: app.ready and app.body.current == "node")  # the keys were kept
        assert not app.state.beginning


def test_before_the_first_run_it_is_said_that_it_comes_by_itself() -> None:
    state = State(beginning=True)
    assert "will compile the program" in why_empty(state)
    state.apply([events.WorkerDied(cause="killed", last_output="")])
    assert why_empty(state) == "no graph yet: r compiles the program"


def test_before_the_first_run_no_pane_asks_for_a_key_and_the_header_names_no_accelerator() -> None:
    state = State(live=True, beginning=True, target=Target(accelerator=NO_ACCELERATOR))
    assert "r runs" not in why_no_findings(state) and why_no_findings(state).startswith("compiling")
    left, _ = header(state, 200)
    assert "no accelerator" in "".join(text for text, _ in left) and "(warn)" not in "".join(text for text, _ in left)
    state.begun()
    assert why_no_findings(state) == "not compiled yet: r runs"
