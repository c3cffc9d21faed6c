"""Does W list every decision about a node, kernel or line, and does enter go to the row that tells more?"""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from idbg.schema.decisions.decided import Decision
from idbg.schema.graphs import GraphId, NodeId
from idbg_tui.app import IdbgApp
from idbg_tui.panes.source.pane import SourcePane
from idbg_tui.panes.why.pane import WhyPane
from idbg_tui.state import decisions
from idbg_tui.widgets.listing import Listing
from tests.harness.recorded import app_of, state_of
from tests.harness.screen import WIDE, bar, settle

BELOW = GraphId("0/0", "post_grad", "forward")


def told(app: IdbgApp) -> list[str]:
    assert isinstance(app.screen, Listing)
    lines = app.screen.lines
    return [lines.text(index).strip() for index in range(len(lines.items))]


async def asked(pilot: Pilot[None], *keys: str) -> None:
    await settle(pilot)
    await pilot.press(*keys)
    await settle(pilot)


def some_decisions() -> tuple[NodeId, list[Decision]]:
    """A node of a recorded run, and decisions of which the first four are about it."""
    state = state_of("mlp_train")
    run = state.shown
    assert run is not None and state.provenance is not None
    kernel = next(kernel for kernel in run.kernels if kernel.part == "forward" and kernel.source and kernel.nodes)
    node = NodeId(BELOW, kernel.nodes[0])
    record = run.graphs[BELOW].by_name[node.name]
    other = next(name for name in run.graphs[BELOW].by_name if name not in kernel.nodes)
    return node, [
        Decision(kind="fusion", words="not fused with another", why="sizes differ", nodes=(node,)),
        Decision(kind="autotune", words="the first was fastest", kernels=(("0/0", kernel.name),)),
        Decision(kind="guard", words="guards its argument", file=record.file, line=record.line),
        Decision(kind="cache", words="missed: the inputs differ", frame="0/0"),
        Decision(kind="fusion", words="of another node", nodes=(NodeId(BELOW, other),)),
        Decision(kind="cache", words="of another frame", frame="7/0"),
    ]


def test_what_is_about_a_node_its_line_and_its_frame_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    node, made = some_decisions()
    monkeypatch.setattr(decisions, "decisions", lambda run: made)
    groups = decisions.of_node(state_of("mlp_train"), node)
    assert [found for _, found in groups] == [made[:2], [made[2]], [made[3]]]
    assert [words for words, _ in groups] == [f"about {node.name}", "about its line", "about all of frame 0/0"]


def test_what_is_about_a_node_is_about_the_same_computation_above(monkeypatch: pytest.MonkeyPatch) -> None:
    node, made = some_decisions()
    monkeypatch.setattr(decisions, "decisions", lambda run: made)
    state = state_of("mlp_train")
    assert state.provenance is not None
    above = state.provenance.counterparts(node, GraphId("0/0", "dynamo"))
    assert above and made[0] in decisions.of_node(state, above[0])[0][1]


def test_what_is_about_a_kernels_nodes_is_about_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    _, made = some_decisions()
    monkeypatch.setattr(decisions, "decisions", lambda run: made)
    frame, name = made[1].kernels[0]
    assert [found for _, found in decisions.of_kernel(state_of("mlp_train"), frame, "forward", name)] == [
        [made[1]],
        [made[0]],
        [made[3]],
    ]


async def test_W_on_a_node_lists_them_and_one_that_is_gone_to_shows_its_view(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, made = some_decisions()
    monkeypatch.setattr(decisions, "decisions", lambda run: made)
    app = app_of("mlp_train", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.state.choose(node)
        await asked(pilot, "W")
        said = "\n".join(told(app))
        assert "not fused with another" in said and "sizes differ" in said and "of another" not in said
        await asked(pilot, "enter")
        assert app.body.current == "why" and app.query_one(WhyPane).view == "fusion"


async def test_W_in_the_users_source_is_about_the_line_and_W_closes_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "own.py"
    file.write_text("\n" * 300)
    line = Decision(kind="break", words="printed here", file=str(file), line=1)
    monkeypatch.setattr(decisions, "decisions", lambda run: [line])
    app = app_of("mlp_train", tmp_path, replacing={"examples/mlp_train.py": str(file)})
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.query_one(SourcePane).choose_view("python")
        await asked(pilot, "2", "g", "W")
        assert any("printed here" in row for row in told(app))
        await asked(pilot, "W")
        assert not isinstance(app.screen, Listing)


async def test_what_nothing_was_told_of_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "decisions", lambda run: [])
    app = app_of("mlp_train", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await asked(pilot, "W")
        assert len(told(app)) == 1 and "no decision about it" in told(app)[0]
        await asked(pilot, "enter")
        assert "leads" in bar(app, "footer")
