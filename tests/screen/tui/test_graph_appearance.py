"""Can the columns of the graph be chosen, and nodes be coloured, with a legend, and is it remembered?"""

import json
from pathlib import Path

import pytest

from idbg.analysis.outline import ModuleHeading, outline
from idbg.format.amounts import duration
from idbg.format.glyphs import LEVELS, MARKS, SEVERITY_SIGNS
from idbg.views import module
from idbg.views.module import NO_TOTALS, ModuleTotals
from idbg_tui import remembered
from idbg_tui.app import IdbgApp
from idbg_tui.panes.graph.appearance import Appearance
from idbg_tui.panes.graph.colours import HEATS, HUES, SEVERAL, ColourBy, Colours, Scale
from idbg_tui.panes.graph.columns import CHOICES, GraphColumns, heads
from idbg_tui.panes.graph.heads import GraphLegend
from idbg_tui.panes.graph.pane import GraphPane
from idbg_tui.panes.graph.rows import GraphLines
from idbg_tui.state import queries
from idbg_tui.state.state import State
from idbg_tui.widgets.lines import Lines
from tests.harness.benched import with_every_launch
from tests.harness.recorded import app_of, count, state_of
from tests.harness.screen import WIDE, settle, texts, written


def text(pieces: object) -> str:
    return "".join(each for each, _ in pieces)  # type: ignore[attr-defined]


def colours_of(state: State, by: ColourBy) -> Colours:
    assert state.graph is not None
    return Colours(state, state.graph, by)


def test_every_column_but_the_nodes_can_be_left_out() -> None:
    columns = GraphColumns(20, 9, 9, 9, 5, 4, 6, 5, 5, flow=4, source=20, memory=8)
    for name in CHOICES:
        left = heads(columns.without({name}).within(200))
        assert name in text(heads(columns.within(200))).split() and name not in text(left).split()
    assert text(heads(columns.without(CHOICES).within(200))).split() == ["node"]
    assert columns.without({"node"}) == columns


def test_an_appearance_turns_columns_and_takes_one_colour() -> None:
    look = Appearance().turned("op").turned("line").chosen("colour by time")
    assert look == Appearance(frozenset({"op", "line"}), "time")
    assert look.chosen("op").chosen("colour by nothing") == Appearance(frozenset({"line"}))


def test_a_scale_has_the_least_figure_at_one_end_and_the_most_at_the_other() -> None:
    scale = Scale([1e-6, 1e-3, 0.0], str, of_log=True)
    assert scale.mark(1e-6) == (LEVELS[0], "heat 0") and scale.mark(1e-3) == (LEVELS[-1], f"heat {HEATS - 1}")
    assert scale.mark(0.0) == scale.mark(1e-6)
    middle = scale.mark(10**-4.5)
    assert middle[1] == f"heat {HEATS // 2}"
    assert text(scale.legend("of it")).split()[0] == "1e-06" and text(scale.legend("of it")).endswith("0.001  of it")
    assert Scale([5.0], str, of_log=False).mark(5.0)[0] == LEVELS[-1]


def test_every_mark_has_a_look() -> None:
    looks = [*(f"heat {at}" for at in range(HEATS)), *(f"hue {at}" for at in range(HUES)), "reject"]
    assert set(looks) <= set(Lines.LOOKS)


def test_nodes_are_coloured_by_the_severest_finding_with_its_sign() -> None:
    colours = colours_of(state_of("resnet"), "finding")
    assert colours.mark(0, (), "pad") == (SEVERITY_SIGNS["pad"], "pad") and colours.mark(0, (), None) == (" ", "")
    assert text(colours.legend()).split() == [SEVERITY_SIGNS["reject"], "reject"]
    assert text(colours_of(state_of("mlp_train"), "finding").legend()) == "no rule is broken here"


def test_nodes_are_coloured_by_the_memory_that_is_alive_while_they_run() -> None:
    state = state_of("resnet")
    assert text(colours_of(state, "memory").legend()) == "memory is not counted yet"
    count(state)
    assert state.graph is not None
    profile = state.costs.profile(state.graph)
    assert profile is not None
    live, colours = profile.live_bytes, colours_of(state, "memory")
    assert colours.mark(live.index(max(live)), (), None)[1] == f"heat {HEATS - 1}"
    assert colours.mark(live.index(min(live)), (), None)[1] == "heat 0"
    assert colours.mark_of_module(0, len(live), None, NO_TOTALS) == colours.mark(live.index(max(live)), (), None)
    assert colours_of(state, "finding").mark_of_module(0, 9, "pad", NO_TOTALS) == (SEVERITY_SIGNS["pad"], "pad")
    assert colours_of(state, "kernel").mark_of_module(0, 9, "pad", NO_TOTALS) == (" ", "")


def test_nodes_are_coloured_by_the_error_of_their_kernel_and_what_is_wrong_has_its_sign() -> None:
    state = state_of("planted")
    assert state.graph is not None and state.provenance is not None
    colours = colours_of(state, "error")
    marks = [
        colours.mark(at, state.provenance.kernels_of(state.graph.node_id(node.name)), None)
        for at, node in enumerate(state.graph.nodes)
    ]
    assert (SEVERITY_SIGNS["reject"], "reject") in marks and any(look.startswith("heat") for _, look in marks)
    assert "wrong by itself" in text(colours.legend())


@pytest.mark.parametrize(
    ("by", "why"), [("time", "not measured: R times each kernel"), ("error", "not compared: D compares each kernel")]
)
def test_what_was_not_measured_has_no_colour_and_the_legend_says_so(by: ColourBy, why: str) -> None:
    state = state_of("resnet")
    assert state.graph is not None and state.provenance is not None
    launches = state.provenance.kernels_of(state.graph.node_id("relu"))
    colours = colours_of(state, by)
    assert launches and colours.mark(0, launches, "reject") == (" ", "")
    assert text(colours.legend()) == why.partition(":")[0], "nothing can be run in a saved session"
    state.live = True
    assert text(colours_of(state, by).legend()) == why


def test_nodes_of_one_kernel_have_one_colour_that_the_next_does_not_have() -> None:
    state = state_of("resnet")
    assert state.shown is not None
    colours = colours_of(state, "kernel")
    one, other = state.shown.kernels[:2]
    assert text(colours.legend()).split()[:2] == ["▌k0", "▌convolution"]
    first, again = (colours.mark(at, [(one, one.calls[0])], None) for at in (0, 9))
    assert first == again != colours.mark(0, [(other, other.calls[0])], None)


def test_a_folded_module_has_the_marks_of_what_its_kernels_come_to() -> None:
    state = with_every_launch(state_of("resnet"))
    assert state.graph is not None
    folded = next(each for each in outline(state.graph).headings if each.key.startswith("layer1"))
    about = queries.module_context(state, folded)
    assert about is not None and about.totals.microseconds is not None
    rows = {row.words[0].text.strip(): row.text for row in module.facts(about)}  # what the pane Node shows of it
    assert duration(about.totals.microseconds / 1e3) in rows["time"]
    assert f"{len(about.totals.by_kernel)} kernels" in rows["kernels"]
    by_time = colours_of(state, "time")
    mark = by_time.mark_of_module(*folded.span, None, about.totals)
    assert mark == by_time._scale.mark(about.totals.microseconds) and mark[1].startswith("heat")
    assert by_time.mark_of_module(*folded.span, None, NO_TOTALS) == (" ", "")
    assert colours_of(state, "error").mark_of_module(*folded.span, None, about.totals) == (" ", "")
    by_kernel = colours_of(state, "kernel")
    several = by_kernel.mark_of_module(*folded.span, None, about.totals)
    slowest = about.totals.by_kernel[0][0]
    assert several == (SEVERAL, by_kernel.mark(0, [(slowest.kernel, slowest.call)], None)[1])
    one = ModuleTotals(about.totals.by_kernel[-1])
    assert by_kernel.mark_of_module(*folded.span, None, one)[0] == MARKS["bar"]


def test_a_folded_module_in_which_a_kernel_is_wrong_has_its_sign() -> None:
    state = state_of("planted")
    assert state.graph is not None
    everything = ModuleHeading("m", "m", "", 0, 0, len(state.graph.nodes), -1)
    about = queries.module_context(state, everything)
    assert about is not None and about.totals.wrong
    row = {row.words[0].text.strip(): row.text for row in module.facts(about)}["error"]
    assert f"{about.totals.wrong} launch" in row
    by_error = colours_of(state, "error")
    assert by_error.mark_of_module(*everything.span, None, about.totals) == (SEVERITY_SIGNS["reject"], "reject")
    right = ModuleTotals([each for each in about.launches if each.error and not each.error.bad])
    assert by_error.mark_of_module(*everything.span, None, right)[1].startswith("heat")


async def chosen(app: IdbgApp, *names: str) -> None:
    pane = app.body.query_one(GraphPane)
    for name in names:
        pane._show_appearance(pane.lines.appearance.chosen(name))


async def test_the_picker_turns_columns_and_colours_until_it_is_left(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        legend, lines = app.body.query_one(GraphLegend), app.body.query_one(GraphLines)
        assert not legend.display and "unsqueeze" in texts(app, "graph")[5]
        await pilot.press("1", "asterisk", *"tensor", "enter", *"by", "space", *"memory", "enter", "escape")
        await settle(pilot)
        assert lines.appearance == Appearance(frozenset({"tensor"}), "memory")
        assert not any("f32[64]" in row for row in texts(app, "graph"))
        assert legend.display and "live while a node runs" in str(legend.render())
        assert any(LEVELS[-1] in row for row in texts(app, "graph"))


async def test_what_was_chosen_is_remembered_in_the_next_session(tmp_path: Path) -> None:
    first, second = app_of("resnet", tmp_path), app_of("attention", tmp_path)
    kept = tmp_path / "choices" / "graph.json"
    for app in (first, second):
        app.choices = kept.parent
    async with first.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await chosen(first, "op", "colour by kernel")
        written()
    assert json.loads(kept.read_text()) == {"hidden": ["op"], "colour": "kernel"}
    async with second.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert second.body.query_one(GraphLines).appearance == Appearance(frozenset({"op"}), "kernel")


@pytest.mark.parametrize("content", ["[1, 2", '{"colour": "mauve"}', '{"hidden": 3}'])
def test_a_file_that_has_something_else_is_as_none(content: str, tmp_path: Path) -> None:
    (tmp_path / "graph.json").write_text(content)
    assert remembered.read(tmp_path / "graph.json", Appearance) == Appearance()
