"""Does the menu list what can be done with what the cursor is on, why something is off, and do it by key and mouse?"""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from idbg_tui.app import IdbgApp
from idbg_tui.layout import ORDER
from idbg_tui.menu import Menu, MenuItem, MenuLines
from idbg_tui.panes.base import KEYS
from idbg_tui.state.sentences import READ_ONLY
from idbg_tui.widgets.code import CodeView
from idbg_tui.widgets.listing import Listing
from tests.harness.flipped import open_switches
from tests.harness.live import living
from tests.harness.recorded import app_of
from tests.harness.screen import SMALL, WIDE, bar, settle


def listed(app: IdbgApp) -> dict[str, MenuItem]:
    """Each action by its first key."""
    assert isinstance(app.screen, Menu)
    return {item.keys[0]: item for item in app.screen.query_one(MenuLines).items}


async def opened(app: IdbgApp, pilot: Pilot[None], *keys: str) -> dict[str, MenuItem]:
    await pilot.press(*keys, "exclamation_mark")
    await settle(pilot)
    return listed(app)


@pytest.mark.parametrize("size", [WIDE, SMALL])
async def test_in_the_graph_it_names_the_node_and_why_a_saved_session_writes_no_repro(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        items = await opened(app, pilot)
        assert app.screen.query_one("Vertical").border_title == "Graph: permute_1"
        assert items["x"].off == items["X"].off == READ_ONLY
        assert not items["y"].off and not items["i"].off and not items["W"].off
        lines = app.screen.query_one(MenuLines)
        rows = [lines.line(y).text for y in range(lines.row_count)]
        assert any(READ_ONLY in row for row in rows)
        await pilot.press("x")
        await settle(pilot)
        assert not isinstance(app.screen, Menu) and READ_ONLY in bar(app, "footer")


async def test_an_action_is_done_by_its_own_key_and_by_enter(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        before = app.state.selected
        await opened(app, pilot)
        await pilot.press("i")
        await settle(pilot)
        assert app.state.selected != before and len(app.screen_stack) == 1
        items = await opened(app, pilot)
        await pilot.press(*["j"] * list(items).index("W"), "enter")
        await settle(pilot)
        assert isinstance(app.screen, Listing)


async def test_a_node_without_inputs_has_that_as_the_reason(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        graph = app.state.graph
        assert graph is not None
        first = next(node for node in graph.nodes if not node.inputs and graph.users.get(node.name))
        app.state.choose(graph.node_id(first.name))
        app.show()
        items = await opened(app, pilot)
        assert items["i"].off == "this node has no inputs" and not items["u"].off


async def test_in_the_switches_the_default_is_no_change_to_take_back() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        await open_switches(pilot, app, session)
        items = await opened(app, pilot)
        assert items["ctrl+x"].off == "this switch has torch's default"
        await pilot.press("escape", "j", "j", "space")
        await settle(pilot)
        items = await opened(app, pilot)
        assert not items["ctrl+x"].off and not items["space"].off


async def test_in_the_rules_a_rule_without_a_value_has_none_to_raise(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        items = await opened(app, pilot, "8", "G")
        assert items["plus"].off == "no further value here: enter writes any" and not items["ctrl+x"].off
        await pilot.press("escape", "g")
        items = await opened(app, pilot)
        assert not items["plus"].off and not items["space"].off


async def test_the_right_button_puts_the_cursor_there_and_opens_it(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        lines = app.body.panes["findings"].lines  # type: ignore[attr-defined]
        await pilot.click(lines, offset=(5, 3), button=3)
        await settle(pilot)
        assert isinstance(app.screen, Menu) and app.body.current == "findings"
        assert lines.cursor == 3 and str(app.screen.query_one("Vertical").border_title).startswith("Findings:")
        await pilot.press("escape")
        await settle(pilot)
        assert len(app.screen_stack) == 1


async def test_the_right_button_on_a_line_of_code_is_about_that_line(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        code = app.body.panes["source"].query(CodeView).first()
        await pilot.click(code, offset=(12, 4), button=3)
        await settle(pilot)
        assert isinstance(app.screen, Menu) and app.body.current == "source"
        assert app.screen.query_one("Vertical").border_title == f"Source: line {code.line}"


async def test_every_pane_has_a_menu_also_where_nothing_is_listed(tmp_path: Path) -> None:
    app = app_of("breaking", tmp_path)
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        for key, pane in zip(KEYS, ORDER, strict=True):
            items = await opened(app, pilot, "minus" if key == "-" else key)
            assert app.body.current == pane
            assert {"W", "w", "x", "X", "i", "u"} <= set(items), pane
            assert all(item.words for item in items.values()), pane
            await pilot.press("escape")
            assert len(app.screen_stack) == 1, pane
