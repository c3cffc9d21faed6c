"""The stage table on the screen: where a comparison that failed lands, and where each of its rows leads."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from idbg.format.amounts import column_figure
from idbg.schema.attribution import StageError
from idbg.schema.diff import DiffReport, TensorDiff
from idbg.schema.graphs import NodeId
from idbg_tui.app import IdbgApp
from idbg_tui.controllers.routes import MessageRoutes
from idbg_tui.panes.kernel_diff.pane import DiffLines, KernelDiffPane
from idbg_tui.status_bar import flashes
from idbg_tui.widgets.side_by_side import Page
from tests.harness.blamed import (
    RECORDED,
    app_comparing,
    by_a_pass,
    recorded_by_a_kernel,
    recorded_by_a_pass,
    report,
    unjudged,
)
from tests.harness.compared import row_of, rows, subjects
from tests.harness.compared import texts as listed_texts
from tests.harness.node_facts import facts
from tests.harness.screen import SMALL, WIDE, bar, settle, texts, until

SENTENCE = (
    "wrong since post-grad: `mul_1` (tests/recordings/planted.py:18), made by post_grad_custom_post_pass; "
    "kernels are faithful"
)
WHY = "its dtype has no float64"


@asynccontextmanager
async def opened(
    folder: Path, found: DiffReport, size: tuple[int, int] = WIDE
) -> AsyncIterator[tuple[IdbgApp, Pilot[None], DiffLines]]:
    app = app_comparing(folder, found)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("5", "z")
        await settle(pilot)
        yield app, pilot, app.body.query_one(DiffLines)


def subject(app: IdbgApp) -> object:
    """What the row under the cursor is about."""
    return app.body.query_one(KernelDiffPane).subject


async def test_the_sentence_is_at_the_top_and_the_cursor_on_the_first_wrong_stage(tmp_path: Path) -> None:
    async with opened(tmp_path, recorded_by_a_pass()) as (app, _, lines):
        rows = texts(app, "kernel_diff")
        assert rows[1].strip() == SENTENCE
        assert subject(app) == RECORDED
        assert rows[lines.cursor].split() == ["▾", "✘", "post-grad", "3.0e-04", "3.0e-04", "mul_1", "planted.py:18"]
        assert rows[lines.cursor + 1].strip().startswith("made by post_grad_custom_post_pass (tests/plant.py:9)")
        stages, outputs = (next(at for at, row in enumerate(rows) if what in row) for what in ("7 stages", "2 outputs"))
        assert stages < lines.cursor < outputs
        assert flashes.of_comparison(app.state) == (
            f"{SENTENCE.replace('tests/recordings/', '')}: enter goes there",
            "error",
        )


async def test_the_header_says_since_which_stage_a_run_is_wrong(tmp_path: Path) -> None:
    async with opened(tmp_path, recorded_by_a_pass()) as (app, _, _):
        assert "✘ 1 of 2 tensors wrong since post-grad" in bar(app, "header")


async def test_enter_on_the_first_wrong_stage_goes_to_its_node(tmp_path: Path) -> None:
    async with opened(tmp_path, recorded_by_a_pass()) as (app, pilot, _):
        await pilot.press("enter")
        await settle(pilot)
        assert app.body.current == "graph" and app.state.selected is not None
        assert (app.state.selected.graph, app.state.selected.name) == (RECORDED.graph, "mul_1")
        await pilot.press("backspace")
        await settle(pilot)
        assert app.state.selected.name != "mul_1" or app.state.selected.graph != RECORDED.graph


async def test_the_node_says_that_it_is_the_first_bad_one_and_what_made_it(tmp_path: Path) -> None:
    async with opened(tmp_path, recorded_by_a_pass()) as (app, _, _):
        assert RECORDED.graph is not None and RECORDED.above_graph is not None
        app.state.choose(NodeId(RECORDED.graph, "mul_1"))
        told = {fact.label: fact for fact in facts(app.state)}
        assert told["wrong"].text == "since post-grad; the graph's worst output is off by 0.0003"
        made = next(fact for fact in facts(app.state) if fact.text.startswith("made by"))
        assert (made.row.refs.file, made.row.refs.line) == ("tests/plant.py", 9)
        app.state.choose(NodeId(RECORDED.above_graph, "mul_1"))
        told = {fact.label: fact for fact in facts(app.state)}
        assert told["wrong"].text == "in post-grad: mul_1 stands for it"
        assert told["wrong"].row.refs.nodes == (NodeId(RECORDED.graph, "mul_1"),)


async def test_a_stage_below_one_that_was_not_judged_leads_to_no_node_and_no_pass(tmp_path: Path) -> None:
    found = recorded_by_a_pass()
    rows = (*found.stages[:4], unjudged("partitioned", WHY), *found.stages[5:])
    async with opened(tmp_path, replace(found, stages=rows)) as (app, pilot, lines):
        assert "✘ 1 of 2 tensors wrong" in bar(app, "header") and "post-grad" not in bar(app, "header")
        flashed, _ = flashes.of_comparison(app.state) or ("", "")
        assert flashed.startswith("wrong at post-grad at the latest; before it partitioned was not judged")
        assert lines.text(lines.cursor).split() == ["▾", "✘", "post-grad", "3.0e-04", "3.0e-04"]
        assert lines.text(lines.cursor + 1).strip() == f"or before it: partitioned was not judged: {WHY}"
        chosen = app.state.selected
        await pilot.press("enter", "p")
        await settle(pilot)
        assert app.state.selected == chosen and app.body.current == "kernel_diff" and not app.screen.query(Page)
        for graph in (RECORDED.graph, RECORDED.above_graph):
            assert graph is not None
            app.state.choose(NodeId(graph, "mul_1"))
            assert "wrong" not in {fact.label for fact in facts(app.state)}


async def test_a_node_that_is_in_no_shown_graph_leads_to_the_one_above(tmp_path: Path) -> None:
    found = recorded_by_a_pass()
    hidden = tuple(replace(one, node="made_up") if one.bad else one for one in found.stages)
    async with opened(tmp_path, replace(found, stages=hidden)) as (app, pilot, _):
        await pilot.press("enter")
        await settle(pilot)
        assert app.state.selected is not None and app.state.selected.graph == RECORDED.above_graph


async def test_enter_on_a_guilty_row_of_kernels_goes_to_the_kernel(tmp_path: Path) -> None:
    found = recorded_by_a_kernel()
    async with opened(tmp_path, found) as (app, pilot, lines):
        chosen = subject(app)
        assert isinstance(chosen, StageError) and chosen.stage == "kernels" and lines.row_count
        await pilot.press("enter")
        await settle(pilot)
        assert app.body.current == "source"
        assert app.state.kernel is not None and found.culprit is not None
        assert app.state.kernel.name == found.culprit.name


async def test_p_shows_the_graph_before_and_after_the_pass_and_enter_its_node(tmp_path: Path) -> None:
    async with opened(tmp_path, recorded_by_a_pass()) as (app, pilot, _):
        await pilot.press("p")
        await settle(pilot)
        before, after = app.screen.query(Page)
        assert [page.text.title for page in (before, after)] == [
            "before post_grad_custom_post_pass",
            "after post_grad_custom_post_pass",
        ]
        assert "(%erf, 0.5)" in before.text.text and "(%erf, 0.5003)" in after.text.text
        await pilot.press("escape", "enter")
        await settle(pilot)
        assert app.state.selected is not None and app.state.selected.name == "mul_1"


async def test_p_shows_a_wrong_kernel_beside_its_graph(tmp_path: Path) -> None:
    async with opened(tmp_path, recorded_by_a_kernel()) as (app, pilot, _):
        await pilot.press("p")
        await settle(pilot)
        graph, kernel = app.screen.query(Page)
        assert graph.text.title == "post-grad" and "torch.ops.aten.mm.default" in graph.text.text
        assert kernel.text.title.startswith("cpp_fused") and "#include" in kernel.text.text


async def test_e_opens_what_made_it_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    monkeypatch.setattr(MessageRoutes, "on_editor_request", lambda _, asks: asked.append((asks.path, asks.line)))
    found = recorded_by_a_pass()
    async with opened(tmp_path, found) as (_, pilot, lines):
        await pilot.press("e")
        await settle(pilot)
        lines.place_cursor(row_of(lines, found, found.kernels[0]))
        await pilot.press("e")
        await until(pilot, lambda: len(asked) == 2)
        assert asked == [("tests/plant.py", 9), ("tests/recordings/planted.py", 17)]


async def test_a_stage_that_was_not_judged_says_why_and_is_unfolded(tmp_path: Path) -> None:
    found = recorded_by_a_pass()
    stages = (unjudged("joint", "what is below is right"), *found.stages[-2:-1], unjudged("kernels", WHY))
    found = replace(found, stages=stages)
    async with opened(tmp_path, found) as (app, pilot, lines):
        row = row_of(lines, found, found.stages[-1])
        assert "…" in lines.text(row) and lines.text(row + 1).strip() == f"not judged: {WHY}"
        assert {style for _, style in lines.draw(lines.items[row], 120)} <= {"", "dim", "accent"}
        assert "3 stages, 1 wrong, 2 not judged" in "\n".join(texts(app, "kernel_diff"))
        lines.place_cursor(row)
        await pilot.press("enter")
        await settle(pilot)
        assert not any(f"not judged: {WHY}" in text for text in texts(app, "kernel_diff"))
        await pilot.press("l")
        await settle(pilot)
        assert any(f"not judged: {WHY}" in text for text in texts(app, "kernel_diff"))


async def test_stages_are_filtered_ordered_and_copied_as_the_other_rows(tmp_path: Path) -> None:
    found = recorded_by_a_pass()
    async with opened(tmp_path, found) as (app, pilot, lines):

        def stages() -> list[str]:
            keys = [item.key for item in lines.items if isinstance(item.key, tuple) and item.key[0] == "stage"]
            return [str(key[2]) for key in keys]

        assert stages()[:2] == ["dynamo", "pre_grad"] and len(stages()) == 7
        await pilot.press("H")
        await settle(pilot)
        assert stages() == ["post_grad"]
        await pilot.press("H", "o")
        await settle(pilot)
        assert stages()[0] == "post_grad" and stages()[-1] == "dynamo"
        await pilot.press("slash", *"custom_post", "enter")
        await settle(pilot)
        assert stages() == ["post_grad"] and "1 of 15 rows with custom_post" in "\n".join(texts(app, "kernel_diff"))
        text, what = lines.copied(lines.cursor)
        assert "post-grad" in text and "planted.py:18" in text and what == "this row"


async def test_kernels_of_a_wrong_graph_are_called_faithful(tmp_path: Path) -> None:
    found = recorded_by_a_pass()
    async with opened(tmp_path, found) as (_, _, lines):
        kernels = [lines.text(row_of(lines, found, kernel)) for kernel in found.kernels]
        assert kernels and all("→" in text and "faithful to post-grad" in text for text in kernels)
    async with opened(tmp_path / "..", recorded_by_a_kernel()) as (_, _, lines):
        assert not any("faithful" in lines.text(row) for row in range(len(lines.items)))


@pytest.mark.parametrize("size", [SMALL, (120, 40), WIDE])
async def test_no_figure_and_no_place_is_cut_at_any_size(tmp_path: Path, size: tuple[int, int]) -> None:
    found = recorded_by_a_pass()
    async with opened(tmp_path, found, size) as (app, _, lines):
        rows = texts(app, "kernel_diff")
        assert all(len(row) <= size[0] for row in rows)
        (row,) = (row for row in rows if "✘ post-grad" in row)
        assert row.split()[3:] == ["3.0e-04", "3.0e-04", "mul_1", "planted.py:18"]
        item = lines.items[row_of(lines, found, found.kernels[3])]
        kernel = "".join(text for text, _ in lines.draw(item, lines.line_width))
        assert len(kernel) <= lines.line_width and column_figure(found.kernels[3].error) in kernel
        assert "planted.py:18" in kernel and "→" in kernel
        assert subject(app) == RECORDED


async def test_what_fails_by_no_stage_and_no_kernel_lands_on_the_output(tmp_path: Path) -> None:
    found = replace(recorded_by_a_pass(), stages=())
    async with opened(tmp_path, found) as (app, _, _):
        chosen = subject(app)
        assert isinstance(chosen, TensorDiff) and chosen.failed


def test_a_comparison_that_passed_shows_its_stages_quietly() -> None:
    found = replace(by_a_pass(), verdict="passed", outputs=(), kernels=())
    listed = [row for row in rows(found) if isinstance(row.key, tuple) and row.key[0] == "stage"]
    assert len(listed) == 7 and "reject" not in {style for row in listed for _, style in row.draw(120)}
    assert any(text.split("  ")[0].strip() == "7 stages" for text in listed_texts(found))
    assert all(isinstance(about, StageError) for about in subjects(found))


def test_a_comparison_without_stages_names_the_key_that_compares_them() -> None:
    plain = report(kernels=(), stages=())
    shown = [text.strip() for text in listed_texts(plain, key="D")]
    assert shown[1] == "where they go wrong is not known: D says which stage, node, pass or kernel"
    assert not any("is not known: D" in text for text in listed_texts(by_a_pass(), key="D"))


def test_in_little_room_figures_and_places_stay() -> None:
    for width in (60, 78, 100, 140):
        text = next(text for text in listed_texts(by_a_pass(), width=width) if "✘ post-grad" in text)
        assert len(text) <= width and "mul_3" in text and "plant.py:21" in text
        assert text.count("3.0e-04") == (2 if width > 60 else 1)
