"""Is what a recompile suggests run, told of, and not left in force?"""

from msgspec.structs import replace

from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg_tui.panes.why.pane import WhyPane
from idbg_tui.widgets.listing import Reading
from tests.harness.live import FakeSession, living
from tests.harness.recorded import log
from tests.harness.screen import WIDE, bar, settle, until


def replay(session: FakeSession, run: int, *, without: str = "") -> None:
    """Tell what was recorded as another run's, but for the frames of this number after the first compile."""
    for event in log("breaking"):
        if isinstance(event, events.RunStarted | events.SessionOpened | events.WorkerStarted):
            continue
        if without and _again(event, without):
            continue
        session.emit(replace(event, run=run) if hasattr(event, "run") else event)


def _again(event: SessionEvent, number: str) -> bool:
    frame = getattr(event, "frame", "")
    name = frame if isinstance(frame, str) else frame.id
    return name.startswith(f"{number}/") and name != f"{number}/0"


async def test_t_runs_with_the_suggestion_tells_what_changed_and_leaves_the_target_as_it_was() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.state.running)
        replay(session, 1)
        await until(pilot, lambda: not app.state.running)
        await settle(pilot)
        pane = app.query_one(WhyPane)
        pane.choose_view("recompiles")
        await pilot.press("0")
        before = session.target
        asked = next(at for at, row in enumerate(pane.lines.items) if row.again is not None)
        pane.lines.go(asked)
        await pilot.press("t")
        await until(pilot, lambda: session.runs == 2 and app.state.running)
        tried = app.state.history.runs[2].target
        assert tried.dynamic_sources == ("L['x']",) and session.target == before
        replay(session, 2, without="3")
        await until(pilot, lambda: isinstance(app.screen, Reading))
        assert isinstance(app.screen, Reading)
        told = [app.screen.lines.text(at) for at in range(len(app.screen.lines.items))]
        whole = " ".join(" ".join(told).split())
        assert "8 → 6 compiles" in whole and "3 → 1 recompile" in whole
        assert any("mark_dynamic(x, 0)" in row for row in told) and any("dynamic_sources" in row for row in told)


async def test_a_row_with_nothing_to_try_says_so() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.state.running)
        replay(session, 1)
        await settle(pilot)
        await pilot.press("0", "t")
        await settle(pilot)
        assert "nothing to try here" in bar(app, "footer") and session.runs == 1


async def test_the_footer_offers_to_try_only_where_a_row_suggests_something() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.state.running)
        replay(session, 1)
        await settle(pilot)
        pane = app.query_one(WhyPane)
        pane.choose_view("recompiles")
        await pilot.press("0")
        tried = {row.again is not None: at for at, row in enumerate(pane.lines.items)}
        assert len(tried) == 2
        for is_offered, at in tried.items():
            pane.lines.go(at)
            await settle(pilot)
            assert (("t", "try it") in pane.HINTS) == is_offered
            assert ("t try it" in bar(app, "footer")) == is_offered, bar(app, "footer")
