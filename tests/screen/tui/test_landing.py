"""Where is the screen when something has ended: on what the user waited for?"""

from pathlib import Path

from idbg.reports.diff import summary
from idbg.views.blame import faithful_to
from idbg_tui.panes.kernel_diff.pane import DiffLines
from idbg_tui.state import queries
from idbg_tui.widgets.side_by_side import Page, SideBySide
from tests.harness.recorded import app_of, state_of
from tests.harness.screen import WIDE, settle, texts


async def test_a_comparison_lands_on_the_first_bad_kernel(tmp_path: Path) -> None:
    app = app_of("planted", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        lines = app.body.query_one(DiffLines)
        compared = queries.compared_run(app.state)
        assert compared is not None and compared.diff is not None and compared.diff.culprit is not None
        assert lines.items[lines.cursor].key == ("launch", compared.diff.first_bad_kernel)
        await pilot.press("5", "g")
        app.state.versions.run += 1
        app.show()
        await settle(pilot)
        assert lines.cursor == 0  # once: what the user moved stays


async def test_a_recorded_comparison_that_a_pass_made_wrong_is_told_whole(tmp_path: Path) -> None:
    app = app_of("wrong_pass", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("5", "z")
        await settle(pilot)
        rows = texts(app, "kernel_diff")
        assert rows[1].strip() == (
            "wrong since post-grad: `mul` (tests/recordings/wrong_pass.py:29), made by post_grad_custom_post_pass; "
            "kernels are faithful"
        )
        lines = app.body.query_one(DiffLines)
        assert "✘ post-grad" in rows[lines.cursor] and "(tests/recordings/wrong_pass.py:10)" in rows[lines.cursor + 1]
        await pilot.press("p")
        await settle(pilot)
        assert isinstance(app.screen, SideBySide)
        before, after = (page.text.text for page in app.screen.query(Page))
        assert "0.5)" in before and "0.5003)" not in before and "0.5003)" in after
        await pilot.press("escape", "enter")
        await settle(pilot)
        node = app.state.node
        assert node is not None and (node.name, node.target) == ("mul", "aten.mul.Tensor") and "0.5003" in node.args
        assert app.state.selected is not None and app.state.selected.graph.stage == "post_grad"


def test_the_recorded_comparison_reads_the_same_as_text() -> None:
    compared = queries.compared_run(state_of("wrong_pass"))
    assert compared is not None and compared.diff is not None
    lines = summary(compared.diff).splitlines()
    assert lines[1] == (
        "wrong since post-grad: `mul` (tests/recordings/wrong_pass.py:29), "
        "made by post_grad_custom_post_pass; kernels are faithful"
    )
    rows = [line.split() for line in lines]
    assert ["✔", "partitioned", "1.3e-16", "0"] in rows
    assert any(row[:5] == ["✘", "post-grad", "8.3e-05", "8.3e-05", "mul"] for row in rows)
    assert all(
        faithful_to(kernel, compared.diff) is compared.diff.first_wrong_stage for kernel in compared.diff.kernels
    )
