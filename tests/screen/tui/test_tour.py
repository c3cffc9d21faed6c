"""The tour goes on when a thing was really done, says the keys that are in force, and hides nothing."""

import re
from pathlib import Path

import pytest

from idbg.config.examples import TOUR, shipped
from idbg.config.settings import Settings
from idbg.schema import events
from idbg.schema.programs import Failure
from idbg_tui import keymap
from idbg_tui.app import IdbgApp
from idbg_tui.tour.progress import Tour
from idbg_tui.tour.steps import STEPS
from idbg_tui.tour.strip import TourStrip, wrapped
from tests.harness.live import FakeSession
from tests.harness.recorded import chain, state_of
from tests.harness.screen import SMALL, WIDE, ReadyApp, bar, settle, until

KEYS = keymap.in_force({})


def on_tour(settings: Settings | None = None) -> tuple[IdbgApp, FakeSession]:
    session = FakeSession()
    return ReadyApp(lambda: session, settings or Settings(), tour=True), session  # type: ignore[arg-type, return-value]


def compiled(session: FakeSession) -> None:
    session.emit(events.GraphCaptured(run=session.runs, graph=chain(3)))
    session.emit(events.RunEnded(run=session.runs, verdict="violations", seconds=1.0))


def step(app: IdbgApp) -> str:
    assert app.tour is not None
    return app.tour.tour.step.name


def strip(app: IdbgApp) -> list[str]:
    return [line.rstrip() for line in app.query_one(TourStrip).render().plain.split("\n")]


async def test_each_step_is_left_when_its_state_is_reached_and_not_before() -> None:
    app, session = on_tour()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await until(pilot, lambda: app.state.running)
        assert step(app) == "compile" and strip(app)[0].startswith("Tour 1 of 11")
        compiled(session)
        await until(pilot, lambda: step(app) == "walk")
        assert "✔ it has compiled" in strip(app)[0]
        await pilot.press("3")  # another key is not what was asked for
        assert step(app) == "walk"
        await pilot.press("1", "u")
        assert step(app) == "violation"
        await pilot.press("v")
        assert step(app) == "why it breaks"
        await pilot.press("3")
        assert step(app) == "edit a rule"
        await pilot.press("8", "space")
        await until(pilot, lambda: step(app) == "put it back")
        await pilot.press("space")
        await until(pilot, lambda: step(app) == "source")
        await pilot.press("2")
        assert step(app) == "compare"


async def test_a_comparison_counts_when_it_has_ended_and_a_repro_when_there_is_a_script() -> None:
    app, session = on_tour()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        compiled(session)
        await until(pilot, lambda: step(app) == "walk")
        await pilot.press(*["ctrl+n"] * 6)
        assert step(app) == "compare"
        await pilot.press("d")
        await until(pilot, lambda: session.calls[-1].endswith("compared"))
        report = state_of("attention").history.last
        assert report is not None and step(app) == "compare"
        diff = next(run.diff for run in state_of("planted").history.runs.values() if run.diff is not None)
        session.emit(events.Compared(run=session.runs, report=diff))
        await settle(pilot)
        assert step(app) == "compare"
        compiled(session)
        await until(pilot, lambda: step(app) == "the comparison")
        await pilot.press("0")
        assert step(app) == "why, and a repro"
        session.emit(events.ReproStarted(run=session.runs, node=INFERENCE_NODE, rule="unsupported_ops"))
        await settle(pilot)
        assert step(app) == "why, and a repro"
        ended = events.ReproEnded(run=session.runs, path="repros/a/repro.py", reproduced=True, status=1)
        session.emit(ended)
        await until(pilot, lambda: step(app) == "where to go next")


INFERENCE_NODE = chain(1).node_id("relu_0")


async def test_its_keys_go_on_and_back_and_take_it_away() -> None:
    app, session = on_tour()
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        compiled(session)
        await until(pilot, lambda: step(app) == "walk")
        await pilot.press("ctrl+n", "ctrl+n")
        assert step(app) == "why it breaks"
        await pilot.press("ctrl+r")
        assert step(app) == "violation"
        await pilot.press("8", "enter", "ctrl+n")  # also where letters are text
        assert step(app) == "why it breaks"
        await pilot.press("escape", "escape", "ctrl+t")
        await pilot.pause()
        assert not app.query(TourStrip) and "idbg tour" in bar(app, "footer")
        await pilot.press("ctrl+n")
        assert "no tour is shown" in bar(app, "footer")


async def test_a_step_gone_back_to_asks_for_the_thing_again() -> None:
    app, session = on_tour()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        compiled(session)
        await until(pilot, lambda: step(app) == "walk")
        await pilot.press("ctrl+n", "ctrl+n", "3")
        assert step(app) == "edit a rule"
        await pilot.press("ctrl+r")
        await pilot.pause()
        assert step(app) == "why it breaks"  # though the node's pane has the keys already
        await pilot.press("3")
        assert step(app) == "edit a rule"


@pytest.mark.parametrize("size", [SMALL, (120, 40), (200, 50)])
async def test_it_takes_few_lines_always_as_many_and_says_all_of_each_step(size: tuple[int, int]) -> None:
    app, session = on_tour()
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        compiled(session)
        await until(pilot, lambda: step(app) == "walk")
        place = app.query_one(TourStrip).region
        assert place.height <= 5 and place.bottom == size[1] - 1
        for _ in STEPS[2:]:
            await pilot.press("ctrl+n")
            words = " ".join(strip(app)[1:])
            assert app.query_one(TourStrip).region == place
            assert len(strip(app)) <= place.height and all(len(line) <= size[0] - 2 for line in strip(app))
            assert words.endswith(("press it.", ".")) and "{" not in words and "`" not in words


async def test_it_names_the_keys_that_the_settings_chose() -> None:
    app, session = on_tour(Settings(keys={"user": "o", "tour_skip": "ctrl+g"}))
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        compiled(session)
        await until(pilot, lambda: step(app) == "walk")
        assert "o goes to what uses" in " ".join(strip(app)) and "^g skip" in strip(app)[0]
        await pilot.press("ctrl+g")
        assert step(app) == "violation"


async def test_it_says_that_the_example_did_not_compile() -> None:
    app, session = on_tour()
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        await until(pilot, lambda: app.state.running)
        missing = Failure(kind="torch", message="no C++ compiler was found")
        session.emit(events.RunEnded(run=1, verdict="failed", seconds=1.0, failure=missing))
        await until(pilot, lambda: "did not compile" in strip(app)[1])
        assert step(app) == "compile"
        await pilot.press("r")
        compiled(session)
        await until(pilot, lambda: step(app) == "walk")


def test_every_action_that_a_step_names_is_one() -> None:
    named = {name for one in STEPS for name in re.findall(r"\{(\w+)\}", one.words)}
    assert named <= KEYS.keys() and len(named) > 8


def test_the_last_step_is_never_done_and_there_is_none_behind_it() -> None:
    tour = Tour()
    while tour.move(1):
        pass
    state = state_of("attention")
    assert tour.look(state, "graph") and not tour.look(state, "node")
    assert tour.step is STEPS[-1] and not tour.move(1)


def test_words_break_between_words_and_a_stop_stays_with_its_key() -> None:
    lines = wrapped("go on with {user}. Then `idbg tour` ends", KEYS, 16)
    assert [line.plain.rstrip() for line in lines] == ["go on with u.", "Then idbg tour", "ends"]


def test_the_example_of_the_tour_needs_nothing_but_torch(tmp_path: Path) -> None:
    (example,) = (example for example in shipped() if example.name == TOUR)
    assert example.is_model and example.lacks == () and example.about
    assert set(re.findall(r"^(?:import|from) (\w+)", example.path.read_text(), re.MULTILINE)) == {"torch"}
