"""Does leaving the program lose nothing that was not saved, and never hold the user back?"""

from pathlib import Path

import pytest

from idbg.schema import events
from idbg.schema.programs import Program
from tests.harness.recorded import app_of
from tests.harness.screen import SMALL, bar, settle


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_quitting_with_unsaved_rules_warns_first_and_again_after_another_edit(tmp_path: Path, key: str) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        for _ in range(2):
            await pilot.press("8", "plus", key)
            await pilot.pause()
            assert not app._exit and "unsaved rules: q again quits, 8 then ^s saves" in bar(app, "footer")
        await pilot.press(key)
        await pilot.pause()
        assert app._exit


async def test_a_second_control_c_while_a_compile_runs_quits_at_once_with_unsaved_rules_too(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        app.state.live = True
        app.state.apply([events.RunStarted(run=9, program=Program("m.py"), target=app.session.target)])
        assert app.state.running
        await pilot.press("8", "plus", "ctrl+c")
        assert not app._exit
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert app._exit


async def test_leaving_is_said_before_it_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        with monkeypatch.context() as patched:
            left: list[str] = []
            patched.setattr(app, "exit", lambda: left.append(bar(app, "footer")))
            await pilot.press("q")
            await pilot.pause()
            assert len(left) == 1 and "leaving" in left[0]
