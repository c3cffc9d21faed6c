"""Stages of other compilers on the screen, from a recorded session of IREE and OpenVINO."""

from pathlib import Path

import pytest

from idbg.schema import events
from idbg.schema.code import CompilerStage
from idbg.schema.graphs import GraphId
from idbg.session.stage_texts import SHOWN, text_of
from idbg_tui.messages import BesideRequest, NodeChosen, StageChosen
from idbg_tui.panes.graph.title import titles
from idbg_tui.panes.source.pane import Caption, SourcePane
from idbg_tui.state import navigation, queries
from idbg_tui.state.state import State
from idbg_tui.widgets.code import CodeView
from idbg_tui.widgets.side_by_side import SideBySide
from tests.harness.pane_host import Host, follow_choices
from tests.harness.recorded import app_of, log
from tests.harness.screen import WIDE, settle

INFERENCE, DYNAMO = GraphId("0/0", "inference"), GraphId("0/0", "dynamo")


def state_of_run(number: int) -> State:
    """The recorded session up to the end of one of its runs: 1 and 2 are of IREE, 3 is of OpenVINO."""
    state = State(live=False)
    state.apply(event for event in log("foreign") if not isinstance(event, events.RunEvent) or event.run <= number)
    return state


def key_of(state: State, name: str) -> tuple[str, str]:
    stage = next(each for each in queries.compiler_stages(state) if each.name == name)
    state.choose_stage(stage.key)
    return stage.compiler, stage.name


async def shown(state: State, *keys: str) -> tuple[Host, int, str]:
    """The pane after these keys: the app, the cursor's line and the caption."""
    pane = SourcePane()
    app = Host(pane, state, follow_choices)
    async with app.run_test(size=(100, 30)) as pilot:
        for key in keys:
            await pilot.press(key)
        await pilot.pause()
        return app, pane.query_one(CodeView).line, str(pane.query_one(Caption).render())


def line_of(state: State, text: str) -> int:
    stage = queries.shown_stage(state)
    assert stage is not None
    return next(number for number, line in enumerate(stage.text.split("\n"), 1) if text in line)


# the stage bar


def test_the_stage_bar_has_the_stages_below_the_graphs() -> None:
    longest, *shorter = (title.plain for title in titles(state_of_run(1), "1 Graph", ""))
    assert "dynamo [inference] iree  torch  input  global-optimization  flow " in longest and " vm " in longest
    assert any("iree  9 stages" in title for title in shorter)


def test_the_keys_of_stages_go_on_below_the_last_graph_and_back() -> None:
    state = state_of_run(1)
    state.choose_graph(INFERENCE)
    seen = []
    while navigation.step_stage(state, 1):
        seen.append(state.stage[3] if state.stage else "")
    assert seen[:3] == ["torch", "input", "global-optimization"] and seen[-1] == "vm" and len(seen) == 9
    while state.stage is not None:
        assert navigation.step_stage(state, -1)
    assert state.graph_id == INFERENCE
    assert navigation.step_stage(state, -1) and state.graph_id == DYNAMO


def test_a_graph_that_is_chosen_ends_the_choice_of_a_stage() -> None:
    state = state_of_run(1)
    assert key_of(state, "flow") == ("iree", "flow") and state.stage is not None
    state.choose_graph(DYNAMO)
    assert state.stage is None


# the pane Source


async def test_a_foreign_backend_shows_its_first_stage_and_where_the_node_is() -> None:
    state = state_of_run(1)
    state.choose(state.shown.graphs[INFERENCE].node_id("addmm"))  # type: ignore[union-attr]
    _, line, caption = await shown(state)
    assert caption.startswith("iree: torch  1 of 9 · dumped · 2.8 KiB · at ") and line == line_of(
        state, "torch.aten.mm "
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("input", "linalg.matmul ins(%2"),
        ("flow", "flow.executable.export public @main$async_dispatch_0"),
        ("vm", "@hal.command_buffer.dispatch"),
    ],
)
def test_a_node_is_marked_in_each_phase_of_iree(name: str, text: str) -> None:
    state = state_of_run(1)
    state.choose(state.shown.graphs[INFERENCE].node_id("addmm"))  # type: ignore[union-attr]
    key_of(state, name)
    stage = queries.shown_stage(state)
    assert stage is not None and stage.name == name
    marked = state.stage_lines.lines(stage, queries.nodes_in_stage(state, stage))
    lines = stage.text.split("\n")
    assert any(text in lines[line - 1] for line in marked)


async def test_a_line_of_linalg_selects_its_node_and_the_users_line() -> None:
    state = state_of_run(1)
    key_of(state, "flow")
    at = line_of(state, "linalg.softmax")
    pane = SourcePane()
    app = Host(pane, state, follow_choices)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        pane.query_one(CodeView).go(at - 1)
        await pilot.press("down")
        await pilot.pause()
    (chosen, *_) = app.of(NodeChosen)
    assert chosen.node.name == "_softmax"
    assert state.node is not None and state.node.code == "return scores.softmax(-1)"


async def test_a_layer_of_openvino_selects_the_node_of_dynamos_graph() -> None:
    state = state_of_run(3)
    key_of(state, "after transformations")
    at = line_of(state, "relu/aten.relu.default/Relu")
    pane = SourcePane()
    app = Host(pane, state, follow_choices)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        state.choose(state.shown.graphs[DYNAMO].node_id("scores"))  # type: ignore[union-attr]
        pane.show(state)
        pane.query_one(CodeView).go(at - 1)
        await pilot.press("down")
        await pilot.pause()
    assert app.of(NodeChosen) and state.node is not None and state.node.name in ("hidden", "relu")


async def test_keys_go_through_the_stages() -> None:
    app, _, _ = await shown(state_of_run(1), "full_stop", "o", "comma")
    assert [message.step for message in app.of(StageChosen)] == [1, 1, -1]


async def test_runs_without_stages_have_no_view_of_them() -> None:
    state = State(live=False)
    state.apply(log("attention"))
    pane = SourcePane()
    async with Host(pane, state, follow_choices).run_test():
        assert "stages" not in pane.views


# texts that are not in the record


def record(**fields: object) -> CompilerStage:
    return CompilerStage(compiler="acme", name="ir", origin="call", **fields)  # type: ignore[arg-type]


def test_a_long_text_is_read_from_its_file_as_far_as_it_is_shown(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("line\n" * (SHOWN // 5 + 100))
    text, note = text_of(record(file="long.txt", size=2 * SHOWN), tmp_path)
    assert len(text) <= SHOWN and text.endswith("line") and note.startswith("the first 1 MiB of 1 MiB: ")


@pytest.mark.parametrize(
    ("stage", "why"),
    [
        (record(size=5 << 20, binary=True), "a binary of 5 MiB: it is not shown"),
        (record(size=300), "a text of 300 B that was not kept"),
        (record(size=300, file="../secret"), "its file ../secret is not in the session's folder"),
        (record(size=300, file="/etc/passwd"), "its file /etc/passwd is not in the session's folder"),
        (record(size=300, file="gone"), "its text cannot be read: No such file or directory"),
    ],
)
def test_a_text_that_is_not_there_is_a_sentence(stage: CompilerStage, why: str, tmp_path: Path) -> None:
    assert text_of(stage, tmp_path) == ("", why)


def test_a_file_that_leads_elsewhere_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/hostname")
    text, note = text_of(record(size=300, file="link"), tmp_path)
    assert text == "" and note.startswith("its text cannot be read")


# side by side


async def test_two_stages_stand_side_by_side_with_one_cursor(tmp_path: Path) -> None:
    app = app_of("foreign", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.state.apply([])
        first = app.state.history.runs[1]
        app.state.shown = first
        app.state.versions.graphs += 1
        app.state.choose_graph(INFERENCE)
        keys = {stage.name: stage.key for stage in first.stages.values()}
        app.state.choose_stage(keys["input"])
        app.post_message(BesideRequest(compiler_stage=keys["flow"]))
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, SideBySide)
        left, right = screen._pages
        assert [page.text.title for page in screen._pages] == ["iree: input", "iree: flow"]
        line = next(at for at, text in enumerate(left.text.text.split("\n"), 1) if "linalg.matmul ins(%2" in text)
        left.code.go(line - 1)
        await pilot.press("j")
        await settle(pilot)
        assert "dispatch_0" in right.text.text.split("\n")[right.code.line - 1]


async def test_the_same_stage_of_two_runs_stands_side_by_side_with_its_difference(tmp_path: Path) -> None:
    app = app_of("foreign", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        first = app.state.history.runs[1]
        app.state.shown = first
        app.state.versions.graphs += 1
        app.state.choose_graph(INFERENCE)
        app.state.choose_stage(next(stage.key for stage in first.stages.values() if stage.name == "flow"))
        app.post_message(BesideRequest(run=2))
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, SideBySide) and screen._pairs is not None
        assert [page.text.title for page in screen._pages] == ["run 1: iree: flow", "run 2: iree: flow"]
        differ = screen._pairs.marks[1]
        assert differ and len(differ) < len(screen._pages[1].text.text.split("\n"))
        app.pop_screen()
        app.post_message(BesideRequest(run=3))
        await settle(pilot)
        assert not isinstance(app.screen, SideBySide)
