"""Does the whole screen work over sessions that were recorded from real compiles?"""

from pathlib import Path

import pytest

from idbg.config.settings import Settings
from idbg.schema.graphs import NodeId
from idbg_tui import keymap, layout
from idbg_tui.help import Help
from idbg_tui.panes import loading
from idbg_tui.panes.base import Pane, PaneId
from idbg_tui.panes.findings.pane import FindingsPane
from idbg_tui.panes.graph.pane import GraphPane
from idbg_tui.state import queries
from idbg_tui.widgets.picker import Picker
from tests.harness.recorded import INFERENCE, app_of
from tests.harness.rule_texts import DENY
from tests.harness.screen import SMALL, WIDE, bar, settle, texts, until


async def test_a_saved_session_opens_with_its_graph_its_violations_and_its_verdict(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "saved" in bar(app, "header") and "37 violations (dynamo 37, inference 20)" in bar(app, "header")
        assert f"{queries.counts(app.state)['reject']} reject" in bar(app, "header")
        assert any("convolution" in row and "✘ op" in row for row in texts(app, "graph"))
        assert "unsupported_ops" in "".join(texts(app, "findings"))
        assert app.focused is not None and app.body.current == "graph"


@pytest.mark.parametrize("size", [WIDE, SMALL])
async def test_the_cursor_selects_and_every_pane_follows(tmp_path: Path, size: tuple[int, int]) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        before = app.state.selected
        await pilot.press("j")
        await settle(pilot)
        assert app.state.selected != before and app.state.selected is not None
        assert app.state.selected.name in (app.body.panes["node"].border_title or "")


async def test_a_filter_narrows_the_rows_selects_a_match_and_escape_takes_it_back(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("slash", *"addmm")
        await settle(pilot)
        assert app.state.selected == NodeId(INFERENCE, "addmm")
        assert "1 of 435" in (app.body.panes["graph"].border_title or "")
        await pilot.press("enter", "escape")
        await settle(pilot)
        assert "435 nodes" in (app.body.panes["graph"].border_title or "")
        assert app.state.selected == NodeId(INFERENCE, "addmm")
        assert any(" addmm " in row and "f32[1,1000]" in row for row in texts(app, "graph"))


async def test_n_goes_through_matches_and_without_a_filter_says_which_key_goes_through_violations(
    tmp_path: Path,
) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("n")
        await settle(pilot)
        assert app.state.selected == NodeId(INFERENCE, "convolution") and "v goes to the next" in bar(app, "footer")
        await pilot.press("slash", *"relu", "enter", "n", "n")
        await settle(pilot)
        assert app.state.selected is not None and app.state.selected.name.startswith("relu")


async def test_a_node_that_another_pane_chose_is_shown_in_spite_of_a_filter(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("slash", *"relu", "enter")
        await pilot.press("v")
        await settle(pilot)
        assert app.state.selected is not None and app.state.selected.name.startswith("convolution")
        assert "435 nodes" in (app.body.panes["graph"].border_title or "")


async def test_space_folds_a_module_and_a_jump_into_it_unfolds_it(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("f")
        await settle(pilot)
        rows = [row for row in texts(app, "graph") if row]
        assert len(rows) < 30 and any(row.lstrip().startswith("▸") for row in rows)
        await pilot.press("v")
        await settle(pilot)
        assert app.state.node is not None
        assert any(app.state.node.name in row.split() for row in texts(app, "graph"))


async def test_on_a_folded_module_the_other_panes_speak_of_what_is_in_it(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("f", "g")
        await settle(pilot)
        lines = app.body.panes["graph"].lines  # type: ignore[attr-defined]
        seen = set()
        for _ in range(6):
            await pilot.press("j")
            await settle(pilot)
            heading = lines.heading_of(lines.cursor)
            if heading is None or lines.node_at(lines.cursor) is not None:
                continue
            own, graph = lines.outline.headings[heading], app.state.graph
            assert graph is not None and app.state.node in graph.nodes[own.first : own.last]
            assert own.key in lines.outline.folded  # it stays as it was, with the cursor on it
            seen.add(own.key)
        assert len(seen) >= 2


async def test_brackets_step_through_the_stages_and_the_same_computation_stays_selected(tmp_path: Path) -> None:
    app = app_of("mlp_train", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        title = app.body.panes["graph"]
        assert "forward" in (title.border_title or "")
        stages = []
        for _ in range(5):
            await pilot.press("left_square_bracket")
            assert app.state.graph_id is not None
            stages.append(app.state.graph_id.stage)
        assert stages[:2] == ["joint", "dynamo"] and stages[-1] == "dynamo"
        assert "no further stage" in bar(app, "footer")


async def test_walking_and_back_returns_to_where_one_was(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        start = app.state.selected
        await pilot.press("u", "u")
        assert app.state.selected != start
        await pilot.press("backspace", "ctrl+o")
        assert app.state.selected == start


async def test_enter_on_a_violation_goes_to_its_nodes_one_after_the_other(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("4", "g", "j", "j", "j")
        seen = []
        for _ in range(3):
            await pilot.press("enter")
            await pilot.pause()
            seen.append(app.state.selected.name if app.state.selected else "")
        assert len(set(seen)) == 3 and all(name.startswith("convolution") for name in seen)
        assert app.body.current == "findings"


PAD = '[[rules]]\nkind = "alignment"\nmultiple = 64\nseverity = "pad"\n'


async def test_an_edit_of_the_rules_shows_what_went_and_keeps_the_cursor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("idbg_tui.state.state.ONE_EDIT", 0.0)
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.session.edit_rules(PAD + DENY)
        await settle(pilot)
        await pilot.press("4", "g", "j", "j")
        lines = app.query_one(FindingsPane).lines
        key = lines.key(lines.items[lines.cursor])
        app.session.edit_rules('name = "free"\n' + DENY)
        await settle(pilot)
        assert lines.key(lines.items[lines.cursor]) == key
        assert any("gone" in row for row in texts(app, "findings"))
        assert "20 reject" in bar(app, "header") and "free" in bar(app, "header")


async def test_rules_that_nothing_breaks_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("idbg_tui.state.state.ONE_EDIT", 0.0)
    monkeypatch.setattr("idbg_tui.panes.findings.pane.GONE_SECONDS", 0.05)
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.session.edit_rules('name = "free"\n')
        await until(pilot, lambda: "no rule broken" in bar(app, "header"))
        app.session.edit_rules('name = "free2"\n')
        await until(pilot, lambda: "no rule of free2 is broken" in "".join(texts(app, "findings")))


async def test_a_small_screen_shows_one_pane_and_the_names_of_all(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        keys = keymap.in_force({})
        for number, name in enumerate(layout.ORDER, 1):
            await pilot.press(keys[f"pane_{number}"].partition(",")[0])
            await pilot.pause()
            shown = [pane.ID for pane in app.body.panes.values() if pane.region.area]
            assert shown == [name]
        assert len(app.body.query_one("TabLine").render().plain) <= 80  # type: ignore[union-attr]


async def test_the_layout_follows_the_size_of_the_terminal(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    wide = ["graph", "source", "node", "findings", "rules"]

    def shown() -> list[PaneId]:
        return [name for name, pane in app.body.panes.items() if pane.region.area]

    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: shown() == wide)
        await pilot.resize_terminal(*SMALL)
        await until(pilot, lambda: shown() == ["graph"])
        await pilot.resize_terminal(*WIDE)
        await until(pilot, lambda: shown() == wide)


async def test_a_key_that_comes_before_its_pane_is_there_goes_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, hidden = app_of("resnet", tmp_path), loading.other_panes

    def pressed() -> list[Pane]:
        app.body.go("log")
        return hidden()

    monkeypatch.setattr(loading, "other_panes", pressed)
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.focused is not None and app.focused in app.body.panes["log"].children)


async def test_late_news_of_an_earlier_focus_does_not_undo_a_key(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        app.body.go("graph")
        earlier = app.focused
        app.body.go("log")
        app.body.focus_moved(earlier)
        assert app.body.current == "log"
        app.screen.set_focus(app.body.panes["rules"].focus_target())  # as a click does
        await until(pilot, lambda: app.body.current == "rules")


@pytest.mark.parametrize("panes", ["first_panes", "other_panes"])
async def test_leaving_while_the_panes_are_made_is_no_failure(
    panes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, made = app_of("resnet", tmp_path), getattr(loading, panes)

    def left(*choices: Path | None) -> list[Pane]:
        app.exit()
        return made(*choices)

    monkeypatch.setattr(loading, panes, left)
    async with app.run_test(size=WIDE):
        pass
    assert not app.return_code


def test_frames_stand_in_the_order_of_their_panes() -> None:
    frames, panes = loading.placeholders(), [*loading.first_panes(), *loading.other_panes()]
    assert [pane.ID for pane in frames] == [pane.ID for pane in panes]


async def test_zoom_shows_one_pane_and_all_again(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("z")
        await settle(pilot)
        assert [pane.ID for pane in app.body.panes.values() if pane.region.area] == ["graph"]
        await pilot.press("z")
        await settle(pilot)
        assert app.query_one(GraphPane).region.width < 100


async def test_growing_and_shrinking_move_the_border(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        width = app.query_one(GraphPane).region.width
        await pilot.press("greater_than_sign")
        await settle(pilot)
        assert app.query_one(GraphPane).region.width > width
        await pilot.press("equals_sign")
        await settle(pilot)
        assert app.query_one(GraphPane).region.width == width


async def test_tab_goes_round_the_panes_that_can_be_seen(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        seen = []
        for _ in range(5):
            seen.append(app.body.current)
            await pilot.press("tab")
        assert seen == ["graph", "source", "node", "findings", "rules"]
        assert app.body.current == "graph"


async def test_a_saved_session_refuses_to_run_in_one_sentence(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("r")
        assert "read from disk" in bar(app, "footer")
        await pilot.press("j")
        assert "read from disk" not in bar(app, "footer")


async def test_the_help_lists_keys_and_filters_them(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        keys = bar(app, "footer")
        await pilot.press("question_mark", *"strict")
        await pilot.pause()
        assert isinstance(app.screen, Help) and bar(app, "footer") != keys
        rows = [app.screen._lines.line(y).text.split() for y in range(2)]
        assert rows[0] == ["Compile"] and rows[1][0] == ";"
        await pilot.press("escape")
        assert not isinstance(app.screen, Help) and bar(app, "footer") == keys


async def test_the_accelerator_is_picked_from_a_list(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.session.edit_rules('name = "free"\n')
        await settle(pilot)
        await pilot.press("a")
        await pilot.pause()
        assert isinstance(app.screen, Picker)
        await pilot.press("enter")
        await settle(pilot)
        assert "mock" in bar(app, "header") and "reject" in bar(app, "header")


async def test_the_palette_finds_actions_and_nodes(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+p", *"convolution_17")
        await pilot.pause(0.6)
        await pilot.press("enter")
        await settle(pilot)
        assert app.state.selected == NodeId(INFERENCE, "convolution_17")


async def test_a_key_of_the_settings_file_takes_the_place_of_ours(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path, Settings(keys={"zoom": "Z"}))
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("z")
        assert not app.body.zoomed
        await pilot.press("Z")
        assert app.body.zoomed


@pytest.mark.parametrize(
    ("settings", "words"),
    [(Settings(theme="nope"), 'no theme "nope"'), (Settings(keys={"zom": "Z"}), "did you mean zoom?")],
)
async def test_a_wrong_setting_is_said_and_the_program_starts(tmp_path: Path, settings: Settings, words: str) -> None:
    app = app_of("resnet", tmp_path, settings)
    async with app.run_test(size=(200, 45)) as pilot:
        await settle(pilot)
        assert words in bar(app, "footer")


async def test_nothing_is_invented_where_nothing_is_measured_and_nothing_is_copied(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("6")
        assert texts(app, "benchmarks")[0].strip() == "this session has no measurement"
        await pilot.press("5")
        assert texts(app, "kernel_diff")[0].strip() == "this session holds no comparison"
        await pilot.press("y")
        assert "nothing to copy in KernelDiff" in bar(app, "footer")


async def test_typing_in_the_picker_filters_and_enter_takes_the_row_with_the_cursor(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("a", *"tpu", "enter")
        await until(pilot, lambda app=app: " tpu " in bar(app, "header"))
        await pilot.press("a", *"ethos", "down", *"zz", "enter")
        assert isinstance(app.screen, Picker), "nothing matches, so enter takes nothing"
        await pilot.press("backspace", "backspace", "down", "enter")
        await until(pilot, lambda app=app: "ethos_u55_executorch" in bar(app, "header"))
        await pilot.press("a", *"mock", "escape")
        assert "ethos_u55_executorch" in bar(app, "header") and not isinstance(app.screen, Picker)
