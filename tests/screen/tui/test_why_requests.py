"""Does W list every decision about a node, kernel or line, and does enter go to the row that tells more?"""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from idbg.schema.decisions.inductor import CacheAnswer
from idbg.schema.graphs import GraphId, NodeId
from idbg.schema.runs import Run
from idbg.views import about
from idbg.views.tree import Section, kernel_refs, referring
from idbg_tui.app import IdbgApp
from idbg_tui.panes.source.pane import SourcePane
from idbg_tui.panes.why.pane import WhyPane
from idbg_tui.state.state import State
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


def of_run(state: State) -> tuple[Run, NodeId, tuple[str, str, str]]:
    """A recorded run, a node of it and the kernel that computes the node."""
    assert state.shown is not None
    kernel = next(one for one in state.shown.kernels if one.part == "forward" and one.source and one.nodes)
    return state.shown, NodeId(BELOW, kernel.nodes[0]), kernel_refs(kernel)


def found(state: State, subject: about.Subject) -> dict[str, Section]:
    assert state.shown is not None
    return dict(about.sections(state.shown, subject))


def test_what_is_about_a_node_is_its_kernel_its_line_and_its_frame() -> None:
    state = state_of("mlp_train")
    run, node, kernel = of_run(state)
    assert state.provenance is not None
    sections = found(state, about.node(run, state.provenance, node))
    kernels = {row.refs.kernel for row in referring(sections["fusion"]) if row.refs.kernel}
    assert kernels == {kernel}
    nodes = {name for row in referring(sections["fusion"]) for name in row.refs.nodes}
    assert node in nodes and len(nodes) < len(run.graphs[BELOW].nodes)
    answers = {frame: [CacheAnswer(cache="fx_graph", outcome="miss", reason="sizes")] for frame in ("0/0", "7/0")}
    run.decided.of(CacheAnswer).update(answers)
    assert {row.refs.frame for row in referring(found(state, about.node(run, state.provenance, node))["cache"])} == {
        "0/0"
    }


def test_what_is_about_a_node_is_about_the_same_computation_above() -> None:
    state = state_of("mlp_train")
    run, node, _ = of_run(state)
    assert state.provenance is not None
    above = state.provenance.counterparts(node, GraphId("0/0", "dynamo"))
    assert node in about.node(run, state.provenance, above[0]).nodes


def test_what_is_about_a_kernels_nodes_is_about_the_kernel() -> None:
    state = state_of("mlp_train")
    run, node, kernel = of_run(state)
    assert state.provenance is not None
    subject = about.kernel(run, state.provenance, *kernel)  # type: ignore[arg-type]
    assert node in subject.nodes and subject.kernels == {kernel}
    kernels = {row.refs.kernel for row in referring(found(state, subject)["fusion"]) if row.refs.kernel}
    assert kernel in kernels and len(kernels) < len(run.kernels)


async def test_W_on_a_node_lists_them_and_one_that_is_gone_to_shows_its_view(tmp_path: Path) -> None:
    app = app_of("mlp_train", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        run, node, kernel = of_run(app.state)
        app.state.choose(node)
        await asked(pilot, "W")
        said = told(app)
        assert any(line.startswith("Fusion") for line in said) and any(kernel[2] in line for line in said)
        others = {one.name for one in run.kernels} - {kernel[2]}
        assert not any(line.split()[:1] == [name] for line in said for name in others)
        await asked(pilot, "enter")
        pane = app.query_one(WhyPane)
        assert app.body.current == "why" and pane.view == "fusion"
        assert pane.lines.chosen is not None and pane.lines.text(pane.lines.cursor).strip() in "\n".join(said)


async def test_W_in_the_users_source_is_about_the_line_and_W_closes_it_again(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("\n" * 300)
    app = app_of("breaking", tmp_path, replacing={"tests/recordings/breaking.py": str(file)})
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.query_one(SourcePane).choose_view("python")
        line = app.state.run.breaks[0].line  # type: ignore[union-attr]
        await asked(pilot, "2", "g", *(["down"] * (line - 1)), "W")
        assert any("print() cannot be in a graph" in row for row in told(app))
        await asked(pilot, "W")
        assert not isinstance(app.screen, Listing)


async def test_what_nothing_was_told_of_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(about, "VIEWS", ())
    app = app_of("mlp_train", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await asked(pilot, "W")
        assert len(told(app)) == 1 and "no decision about it" in told(app)[0]
        await asked(pilot, "enter")
        assert "leads" in bar(app, "footer")
