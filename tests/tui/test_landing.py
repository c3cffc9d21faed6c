"""Where is the screen when something has ended: on what the user waited for?"""

from pathlib import Path

from idbg_tui.panes.kernel_diff.lines import DiffLines
from tests.harness.recorded import app_of
from tests.harness.screen import WIDE, settle


async def test_a_comparison_lands_on_the_first_bad_kernel(tmp_path: Path) -> None:
    app = app_of("planted", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        lines = app.body.query_one(DiffLines)
        assert lines.culprit is not None and lines.items[lines.cursor] is lines.culprit
        await pilot.press("5", "g")
        app.state.versions.run += 1
        app.show()
        await settle(pilot)
        assert lines.cursor == 0  # once: what the user moved stays
