"""p, and an entry of the menu, show what is before and after a finding side by side."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from idbg.schema import events
from idbg.schema.kernel_edits import KernelEdit
from idbg_tui.app import IdbgApp
from idbg_tui.menu import Menu
from idbg_tui.messages import SidesRequest
from idbg_tui.panes import before_after
from idbg_tui.panes.section_pane import SectionPane
from idbg_tui.widgets.listing import Listing
from idbg_tui.widgets.section_rows import Row, fixed
from idbg_tui.widgets.side_by_side import SideBySide
from tests.harness.recorded import app_of, state_of
from tests.harness.screen import SMALL, WIDE, bar, settle, until


def pane_of(app: IdbgApp, name: str) -> SectionPane:
    pane = app.body.panes[name]  # type: ignore[index]
    assert isinstance(pane, SectionPane)
    return pane


def go_to(pane: SectionPane, *start: object) -> None:
    """Put the cursor on the first row whose key begins so."""
    keys = [row.key for row in pane.lines.items]
    pane.lines.go(next(at for at, key in enumerate(keys) if isinstance(key, tuple) and key[: len(start)] == start))


def titles(app: IdbgApp) -> list[str]:
    assert isinstance(app.screen, SideBySide)
    return [page.text.title for page in app.screen._pages]


@pytest.mark.parametrize("size", [WIDE, SMALL])
async def test_wrong_numbers_show_the_graph_before_and_after_the_pass(tmp_path: Path, size: tuple[int, int]) -> None:
    app = app_of("wrong_pass", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("4", "g")
        go_to(pane_of(app, "findings"), "finding", "mismatch")
        await pilot.press("p")
        await until(pilot, lambda: isinstance(app.screen, SideBySide))
        before, after = titles(app)
        report = next(run.diff for run in app.state.history.runs.values() if run.diff is not None)
        made = next(stage.made_by for stage in report.stages if stage.made_by is not None and stage.made_by.diff)
        assert made.name in before and made.name in after and before.startswith("before")
        assert isinstance(app.screen, SideBySide) and app.screen._pairs is not None and all(app.screen._pairs.marks)
        removed = [line[1:] for line in made.diff.splitlines() if line[:1] == "-" and line[:4] != "--- "]
        left, right = (page.text.text.splitlines() for page in app.screen._pages)
        assert removed and set(removed) <= set(left) and not set(removed) & set(right)


async def test_a_wrong_kernel_is_beside_the_graph_that_it_computes(tmp_path: Path) -> None:
    app = app_of("planted", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("4", "g")
        go_to(pane_of(app, "findings"), "finding", "mismatch")
        await pilot.press("p")
        await until(pilot, lambda: isinstance(app.screen, SideBySide))
        report = next(run.diff for run in app.state.history.runs.values() if run.diff is not None)
        assert report.culprit is not None and titles(app) == ["post-grad", report.culprit.name]
        assert isinstance(app.screen, SideBySide)
        left = app.screen._pages[0]
        assert report.culprit.nodes[0] in left.text.text.splitlines()[left.code.line - 1]


async def test_a_recompile_is_beside_the_compile_before_it_and_a_break_has_both_graphs(tmp_path: Path) -> None:
    app = app_of("breaking", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        pane = pane_of(app, "findings")
        await pilot.press("4", "g")
        compiles = [row for row in pane.lines.items if isinstance(row.key, tuple) and row.key[0] == "compile"]
        run = app.state.run
        assert compiles and run is not None
        shown = [before_after.of_row(app.state, run, row) for row in compiles]
        both = next(each for each in shown if isinstance(each, SidesRequest))
        assert [text.title.split(",")[0] for text in both.texts] == ["compile 0", "compile 1"]
        go_to(pane, "break")
        broken = next(row for row in pane.lines.items if row.before is not None and row.after is not None)
        pane.lines.go(list(pane.lines.items).index(broken))
        await pilot.press("p")
        await until(pilot, lambda: isinstance(app.screen, SideBySide))
        assert [title.split(",")[0] for title in titles(app)] == ["before the break", "after it"]


async def test_the_menu_has_it_and_says_why_it_is_off(tmp_path: Path) -> None:
    app = app_of("wrong_pass", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("4", "g")
        go_to(pane_of(app, "findings"), "finding", "mismatch")
        await pilot.press("!")
        await until(pilot, lambda: isinstance(app.screen, Menu))
        assert isinstance(app.screen, Menu)
        item = next(each for each in app.screen._lines.items if "side by side" in each.words)
        assert item.keys == ["p"] and not item.off
        await pilot.press("p")
        await until(pilot, lambda: isinstance(app.screen, SideBySide))


async def test_where_a_row_has_neither_the_key_does_what_it_does_everywhere(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("4", "g", "!")
        await until(pilot, lambda: isinstance(app.screen, Menu))
        assert isinstance(app.screen, Menu)
        item = next(each for each in app.screen._lines.items if "side by side" in each.words)
        assert item.off == before_after.NOTHING
        await pilot.press("escape", "p")
        await until(pilot, lambda: isinstance(app.screen, Listing))


async def test_numbers_that_no_stage_is_known_of_say_how_to_find_it(tmp_path: Path) -> None:
    app = app_of("planted", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("4", "g")
        pane = pane_of(app, "findings")
        go_to(pane, "finding", "mismatch")
        for run in app.state.history.runs.values():
            if run.diff is not None:
                run.diff = replace(run.diff, stages=(), first_bad_kernel=None)
        await pilot.press("p")
        await settle(pilot)
        assert before_after.NO_STAGE in bar(app, "footer")


def test_a_version_of_a_kernel_is_beside_the_original() -> None:
    state = state_of("resnet")
    run = state.shown
    assert run is not None
    kernel = next(each for each in run.kernels if each.source)
    edit = KernelEdit(
        frame=kernel.frame,
        part=kernel.part,
        name=kernel.name,
        language="cpp",
        version=1,
        text=f"// edited\n{kernel.source}",
    )
    state.apply([events.KernelEdited(run=run.number, edit=edit)])
    row = Row(("version", run.number, *kernel.key, 1), fixed([]))
    found = before_after.of_row(state, run, row)
    assert isinstance(found, SidesRequest) and found.pair is not None
    assert [text.text for text in found.texts] == [kernel.source, edit.text]
    assert found.pair().marks == (frozenset(), frozenset({1}))
