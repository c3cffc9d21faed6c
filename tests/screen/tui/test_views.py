"""Do the views of the peak and of the partitions tell what is so, fit, and lead to nodes?"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from idbg.checking.rule_costs import CostAnswer, CostQuestion
from idbg.checking.rule_costs import cost_answers as answers_of
from idbg.schema import events
from idbg.schema.graphs import Graph, GraphId, Node, TensorMeta
from idbg.schema.programs import Program, Target
from idbg_tui.panes.graph import memory
from idbg_tui.state import queries
from idbg_tui.state.costs import AT_ONCE
from idbg_tui.state.state import State
from idbg_tui.widgets.listing import Listing
from idbg_tui.widgets.search import SearchLine
from idbg_tui.widgets.section_rows import Look, Row, table_key
from tests.harness.recorded import app_of, big, chain, count, under
from tests.harness.rule_texts import FALL, PAD
from tests.harness.screen import SMALL, WIDE, bar, settle, until


def texts(entries: Sequence[Row], width: int) -> list[str]:
    return ["".join(text for text, _ in entry.draw(width)).rstrip() for entry in entries]


def test_what_is_alive_at_the_peak_is_listed_largest_first_and_adds_up() -> None:
    state = under("resnet", PAD)
    assert queries.peak(state) is not None and state.graph is not None
    _, profile = queries.peak(state)
    found = memory.rows(state, Look(120))
    rows = [row for row in found if row.nodes]
    assert [row.nodes[0].name for row in rows] == [one.node for one in profile.alive]
    assert sum(one.nbytes for one in profile.alive) == profile.peak_bytes
    first = texts(rows, 120)[0]
    share = f"{100 * profile.alive[0].nbytes / profile.peak_bytes:.1f}"
    assert first.split()[:5] == [profile.alive[0].node, "9.0", "MiB", share, "%"] and rows[0].here
    told = " ".join(texts(found, 120))
    assert f"50.8 MiB at {profile.peak_at} (torchvision/…/resnet.py:269)" in told and "weights and buffers take" in told


def test_the_users_line_stands_beside_what_the_program_made() -> None:
    rows = texts(memory.rows(under("resnet", PAD), Look(140)), 140)
    assert any("convolution" in row and "resnet.py:268  x = self.conv1(x)" in row for row in rows)


def test_a_graph_of_the_level_that_needs_more_is_named_first() -> None:
    state = under("mlp_train", PAD)
    assert state.graph is not None and queries.peak(state) is not None and queries.peak(state)[0] is not state.graph
    lead = next(entry for entry in memory.rows(state, Look(120)) if entry.nodes)
    assert lead.nodes[0].graph.stage == "backward" and not lead.here
    assert "backward needs more" in texts([lead], 120)[0]


def test_partitions_are_told_with_their_boundaries_and_the_best_change_at_the_top() -> None:
    state = under("resnet", FALL)
    ((_, rule_costs),) = queries.rule_costs(state) or []
    now = rule_costs.partitions
    assert now is not None
    found = memory.partition_rows(state, Look(120))
    rows = texts(found, 120)
    assert rows[1] == " → allowing 'relu is denied' (no relu): nothing falls back"
    assert rows[3].split() == ["partition", "nodes", "values", "crosses", "which"]
    parts = [row for row in rows[4:] if row.lstrip("▾● ").startswith(("p", "host"))]
    assert len(parts) == now.count + 1
    assert parts[0].endswith(f"{now.parts[0][0]} to {now.parts[0][-1]}")
    assert sum(" from " in row for row in rows) == sum(one.to >= 0 for one in now.boundaries)
    assert sum("● " in row for row in rows) == 1  # the selected node's


def test_partitions_are_sorted_by_what_crosses_each_with_its_boundaries() -> None:
    found = memory.partition_rows(under("resnet", FALL), Look(76))
    table = next(row.table for row in found if row.head)
    assert table is not None
    look = Look(76, sorts={table_key(table): ("nodes", "down")})
    sorted_rows = texts(memory.partition_rows(under("resnet", FALL), look), 76)
    assert " p7 " in sorted_rows[5] and " 31 " in sorted_rows[5] and " MiB " in sorted_rows[5]
    assert " from host " in sorted_rows[6] and sorted_rows[4].startswith("   partition")


def test_where_nothing_falls_back_the_view_says_so_and_what_would() -> None:
    rows = " ".join(texts(memory.partition_rows(under("resnet", PAD), Look(120)), 120))
    assert "one partition" in rows and 'severity "fallback"' in rows


def test_violations_are_told_apart_from_the_calls_that_they_send_to_the_host() -> None:
    state = under("resnet", FALL.replace('deny = ["relu"]', 'deny = ["max_pool*", "_low_memory_max_pool*"]'))
    ((findings, rule_costs),) = queries.rule_costs(state) or []
    assert rule_costs.partitions is not None and len(rule_costs.partitions.host) != findings.by_severity["fallback"]
    first = texts(memory.partition_rows(state, Look(120)), 120)[0]
    assert first.endswith(f"; 1 violation, {len(rule_costs.partitions.host)} calls on the host")


@pytest.mark.parametrize("rules", [FALL, ""])
def test_a_graph_that_is_rejected_does_not_read_as_one_that_fits(rules: str) -> None:
    reject = PAD.replace('"pad"', '"reject"')
    rows = texts(memory.partition_rows(under("resnet", rules + reject), Look(120)), 120)
    assert rows[1].startswith(" ✘ 435 violations of severity reject: the accelerator does not take this graph")
    assert "the graph is one partition" not in rows[0]


def test_parts_of_a_tuple_have_their_own_shapes_at_the_peak() -> None:
    state = State()
    tensors = (TensorMeta("float32", (8, 8), (8, 1)), TensorMeta("int64", (8, 2), (2, 1)))
    pool = Node(name="pool", op="call_function", target="aten.max_pool2d_with_indices.default", tensors=tensors)
    users = [
        Node(name=f"item{at}", op="call_function", target="operator.getitem", inputs=("pool",), args=f"pool, {at}",
             tensors=tensors[at : at + 1])
        for at in (0, 1)
    ]  # fmt: skip
    last = Node(name="output", op="output", target="output", inputs=("item0", "item1"))
    graph = Graph(GraphId("0/0", "inference"), (pool, *users, last))
    state.apply([events.RunStarted(run=1, program=Program("m.py"), target=Target(rules=PAD))])
    state.apply([events.GraphCaptured(run=1, graph=graph)])
    count(state)
    rows = [text for text in texts(memory.rows(state, Look(120)), 120) if " pool " in text]
    assert ["f32[8,8]" in rows[0], "i64[8,2]" in rows[1], len(rows)] == [True, True, 2]


def test_what_is_not_counted_yet_is_not_told_as_a_number() -> None:
    state = big(FALL)
    for rows in (memory.rows, memory.partition_rows):
        assert "not counted yet" in texts(rows(state, Look(100)), 100)[0]


@pytest.mark.parametrize("width", [70, 100, 140])
def test_every_row_fits(width: int) -> None:
    state = under("resnet", FALL + PAD)
    for rows in (memory.rows, memory.partition_rows):
        assert all(len(row) <= width for row in texts(rows(state, Look(width)), width))


@pytest.mark.parametrize("size", [WIDE, SMALL])
async def test_the_peak_opens_with_a_key_and_enter_goes_to_the_node(tmp_path: Path, size: tuple[int, int]) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("M")
        await settle(pilot)
        listing = app.screen
        assert isinstance(listing, Listing) and "peak" in str(listing.query("Vertical").first().border_title)
        alive = listing.lines.items[listing.lines.cursor].nodes[0]
        await pilot.press("j", "enter")
        await settle(pilot)
        assert not isinstance(app.screen, Listing)
        assert app.state.selected is not None and app.state.selected != alive
        assert app.state.selected.name in (app.body.panes["node"].border_title or "")
        await pilot.press("backspace")
        await settle(pilot)
        assert app.state.node is not None and app.state.node.op.startswith("call")


@pytest.mark.parametrize("size", [WIDE, SMALL])
async def test_partitions_open_with_a_key_follow_an_edit_and_close_with_it(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("P")
        await settle(pilot)
        listing = app.screen
        assert isinstance(listing, Listing) and "nothing falls back" in listing.lines.text(0)
        app.session.edit_rules(FALL)
        await until(pilot, lambda: "partitions" in listing.lines.text(0))
        await pilot.press("P")
        await settle(pilot)
        assert not isinstance(app.screen, Listing)


async def test_a_row_and_the_whole_list_can_be_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []
    monkeypatch.setattr(
        "idbg_tui.terminal.suspend.copy", lambda app, text, what, folder: copied.append(text) or "copied"
    )
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        await pilot.press("M", "y", "Y")
        await until(pilot, lambda: len(copied) == 2)
        assert copied[0].startswith("arg81_1 ") and "9.0 MiB" in copied[0] and "layer4.0.conv2" in copied[0]
        assert copied[0] in copied[1] and copied[1].count("\n") > 50


async def test_a_text_is_found_in_a_list_over_the_screen(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        await pilot.press("M")
        await settle(pilot)
        listing = app.screen
        assert isinstance(listing, Listing)
        await pilot.press("slash", *"layer4.0.conv2")
        await settle(pilot)
        lines, typed = listing.lines, listing.query_one(SearchLine)
        assert "layer4.0.conv2" in lines.text(lines.cursor) and typed.has_focus
        assert lines.region.bottom <= typed.region.y or not lines.region.overlaps(typed.region)
        await pilot.press("enter")
        await settle(pilot)
        assert lines.has_focus and any(style == "match" for _, style in lines.row(lines.cursor, 100))
        await pilot.press("escape")
        await settle(pilot)
        assert app.screen is listing, "the first escape ends the search"
        await pilot.press("escape")
        await settle(pilot)
        assert app.screen is not listing


async def test_a_large_graph_is_counted_beside_the_screen(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        graph = chain(AT_ONCE + 500)
        run = app.state.run
        assert run is not None
        app._take([events.RulesEdited(text=FALL, origin="editor"), events.GraphCaptured(run=run.number, graph=graph)])
        assert queries.cost_questions(app.state)
        assert "… partitions" in bar(app, "header") and "peak" not in bar(app, "header")
        await until(pilot, lambda: not queries.cost_questions(app.state))
        assert "all on the host" in bar(app, "header") and "peak 256 B" in bar(
            app, "header"
        )  # one relu and the one before it


async def test_several_large_graphs_are_counted_once_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[GraphId] = []

    def cost_answers(question: CostQuestion) -> Iterator[CostAnswer]:
        asked.append(question.findings.graph.id)
        return answers_of(question)

    monkeypatch.setattr("idbg_tui.state.cost_thread.cost_answers", cost_answers)
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        run = app.state.run
        assert run is not None
        graphs = [Graph(GraphId(f"{frame}/0", "inference"), chain(AT_ONCE + 1).nodes) for frame in range(3)]
        rules = events.RulesEdited(text=FALL, origin="editor")
        app._take([rules, *(events.GraphCaptured(run=run.number, graph=graph) for graph in graphs)])
        await until(pilot, lambda: not queries.cost_questions(app.state))
        await settle(pilot)
        assert sorted(asked, key=str) == [graph.id for graph in graphs]
