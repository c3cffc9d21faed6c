"""Are two runs held against each other: what they were made for, kernels side by side, time, and which two?"""

from pathlib import Path

import pytest

from idbg.render.text import lines as text_lines
from idbg.schema import events
from idbg.schema.decisions.dynamo import GraphBreak
from idbg.schema.runs import Run, fold
from idbg.views import compared
from idbg.views.tree import Row as ViewRow
from idbg_tui.controllers import switching
from idbg_tui.panes import before_after
from idbg_tui.panes.switches.pane import SwitchesPane
from idbg_tui.panes.why.views import text_of
from idbg_tui.widgets import sections
from idbg_tui.widgets.picker import Picker
from idbg_tui.widgets.section_rows import Look
from idbg_tui.widgets.side_by_side import SideBySide
from tests.harness.flipped import open_switches
from tests.harness.live import living
from tests.harness.recorded import app_of, log
from tests.harness.screen import SMALL, WIDE, bar, settle, until
from tests.harness.why_states import FILE

RECORDED = "switched"
WHOLE = Look(width=300, whole=True)


def runs() -> tuple[Run, Run]:
    both = fold(log(RECORDED)).runs
    return both[1], both[2]


def said(before: Run, after: Run) -> list[str]:
    return [text_of(row).strip() for row in sections.rows(compared.view(before, after), WHOLE)]


def test_it_says_what_the_report_says() -> None:
    before, after = runs()
    found = compared.differences(before, after)
    rows = said(before, after)
    assert [change.name for change in found.target] == ["max_autotune", "max_fusion_size"]
    listed = {" ".join(line.split()) for line in text_lines(compared.view(before, after), None)}
    shown = {" ".join(row.replace("▾", "").split()) for row in rows}
    assert len(listed) > 10 and listed == shown
    assert compared.differences(before, after) is found


def test_what_a_run_broke_more_often_leads_to_its_line() -> None:
    before, after = runs()
    after.breaks.append(GraphBreak("a print", FILE, 7))
    after.number += 1
    rows = [row for row in sections.rows(compared.view(before, after), WHOLE) if row.file]
    assert [(row.file, row.line, row.enter) for row in rows] == [(FILE, 7, "edit")]
    assert "graph breaks" in "\n".join(said(before, after))


def test_sources_are_shown_side_by_side_with_what_differs_marked() -> None:
    before, after = runs()
    groups = [block for block in compared.view(before, after).body if isinstance(block, ViewRow)]
    row = next(block for block in groups if "kernels" in block.text).below[0]
    assert row.sides is not None
    shown = before_after.of_sides(row.sides)
    assert [text.text for text in shown.texts] == [row.sides.before, row.sides.after]
    assert {text.language for text in shown.texts} == {row.sides.language} != {""}
    assert shown.pair is not None and any(shown.pair().marks)


@pytest.mark.parametrize("size", [WIDE, SMALL])
async def test_brackets_go_there_and_enter_on_a_kernel_shows_both_sources(
    size: tuple[int, int], tmp_path: Path
) -> None:
    app = app_of(RECORDED, tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("minus", "right_square_bracket")
        pane = app.query_one(SwitchesPane)
        assert pane.comparing and app.focused is pane.lines
        kernel = next(at for at, row in enumerate(pane.lines.items) if row.sides is not None)
        pane.lines.go(kernel)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SideBySide))
        await pilot.press("escape")
        await settle(pilot)
        count = len(pane.lines.items)
        await pilot.press("h")
        assert len(pane.lines.items) < count
        await pilot.press("l")
        assert len(pane.lines.items) == count
        at = pane.lines.cursor
        await pilot.press("left_square_bracket")
        assert not pane.comparing and app.focused is pane.lines
        await pilot.press("right_square_bracket")
        assert pane.lines.cursor == at, "each view has a cursor of its own"


async def test_any_two_runs_can_be_picked(tmp_path: Path) -> None:
    app = app_of(RECORDED, tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("minus", "J")
        await until(pilot, lambda: isinstance(app.screen, Picker))
        await pilot.press(*"run 2", "enter")
        await settle(pilot)
        await pilot.press("enter")
        await settle(pilot)
        pane = app.query_one(SwitchesPane)
        assert pane.comparing and any("run 1 compared with run 2" in text_of(row) for row in pane.lines.items)


async def test_with_one_run_it_says_what_makes_another(tmp_path: Path) -> None:
    app = app_of("mlp_train", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("minus", "J")
        await settle(pilot)
        assert "there is one run" in bar(app, "footer")
        await pilot.press("right_square_bracket")
        assert "change a switch" in app.query_one(SwitchesPane).lines.empty


async def test_when_the_run_with_other_switches_has_ended_what_changed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    app, session = living()
    monkeypatch.setattr(switching, "RECOMPILE", 0.1)
    async with app.run_test(size=WIDE) as pilot:
        await open_switches(pilot, app, session)
        session.emit(events.RunEnded(run=session.runs, verdict="clean", seconds=3.0))
        await settle(pilot)
        runs = session.runs
        await pilot.press("j", "j", "space")
        await until(pilot, lambda: session.runs > runs)
        session.emit(events.RunEnded(run=session.runs, verdict="failed", seconds=2.0))
        await until(pilot, lambda: "kernels: none in either run" in bar(app, "footer"))
        assert "3 s → 2 s" in bar(app, "footer")
