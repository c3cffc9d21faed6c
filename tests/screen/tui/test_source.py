"""Does the source pane show the selected node's lines, and select what the cursor is moved to?"""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from idbg.schema import events
from idbg.schema.programs import Failure, Program, Target
from idbg_tui.messages import CopyRequest, EditorRequest, Flash, KernelChosen, LineChosen, NodeChosen
from idbg_tui.panes.source.pane import Caption, SourcePane
from idbg_tui.panes.source.sheets import VIEWS, SheetView, default_view, make
from idbg_tui.state import queries
from idbg_tui.state.state import State
from idbg_tui.widgets.code import CodeView
from tests.harness.pane_host import (
    INFERENCE,
    KERNEL,
    POST_GRAD,
    Host,
    follow_choices,
    make_state,
    wrapper_line,
    write_model,
)


@pytest.fixture
def model(tmp_path: Path) -> str:
    return write_model(tmp_path)


async def shown(state: State, view: SheetView, *keys: str) -> tuple[Host, int, str]:
    """The app after choosing a view and pressing keys, with the cursor's line and the caption."""
    pane = SourcePane()
    app = Host(pane, state, follow_choices)
    async with app.run_test(size=(80, 20)) as pilot:
        await pilot.pause()
        pane.choose_view(view)
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
        await pilot.pause()
        return app, pane.query_one(CodeView).line, str(pane.query_one(Caption).render())


# what each view shows


async def test_the_kernel_is_shown_at_its_first_computation(model: str) -> None:
    app, line, caption = await shown(make_state(model), "kernel")
    assert KERNEL.split("\n")[line - 1].strip() == "auto tmp0 = in_ptr0[x0]; // relu, then sum"
    assert caption == "cpp_fused_relu_sum_0  C++ · 2 nodes · 1 call"
    assert app.posted == []


async def test_an_extern_kernel_says_so_and_shows_its_call_in_the_wrapper(model: str) -> None:
    _, line, caption = await shown(make_state(model, node="mm"), "kernel")
    place = wrapper_line("extern_kernels.mm(")
    assert line == place
    assert caption == f"extern_kernels.mm  called at wrapper line {place} · extern: no generated source"


async def test_the_wrapper_is_shown_at_the_call_that_computes_the_node(model: str) -> None:
    _, line, _ = await shown(make_state(model, node="sum_1"), "wrapper")
    assert line == wrapper_line("_sum_0(buf0")


async def test_the_fx_code_is_shown_at_the_node(model: str) -> None:
    _, line, _ = await shown(make_state(model, node="sum_1"), "FX")
    assert line == 8


async def test_the_users_file_is_shown_at_the_nodes_line(model: str) -> None:
    app, line, caption = await shown(make_state(model), "python")
    assert line == 6
    assert caption.startswith("model.py:6")
    sheet = make("python", app.state)
    assert sheet.text.split("\n")[5].strip() == "y = torch.relu(y)"


async def test_a_users_file_that_is_gone_is_said_and_the_kept_line_is_shown_with_its_number(tmp_path: Path) -> None:
    state = make_state(str(tmp_path / "gone.py"))
    _, line, caption = await shown(state, "python")
    assert "cannot be read (No such file or directory)" in caption
    assert line == 6
    assert make("python", state).text == "y = torch.relu(y)"


def test_a_file_that_was_edited_after_the_run_is_said_to_be(model: str) -> None:
    state = make_state(model)
    assert "edited since this run" in make("python", state).caption
    os.utime(model, (0.5, 0.5))  # before the run, which began at 1.0
    assert "edited since" not in make("python", state).caption


# why there is nothing to show


def test_a_backend_that_generates_nothing_is_named(model: str) -> None:
    assert make("kernel", make_state(model, code=False)).caption == "no kernels: the eager backend generated none"


def test_an_input_has_no_kernel_and_the_reason_is_that_it_is_an_input(model: str) -> None:
    assert make("kernel", make_state(model, node="arg1_1")).caption == (
        "arg1_1 is an input of the graph (weight): no kernel computes it"
    )


@pytest.mark.parametrize("view", VIEWS)
def test_before_anything_is_compiled_each_view_says_what_would_fill_it(view: SheetView) -> None:
    assert make(view, State()).caption == "nothing compiled yet: r compiles the program"


# both directions


async def test_moving_to_a_nodes_line_in_the_fx_code_selects_the_node(model: str) -> None:
    app, line, _ = await shown(make_state(model, node="relu"), "FX", "up", "up")
    assert [message.node.name for message in app.of(NodeChosen)] == ["mm"]
    assert line == 4


async def test_moving_to_a_call_in_the_wrapper_selects_its_node_in_the_graph_that_is_shown(model: str) -> None:
    app, line, _ = await shown(make_state(model, node="relu"), "wrapper", "up")
    assert [message.node for message in app.of(NodeChosen)] == [app.state.shown.graphs[INFERENCE].node_id("mm")]
    assert app.state.graph_id == INFERENCE != POST_GRAD
    assert line == wrapper_line("extern_kernels.mm(")


async def test_moving_into_a_kernels_definition_in_the_wrapper_chooses_the_kernel(model: str) -> None:
    app, _, _ = await shown(make_state(model, node="mm"), "wrapper", "g", *["down"] * 6)
    assert [message.name for message in app.of(KernelChosen)][:1] == ["cpp_fused_relu_sum_0"]
    assert queries.marked_nodes(app.state) == {"relu", "sum_1"}


async def test_moving_to_a_line_of_the_users_file_that_made_nodes_chooses_the_line(model: str) -> None:
    app, line, _ = await shown(make_state(model, node="relu"), "python", "down", "up", "up", "up")
    assert [(message.file, message.line) for message in app.of(LineChosen)] == [(model, 7), (model, 6), (model, 5)]
    assert line == 4, "a line without nodes keeps the cursor"
    assert app.state.selected.name == "mm"


async def test_a_selection_made_elsewhere_moves_the_cursor_and_posts_nothing(model: str) -> None:
    state = make_state(model, node="mm")
    pane = SourcePane()
    app = Host(pane, state)
    async with app.run_test(size=(80, 20)) as pilot:
        await pilot.pause()
        pane.choose_view("FX")
        state.choose(state.graph.node_id("sum_1"))
        pane.show(state)
        await pilot.pause()
        assert pane.query_one(CodeView).line == 8
        assert app.posted == []


async def test_a_recheck_does_not_move_what_the_user_reads(model: str) -> None:
    state = make_state(model, node="mm")
    pane = SourcePane()
    app = Host(pane, state)
    async with app.run_test(size=(80, 20)) as pilot:
        await pilot.pause()
        pane.choose_view("FX")
        await pilot.press("g")
        state.versions.run += 1
        pane.show(state)
        await pilot.pause()
        assert pane.query_one(CodeView).line == 1


async def test_a_wide_pane_shows_the_users_python_beside_and_a_move_there_selects_its_line(model: str) -> None:
    pane = SourcePane()
    app = Host(pane, make_state(model, node="mm"))
    async with app.run_test(size=(160, 20)) as pilot:
        await pilot.pause()
        first, beside = (code for code in pane.query(CodeView) if code.parent.display)
        assert "y = x @ w" in beside.render_line(beside.line - 1).text
        beside.focus()
        await pilot.press("j")
        assert isinstance(app.posted[-1], LineChosen) and app.posted[-1].line == beside.line
        await pilot.resize_terminal(100, 20)
        await pilot.pause()
        assert [code.parent.display for code in (first, beside)] == [True, False]


# keys


async def test_brackets_go_round_the_views(model: str) -> None:
    app, _, _ = await shown(make_state(model), "kernel", "]")
    assert "[wrapper]" in app.pane.border_title.replace("\\", "")
    app, _, _ = await shown(make_state(model), "kernel", "[")
    assert "[python]" in app.pane.border_title.replace("\\", "")


async def test_comma_and_full_stop_go_through_the_runs_kernels(model: str) -> None:
    app, _, caption = await shown(make_state(model, node="relu"), "kernel", "full_stop")
    assert [message.name for message in app.of(KernelChosen)] == ["extern_kernels.mm"]
    assert caption.startswith("extern_kernels.mm  called at")
    assert app.state.selected.name == "mm"


async def test_y_copies_the_cursor_line_as_it_is_in_the_file(model: str) -> None:
    app, _, _ = await shown(make_state(model, node="relu"), "python", "y", "shift+down", "y")
    assert [(message.text, message.what) for message in app.of(CopyRequest)] == [
        ("    y = torch.relu(y)", "1 line"),
        ("    y = torch.relu(y)\n    return y.sum()", "2 lines"),
    ]


async def test_e_opens_the_users_file_at_the_cursor(model: str) -> None:
    app, _, _ = await shown(make_state(model, node="relu"), "python", "g", "e")
    assert [(message.path, message.line) for message in app.of(EditorRequest)] == [(model, 1)]


async def test_a_search_marks_and_visits_every_match_and_escape_ends_it(model: str) -> None:
    search = ["slash", *"torch", "enter"]
    _, line, _ = await shown(make_state(model, node="mm"), "python", *search)
    assert line == 6
    _, line, _ = await shown(make_state(model, node="mm"), "python", *search, "n")
    assert line == 1
    _, line, _ = await shown(make_state(model, node="mm"), "python", *search, "escape", "n")
    assert line == 6, "n is not ours any more"


async def test_a_search_without_a_match_says_so_and_moves_nothing(model: str) -> None:
    before = await shown(make_state(model, node="mm"), "python")
    app, line, _ = await shown(make_state(model, node="mm"), "python", "slash", *"torchzz", "enter")
    assert line == before[1]
    assert [message.text for message in app.of(Flash)] == ["nothing here has torchzz"]


def test_a_node_without_a_kernel_shows_its_fx_code_under_the_reason(model: str) -> None:
    state = make_state(model, node="arg1_1")
    sheet = make("kernel", state)
    assert sheet.instead == "FX"
    assert (sheet.text, sheet.line) == (make("FX", state).text, make("FX", state).line)


async def test_the_title_has_the_view_whose_text_is_shown_in_brackets(model: str) -> None:
    for node, view in (("relu", "kernel"), ("mm", "wrapper"), ("arg1_1", "FX")):
        app, _, _ = await shown(make_state(model, node=node), "kernel")
        assert f"[{view}]" in str(app.pane.border_title), node


@pytest.mark.parametrize("width", [30, 44, 58])
async def test_a_caption_cuts_its_name_alone_and_no_fact(model: str, width: int) -> None:
    pane, place = SourcePane(), wrapper_line("extern_kernels.mm(")
    async with Host(pane, make_state(model, node="mm")).run_test(size=(width, 20)) as pilot:
        await pilot.pause()
        caption = pane.query_one(Caption)
        words = " ".join(" ".join(caption.render().plain.split("\n")).split())
        assert words == f"extern_kernels.mm called at wrapper line {place} · extern: no generated source"
        assert caption.size.height == len(caption.render().plain.split("\n"))


def test_before_any_graph_exists_the_line_that_failed_is_shown(model: str) -> None:
    failure = Failure(kind="user", type="ValueError", message="no", file=model, line=6)
    state = State()
    state.apply(
        [
            events.RunStarted(run=1, program=Program(model), target=Target()),
            events.RunEnded(run=1, verdict="failed", seconds=1.0, failure=failure),
        ]
    )
    assert default_view(state) == "python"
    sheet = make("python", state)
    assert sheet.line == 6 and sheet.marks == {6} and sheet.path == model
    assert sheet.caption == "the run failed here" and "torch.relu" in sheet.text


def test_a_triton_kernel_is_shown_from_the_first_line_of_its_function(model: str) -> None:
    state = make_state(model)
    assert state.shown is not None
    kernel = state.shown.kernels[0]
    source = (
        "import triton\n\n@triton.jit\ndef triton_poi(in_ptr0,\n    xnumel, XBLOCK : tl.constexpr):\n    xnumel = 64\n"
    )
    state.kernel = replace(kernel, source=source, language="triton")
    assert make("kernel", state).line == 6
