"""Does the cursor, and what is shown, stay where the user left it, and off what cannot be chosen?"""

from pathlib import Path

from textual.widgets import Input

from idbg.engine import lowered
from idbg_tui.messages import LineChosen
from idbg_tui.panes.benchmarks import charts
from idbg_tui.panes.graph.rows import GraphLines
from idbg_tui.panes.kernel_diff.pane import DiffLines
from tests.harness.recorded import app_of, state_of
from tests.harness.screen import SMALL, WIDE, bar, settle, until


async def test_a_smaller_terminal_names_every_pane_at_once(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.resize_terminal(*SMALL)
        line = app.body.query_one("TabLine")
        named = "1Gra  2Src  3 Node ✘  4 Find 20  5Dif  6Ben  7Log  8Rul  9Rep  0Why  -Swi"
        await until(pilot, lambda: line.render().plain == named)  # type: ignore[union-attr]


async def test_folding_all_leaves_the_cursor_on_the_module_that_it_was_in(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        lines, graph = app.body.query_one(GraphLines), app.state.graph
        assert graph is not None
        deep = next(node for node in graph.nodes if node.op.startswith("call") and node.module.startswith("layer3"))
        app.state.choose(graph.node_id(deep.name))
        app.show()
        await settle(pilot)
        await pilot.press("1", "f")
        await settle(pilot)
        heading = lines.heading_of(lines.cursor)
        assert heading is not None and lines.outline.headings[heading].title == "layer3"
        await pilot.press("f")
        await settle(pilot)
        assert lines.node_at(lines.cursor) == lines._index[deep.name]


async def test_a_filter_that_is_given_up_leaves_the_place_as_it_was(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("1", *"jjjjjjjjj")
        await settle(pilot)
        lines = app.body.query_one(GraphLines)
        before = lines.cursor, lines.scroll_offset.y, app.state.selected
        for end in (("escape",), ("enter", "escape")):
            await pilot.press("slash", *"relu", *"zzz", *end)
            await settle(pilot)
            assert (lines.cursor, lines.scroll_offset.y, app.state.selected) == before


async def test_the_cursor_goes_over_heads(tmp_path: Path) -> None:
    app = app_of("planted", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        lines = app.body.query_one(DiffLines)
        await pilot.press("5", "g")
        on = []
        for _ in range(len(lines.items)):
            on.append(lines.items[lines.cursor])
            await pilot.press("j")
        assert any(item.head for item in lines.items)
        assert not any(item.head for item in on)
        assert lines.cursor == len(lines.items) - 1


async def test_a_line_of_a_zoomed_log_leads_to_where_its_node_is_seen(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        node = app.state.node
        assert node is not None
        await pilot.press("7", "z")
        app.post_message(LineChosen(node.file, node.line, jump=True))
        await until(pilot, lambda: app.body.current == "graph")
        await pilot.press("7")
        app.post_message(LineChosen("nowhere.py", 1, jump=True))
        await until(pilot, lambda: "no node of the shown run" in bar(app, "footer"))
        assert app.body.current == "log"


async def test_while_a_line_is_typed_the_footer_names_no_letters(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("8", "right_square_bracket", "enter")
        await settle(pilot)
        assert bar(app, "footer").split() == [
            "esc",
            "ends",
            "editing",
            "^s",
            "save",
            "^z",
            "undo",
            "^y",
            "redo",
            "f1",
            "help",
            "^p",
        ]
        await pilot.press("escape", "1", "slash")
        await settle(pilot)
        assert isinstance(app.focused, Input)
        assert " ".join(bar(app, "footer").split()) == "enter takes it esc leaves it f1 help ^p"


async def test_what_is_typed_takes_the_place_of_the_name_that_is_offered(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("8", "S", *"mine")
        assert isinstance(app.focused, Input) and app.focused.value == "mine"


def test_the_bar_of_a_latency_ends_at_its_median() -> None:
    from idbg.views import bench, bench_charts

    chart = bench_charts.latency(bench.latest(state_of("benched").history.rows))
    rows = ["".join(text for text, _ in row) for row in charts.drawn(chart, 100)]
    (mock,) = (row for row in rows if "mock  151" in row)
    bars = mock.partition("┤")[2]
    assert bars.index("●") > 15 and set(bars[: bars.index("●")]) <= {"█", "▒"} and "━" in bars


def test_charts_open_at_the_first_that_has_something_to_show() -> None:
    state = state_of("resnet")
    place = charts.first_with_figures(state, 0)
    assert place > 0 and charts.CHARTS[place](state).figures


def test_the_part_of_a_kernel_that_hardly_runs_is_shown_last(monkeypatch: object) -> None:
    parts = ["0000000000001140 <kernel_py [clone .cold]>:\n  nop", "0000000000001180 <kernel>:\n  ret"]
    monkeypatch.setattr(lowered.shutil, "which", lambda name: name)  # type: ignore[attr-defined]
    monkeypatch.setattr(lowered, "_output", lambda command: "\n\n".join(parts))  # type: ignore[attr-defined]
    assert lowered._assembly(Path("k.so")).startswith("0000000000001180 <kernel>")


def test_what_is_refused_names_the_key_of_the_screen_too() -> None:
    from idbg.schema.errors import ConstraintViolation

    assert "--warn, s on the screen" in (ConstraintViolation((), accelerator="mock").hint or "")
