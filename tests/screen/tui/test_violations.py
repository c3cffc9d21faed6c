"""Do the list of violations and the selected node follow each other, and is what went told and then forgotten?"""

from pathlib import Path

import pytest

from idbg.schema.graphs import NodeId
from idbg_tui.panes.violations.costs import Cost
from idbg_tui.panes.violations.pane import ViolationLines, ViolationsPane
from idbg_tui.panes.violations.rows import CodeLine, Gone, RuleHeading, violation_list
from idbg_tui.state import queries
from idbg_tui.widgets.listing import Listing
from tests.harness.recorded import app_of, under
from tests.harness.rule_texts import DENY, FALL, PEAK
from tests.harness.screen import WIDE, settle, texts, until

PAD = '[[rules]]\nkind = "alignment"\nmultiple = 64\nseverity = "pad"\n'


def rows(pane: ViolationsPane) -> list[int]:
    return rows_of(pane.lines)


def rows_of(lines: ViolationLines) -> list[int]:
    return [row for row, item in enumerate(lines.items) if isinstance(item, CodeLine)]


async def test_a_step_of_the_cursor_selects_the_rows_node_and_a_heading_selects_none(tmp_path: Path) -> None:
    app = app_of("mlp_train", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        pane = app.query_one(ViolationsPane)
        before = app.state.selected
        await pilot.press("4", "g")
        await settle(pilot)
        assert app.state.selected == before and pane.lines.cursor == 0
        await pilot.press("j")
        await settle(pilot)
        line = pane.lines.items[pane.lines.cursor]
        assert isinstance(line, CodeLine) and app.state.selected == line.nodes[0]
        assert line.nodes[0].name in (app.body.panes["node"].border_title or "")


async def test_the_cursor_goes_to_the_row_of_a_node_that_was_selected_elsewhere(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        lines = app.query_one(ViolationsPane).lines
        seen = set()
        for _ in range(6):
            await pilot.press("v")
            await settle(pilot)
            line = lines.items[lines.cursor]
            assert isinstance(line, CodeLine) and app.state.selected in line.nodes
            seen.add(lines.cursor)
        assert len(seen) > 1


async def test_what_went_is_at_the_end_and_goes_at_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("idbg_tui.state.state.ONE_EDIT", 0.0)
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.session.edit_rules(PAD + DENY)
        await settle(pilot)
        app.session.edit_rules(DENY)
        await settle(pilot)
        lines = app.query_one(ViolationsPane).lines
        gone = [row for row, item in enumerate(lines.items) if isinstance(item, Gone)]
        assert gone == [len(lines.items) - 1]
        assert any(
            "gone:" in row and "alignment" in row and ".py:" in row
            for row in texts(app, "violations")[: len(lines.items)]
        )
        await pilot.press("4", "g", "j")
        await settle(pilot)
        assert not any(isinstance(item, Gone) for item in lines.items)


async def test_what_went_is_forgotten_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("idbg_tui.state.state.ONE_EDIT", 0.0)
    monkeypatch.setattr("idbg_tui.panes.violations.pane.GONE_SECONDS", 0.2)
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.session.edit_rules(PAD + DENY)
        await settle(pilot)
        app.session.edit_rules(DENY)
        await settle(pilot)
        pane = app.query_one(ViolationsPane)
        await until(pilot, lambda: not any(isinstance(item, Gone) for item in pane.lines.items))


async def test_the_cost_stands_below_its_rule_and_enter_on_it_opens_the_partitions(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.session.edit_rules(FALL)
        lines = app.query_one(ViolationsPane).lines
        await until(pilot, lambda: any(isinstance(item, Cost) for item in lines.items))
        assert isinstance(lines.items[0], RuleHeading) and isinstance(lines.items[1], Cost)
        assert "→ runs on the host: 18 partitions" in texts(app, "violations")[1]
        await pilot.press("4", "g", "j", "enter")
        await settle(pilot)
        assert isinstance(app.screen, Listing)


async def test_enter_on_a_peak_goes_to_its_node_and_a_walk_stops_there_once(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.session.edit_rules(PEAK)
        lines = app.query_one(ViolationsPane).lines
        await until(pilot, lambda: any(isinstance(item, Cost) for item in lines.items))
        assert queries.counts(app.state) == {"reject": 1} and queries.peak(app.state) is not None
        at = queries.peak(app.state)[1].peak_at
        await pilot.press("4", "g", "j", "enter")
        await settle(pilot)
        assert app.state.selected is not None and app.state.selected.name == at
        await pilot.press("v")
        await settle(pilot)
        assert app.state.selected.name == at
        line = lines.items[lines.cursor]
        assert isinstance(line, (Cost, CodeLine))
        heading = next(row for row in texts(app, "graph") if "✘" in row and "nodes" in row)
        assert heading.rstrip().endswith("✘ 1")  # the module that it is in has one violation, not one for each node


async def test_x_on_a_peak_asks_for_a_repro_of_that_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[NodeId | None, str]] = []
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        monkeypatch.setattr(app.session, "export_repro", lambda node, rule="": asked.append((node, rule)))
        app.session.edit_rules(PAD + PEAK)
        lines = app.query_one(ViolationsPane).lines
        await until(pilot, lambda: any(isinstance(item, Cost) for item in lines.items))
        await pilot.press("4", "g", "x")
        await settle(pilot)
        assert queries.peak(app.state) is not None
        graph, profile = queries.peak(app.state)
        node = graph.node_id(profile.peak_at)
        assert asked == [(node, "peak_memory")]
        app.state.choose(node)
        await pilot.press("1", "x")  # the node breaks the pad rule as well: the severest counts
        await settle(pilot)
        assert asked[1:] == [(node, "peak_memory")]


def test_names_are_cut_and_the_percents_of_a_narrow_list_are_not() -> None:
    state = under("attention", PAD)
    checked = [(state.checks.findings(graph), state.checks.change(graph)) for graph in queries.level(state)]
    lines = ViolationLines()
    lines.items = violation_list(checked)
    lines._measure(lines.items)
    costs = [item.text.partition(" (and ")[0].rpartition(": ")[2] for item in lines.items if isinstance(item, CodeLine)]
    shown = ["".join(text for text, _ in lines.row(row, 78)) for row in rows_of(lines)]
    assert sum(" % bytes" in cost for cost in costs) > 3
    assert all(row.endswith(cost) and len(row) <= 78 for row, cost in zip(shown, costs, strict=True))
    assert any(" 2, dim 1 is 50…: +" in row for row in shown)


async def test_a_wide_list_names_all_that_it_has_room_for(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=(200, 50)) as pilot:
        await settle(pilot)
        lines = app.query_one(ViolationsPane).lines
        row = max(rows_of(lines), key=lambda row: len(lines.items[row].nodes))  # type: ignore[union-attr]
        line = lines.items[row]
        assert isinstance(line, CodeLine) and len(line.nodes) > 4
        wide, narrow = ("".join(text for text, _ in lines.row(row, width)) for width in (196, 90))
        assert all(node.name in wide for node in line.nodes) and line.code in wide and len(wide) <= 196
        assert f"+{len(line.nodes) - 3}" in narrow and len(narrow) <= 90
        middling = "".join(text for text, _ in lines.row(row, 140))
        shown = sum(node.name in middling.replace(",", " ").split() for node in line.nodes)
        assert 3 < shown < len(line.nodes) and f" +{len(line.nodes) - shown} " in middling and len(middling) <= 140
