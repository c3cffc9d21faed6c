"""The list of violations and the selected node follow each other; what an edit fixed is listed for a moment."""

import re
from pathlib import Path

import pytest

from idbg.render.cells import first_names
from idbg.schema.graphs import NodeId
from idbg_tui.panes.findings.pane import FindingsPane
from idbg_tui.state import queries
from idbg_tui.widgets.listing import Listing
from idbg_tui.widgets.section_list import SectionLines
from tests.harness.recorded import app_of
from tests.harness.rule_texts import DENY, FALL, PEAK
from tests.harness.screen import WIDE, settle, texts, until

PAD = '[[rules]]\nkind = "alignment"\nmultiple = 64\nseverity = "pad"\n'


def rows_of(lines: SectionLines, kind: str) -> list[int]:
    """The rows of "rule", "line", "cost" or "gone"."""
    return [at for at, row in enumerate(lines.items) if isinstance(row.key, tuple) and row.key[0] == kind]


async def test_a_step_of_the_cursor_selects_the_rows_node_and_a_heading_selects_none(tmp_path: Path) -> None:
    app = app_of("mlp_train", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        pane = app.query_one(FindingsPane)
        before = app.state.selected
        await pilot.press("4", "g")
        await settle(pilot)
        assert app.state.selected == before and pane.lines.cursor == rows_of(pane.lines, "rule")[0]
        await pilot.press("j")
        await settle(pilot)
        line = pane.lines.items[pane.lines.cursor]
        assert app.state.selected == line.nodes[0]
        assert line.nodes[0].name in (app.body.panes["node"].border_title or "")


async def test_the_cursor_goes_to_the_row_of_a_node_that_was_selected_elsewhere(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        lines = app.query_one(FindingsPane).lines
        seen = set()
        for _ in range(6):
            await pilot.press("v")
            await settle(pilot)
            assert app.state.selected in lines.items[lines.cursor].nodes
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
        lines = app.query_one(FindingsPane).lines
        assert rows_of(lines, "gone")[0] > rows_of(lines, "line")[-1]
        gone = " ".join(texts(app, "findings")).partition("gone:")[2]
        assert "alignment" in gone and ".py:" in gone
        await pilot.press("4", "g", "j")
        await settle(pilot)
        assert not rows_of(lines, "gone")


async def test_what_went_is_forgotten_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("idbg_tui.state.state.ONE_EDIT", 0.0)
    monkeypatch.setattr("idbg_tui.panes.findings.pane.GONE_SECONDS", 0.2)
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.session.edit_rules(PAD + DENY)
        await settle(pilot)
        app.session.edit_rules(DENY)
        await settle(pilot)
        pane = app.query_one(FindingsPane)
        await until(pilot, lambda: not rows_of(pane.lines, "gone"))


async def test_the_cost_stands_below_its_rule_and_enter_on_it_opens_the_partitions(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.session.edit_rules(FALL)
        lines = app.query_one(FindingsPane).lines
        await until(pilot, lambda: bool(rows_of(lines, "cost")))
        between = lines.items[rows_of(lines, "rule")[0] + 1 : rows_of(lines, "cost")[0]]
        assert all(row.key[1:2] == ("more",) for row in between)  # type: ignore[index]  # of the rule's own words
        assert any("→ runs on the host: 18 partitions" in row for row in texts(app, "findings"))
        await pilot.press("4", "g", "j", "enter")
        await settle(pilot)
        assert isinstance(app.screen, Listing)


async def test_enter_on_a_peak_goes_to_its_node_and_a_walk_stops_there_once(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.session.edit_rules(PEAK)
        lines = app.query_one(FindingsPane).lines
        await until(pilot, lambda: bool(rows_of(lines, "cost")))
        assert queries.counts(app.state) == {"reject": 1} and queries.peak(app.state) is not None
        at = queries.peak(app.state)[1].peak_at
        await pilot.press("4", "g", "j", "enter")
        await settle(pilot)
        assert app.state.selected is not None and app.state.selected.name == at
        await pilot.press("v")
        await settle(pilot)
        assert app.state.selected.name == at
        assert lines.cursor in (*rows_of(lines, "cost"), *rows_of(lines, "line"))
        heading = next(row for row in texts(app, "graph") if "✘" in row and "nodes" in row)
        assert heading.rstrip().endswith("✘ 1")  # the module that it is in has one violation, not one for each node


async def test_x_on_a_peak_asks_for_a_repro_of_that_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[NodeId | None, str]] = []
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        monkeypatch.setattr(app.session, "export_repro", lambda node, rule="": asked.append((node, rule)))
        app.session.edit_rules(PAD + PEAK)
        lines = app.query_one(FindingsPane).lines
        await until(pilot, lambda: bool(rows_of(lines, "cost")))
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


async def test_what_padding_adds_stays_whole_where_the_list_is_narrow(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=(80, 40)) as pilot:
        await settle(pilot)
        app.session.edit_rules(PAD)
        lines = app.query_one(FindingsPane).lines
        await until(pilot, lambda: bool(rows_of(lines, "cost")))
        shown = ["".join(text for text, _ in lines.row(row, 78)) for row in rows_of(lines, "line")]
        assert all(len(row) <= 78 for row in shown)
        assert all(re.search(r" [\d,.]+ % +\d+$", row) is not None for row in shown)
        assert len({row.index("dim 0") for row in shown}) == 1  # also of the nodes without a line


async def test_a_wide_list_names_all_that_it_has_room_for(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=(200, 50)) as pilot:
        await settle(pilot)
        lines = app.query_one(FindingsPane).lines
        await pilot.press("4", "z")
        await settle(pilot)
        row = max(rows_of(lines, "line"), key=lambda row: len(lines.items[row].nodes))
        nodes = lines.items[row].nodes
        wide = "".join(text for text, _ in lines.row(row, lines.line_width))
        assert len(nodes) > 4 and all(node.name in wide for node in nodes)
        assert "self.conv1(x)" in wide and wide.endswith(f" {len(nodes)}")


async def test_a_narrow_list_names_a_node_whole_and_aligns_the_code(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        lines = app.query_one(FindingsPane).lines
        await pilot.press("4")
        await settle(pilot)
        rows = rows_of(lines, "line")
        shown = ["".join(text for text, _ in lines.row(row, lines.line_width)) for row in rows]
        starts = ["out", "out", "identity", "x"]  # of the code
        firsts = [lines.items[row].nodes[0].name for row in rows]
        assert len(rows) == 4 and all(f"  {name} " in text for name, text in zip(firsts, shown, strict=True))
        assert len({text.index(" = self.") - len(code) for text, code in zip(shown, starts, strict=True)}) == 1


def test_of_a_list_of_names_the_first_that_fit_are_shown_whole() -> None:
    names = "convolution_1, convolution_3, convolution_5"
    assert first_names(names, 43) == names
    assert first_names(names, 42) == "convolution_1, convolution_3, …"
    assert first_names(names, 16) == "convolution_1, …"
    assert first_names(names, 13) == "convolution_1"
    assert first_names(names, 11) == "convo…ion_1"  # its end differs from others


async def test_enter_on_a_rule_goes_to_its_first_node_and_h_folds_it(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        lines = app.query_one(FindingsPane).lines
        await pilot.press("4", "G")
        await settle(pilot)
        last = app.state.selected
        await pilot.press("g", "enter")
        await settle(pilot)
        rule = lines.items[rows_of(lines, "rule")[0]]
        assert rule.is_open and rule.sought is not None
        assert app.state.selected == rule.sought.node != last
        assert lines.cursor == rows_of(lines, "line")[0]
        await pilot.press("g", "h")
        await settle(pilot)
        assert not rows_of(lines, "line") and rows_of(lines, "rule")


@pytest.mark.parametrize("steps", [(), ("j", "j")], ids=["rule", "line"])
async def test_the_cursor_stays_on_its_row_while_a_rule_is_edited_and_the_counts_change(
    steps: tuple[str, ...], tmp_path: Path
) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.session.edit_rules(PAD)
        lines = app.query_one(FindingsPane).lines
        await until(pilot, lambda: lines.items[rows_of(lines, "rule")[0]].key == ("rule", "alignment"))
        await pilot.press("4", "g", *steps)
        await settle(pilot)
        key, before = lines.items[lines.cursor].key, texts(app, "findings")
        app.session.edit_rules(DENY + PAD.replace("64", "32"))
        await until(pilot, lambda: len(rows_of(lines, "rule")) == 2)
        await settle(pilot)
        assert lines.items[lines.cursor].key == key
        assert texts(app, "findings") != before


async def test_rules_are_sorted_and_folded_by_keys(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.session.edit_rules(PAD + DENY)
        lines = app.query_one(FindingsPane).lines
        await until(pilot, lambda: len(rows_of(lines, "rule")) == 2)

        def rules() -> list[object]:
            return [lines.items[row].key[1] for row in rows_of(lines, "rule")]  # type: ignore[index]

        assert rules() == ["unsupported_ops", "alignment"]
        await pilot.press("4", "s", *"count", "enter")
        await until(pilot, lambda: rules() == ["alignment", "unsupported_ops"])
        await pilot.press("f")
        await until(pilot, lambda: not rows_of(lines, "line") and len(rows_of(lines, "rule")) == 2)
