"""A run that nobody asked for, of a start or of an edit of the rules, takes no request of the user's away."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.events import Key

from idbg.bench.job import BenchJob
from idbg.config.settings import Settings
from idbg.schema import events
from idbg.schema.diff import Comparison
from idbg.schema.programs import Program, Target
from idbg.session.session import Session
from idbg_tui.app import IdbgApp
from tests.harness.fake_sessions import Open, fake_sessions, until

RULES = 'name = "mine"\n[[rules]]\nkind = "alignment"\nmultiple = 16\n'


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Make sessions whose program behaves as its path says (see fake_child)."""
    with fake_sessions(tmp_path / "out", Target(backend="inductor")) as make:
        yield make


def ends(session: Session) -> dict[int, tuple[bool, str]]:
    """Whether each run was compared, and how it ended."""
    runs = session.history.runs.values()
    return {
        run.number: (run.comparison is not None, run.failure.kind if run.failure else run.ended or "") for run in runs
    }


def test_a_run_for_the_same_target_that_goes_on_is_the_run(opened: Open) -> None:
    session = opened("print")
    assert session.run(comparison=Comparison()) == 1
    assert session.run(asked=False) == 1
    assert session.wait(60)
    assert ends(session) == {1: (True, "clean")}


def test_new_rules_wait_for_a_comparison_and_the_last_of_them_is_run(opened: Open) -> None:
    session = opened("hang")
    session.run(comparison=Comparison(seconds=0.5))
    until(lambda: session.history.runs[1].side == "inductor")
    session.program = Program(path="print")
    for multiple in ("16", "32"):
        session.edit_rules(RULES.replace("16", multiple))
        last = session.run(asked=False)
    assert set(ends(session)) == {1}
    assert session.wait(60)
    assert session.history.runs[1].failure is not None
    assert "took longer than 0.5 s" in session.history.runs[1].failure.message, "it was not cancelled"
    assert set(ends(session)) == {1, last} and ends(session)[last] == (False, "clean")
    assert "multiple = 32" in session.history.runs[last].target.rules


def test_a_comparison_that_waits_is_not_dropped(opened: Open) -> None:
    session = opened("hang")
    session.run()
    session.program = Program(path="print")
    compared = session.run(replace(session.target, strict=True), Comparison())
    session.edit_rules(RULES)
    last = session.run(asked=False)
    assert session.wait(60)
    assert ends(session) == {1: (False, "cancelled"), compared: (True, "clean"), last: (False, "clean")}


def test_a_measurement_goes_on_and_the_run_comes_after_it(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(job: BenchJob) -> None:
        time.sleep(0.3)

    monkeypatch.setattr(BenchJob, "_measured", measure)
    session = opened("print")
    session.bench([])
    session.run(asked=False)
    assert session.wait(60)
    told = [event for event in session.events if isinstance(event, events.BenchEnded | events.RunStarted)]
    assert isinstance(told[0], events.BenchEnded) and told[0].failure is None
    assert isinstance(told[1], events.RunStarted)


def test_a_run_that_is_asked_for_takes_the_place_of_a_comparison(opened: Open) -> None:
    session = opened("hang")
    session.run(comparison=Comparison(seconds=30))
    session.program = Program(path="print")
    session.run()
    assert session.wait(60)
    assert ends(session) == {1: (True, "cancelled"), 2: (False, "clean")}


async def test_a_comparison_asked_for_before_the_session_is_started_is_the_first_run(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = IdbgApp._begin

    async def pressed_first(app: IdbgApp) -> None:
        app.post_message(Key("D", "D"))
        await asyncio.sleep(0.05)
        await begin(app)

    monkeypatch.setattr(IdbgApp, "_begin", pressed_first)
    session = opened("print")
    app = IdbgApp(lambda: session, Settings())
    async with app.run_test(size=(160, 45)) as pilot:
        for _ in range(200):
            if app.ready and app.state.run is not None and app.state.run.ended:
                break
            await pilot.pause(0.03)
    assert ends(session) == {1: (True, "clean")}
