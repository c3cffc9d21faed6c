"""X on a real violation, from the key to the script in pane 9, with torch and processes of their own."""

import asyncio
from pathlib import Path

import pytest

from idbg.config.arguments import parse_program
from idbg.config.settings import Settings
from idbg.schema.programs import Target
from idbg.session.session import Session
from idbg_tui.app import IdbgApp
from idbg_tui.panes.repros.reading import ReadingScripts
from tests.harness.recorded import RECORDINGS
from tests.harness.screen import SMALL, ReadyApp, bar, settle, texts

RULES = 'name = "npu"\n[[rules]]\nkind = "unsupported_ops"\ndeny = ["cumsum"]\n'
PATIENCE = 240.0  # seconds, on a machine that is busy


async def comes(app: IdbgApp, words: str) -> None:
    """Wait until the footer says so."""
    async with asyncio.timeout(PATIENCE):
        while words not in bar(app, "footer"):
            await asyncio.sleep(0.1)


@pytest.mark.slow
@pytest.mark.usefixtures("warm")
async def test_X_on_a_violation_leaves_a_script_in_pane_9_that_was_seen_to_fail(tmp_path: Path) -> None:
    rules = tmp_path / "npu.toml"
    rules.write_text(RULES)
    program = parse_program(str(RECORDINGS / "minified.py"), module=False, argv=(), cwd=str(tmp_path))
    with Session(program, Target("mock"), output=tmp_path / "out", rules_path=rules) as session:
        app = ReadyApp(lambda: session, Settings())
        async with app.run_test(size=SMALL) as pilot:
            await settle(pilot)
            async with asyncio.timeout(PATIENCE):
                while app.state.run is None or app.state.run.ended is None:
                    await asyncio.sleep(0.1)
            await settle(pilot)
            await pilot.press("v", "X")
            await comes(app, "9 Repros has it")
            assert "1-minimal, 1 of 1 node" in bar(app, "footer")
            await pilot.press("9")
            await settle(pilot)
            (row,) = (line for line in texts(app, "repros") if line.strip().startswith("✔ "))
            assert "reproduces" in row
            await pilot.press("enter")
            await settle(pilot)
            assert isinstance(app.screen, ReadingScripts) and "cumsum" in app.screen.page.text.text
            (kept,) = session.history.repros
            assert kept.minified is not None and kept.minified.status == 1 and kept.minified.minimal
            assert app.screen.page.text.text == Path(kept.path).read_text()
