"""Another stage, run or kernel beside what is shown: one cursor follows the other, and what differs is marked."""

from pathlib import Path

import pytest

from idbg.schema.graphs import GraphId
from idbg_tui.app import IdbgApp
from idbg_tui.messages import BesideRequest, KernelChosen
from idbg_tui.widgets.side_by_side import SideBySide
from tests.harness.recorded import app_of
from tests.harness.screen import SMALL, WIDE, bar, settle, until

INFERENCE, DYNAMO = GraphId("0/0", "inference"), GraphId("0/0", "dynamo")


def beside(app: IdbgApp) -> SideBySide:
    assert isinstance(app.screen, SideBySide)
    return app.screen


def text_at(screen: SideBySide, side: int) -> str:
    page = screen._pages[side]
    return page.text.text.split("\n")[page.code.line - 1]


async def test_another_stage_follows_the_node_under_the_cursor(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.post_message(BesideRequest(stage=DYNAMO))
        await settle(pilot)
        screen = beside(app)
        left, right = screen._pages
        line = next(at for at, text in enumerate(left.text.text.split("\n"), 1) if " permute: " in text)
        left.code.go(line - 1)
        await pilot.press("j")
        await settle(pilot)
        assert " permute: " in text_at(screen, 0) and "linear(" in text_at(screen, 1), "of its weight"
        await pilot.press("tab", "k")
        await settle(pilot)
        assert right.code.has_focus and text_at(screen, 0).strip()
        await pilot.press("escape")
        assert not isinstance(app.screen, SideBySide)


async def test_two_kernels_have_their_differences_marked(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        run = app.state.shown
        assert run is not None
        kernels = [kernel for kernel in run.kernels if kernel.source]
        app.post_message(BesideRequest(kernel=kernels[-1]))  # beside the convolution's own, which a library has
        await until(pilot, lambda: "no generated kernel is shown" in bar(app, "footer"))
        app.post_message(KernelChosen(kernels[0].frame, kernels[0].part, kernels[0].name))
        await settle(pilot)
        app.post_message(BesideRequest(kernel=kernels[-1]))
        await settle(pilot)
        screen = beside(app)
        assert all(screen._pairs.marks) and screen._pages[1].text.title == kernels[-1].name  # type: ignore[union-attr]
        assert screen._pages[0].text.title == kernels[0].name
        before = screen.page.code.line
        await pilot.press("]")
        assert screen.page.code.line != before


async def test_the_same_stage_of_another_run(tmp_path: Path) -> None:
    app = app_of("switched", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        shown = app.state.shown
        assert shown is not None and app.state.graph is not None
        other = next(run for run in app.state.history.runs.values() if run is not shown and run.graphs)
        app.post_message(BesideRequest(run=other.number))
        await settle(pilot)
        titles = [page.text.title for page in beside(app)._pages]
        assert [title.partition(":")[0] for title in titles] == [f"run {shown.number}", f"run {other.number}"]


@pytest.mark.parametrize("request_", [BesideRequest(run=99), BesideRequest(run=99, stage=INFERENCE)])
async def test_a_run_without_the_stage_is_a_sentence(request_: BesideRequest, tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        app.post_message(request_)
        await settle(pilot)
        assert "run 99 has no graph of this stage" in bar(app, "footer") and not isinstance(app.screen, SideBySide)


async def test_it_is_found_in_the_palette(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+p")
        await settle(pilot)
        await pilot.press(*"beside this stage", "enter")
        await settle(pilot)
        assert isinstance(app.screen, SideBySide)


@pytest.mark.parametrize("size", [(120, 40), SMALL])
async def test_paired_lines_that_are_cut_are_whole_below(tmp_path: Path, size: tuple[int, int]) -> None:
    app = app_of("wrong_pass", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("4", "g", "p")
        await until(pilot, lambda: isinstance(app.screen, SideBySide))
        await settle(pilot)
        whole = beside(app)._whole
        assert whole.display
        shown = " ".join(str(whole.render()).split())
        one, other = (" ".join(text_at(beside(app), side).split()) for side in (0, 1))
        assert one != other and one in shown and other in shown
