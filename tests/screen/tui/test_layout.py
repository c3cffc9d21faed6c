"""Do sizes stay within bounds, and do tabs name what is there?"""

import re
from pathlib import Path

import pytest
from textual.geometry import Size

from idbg.schema import events
from idbg_tui import layout
from idbg_tui.layout import ORDER, TabLine, number, tab_names
from idbg_tui.pane_sizes import RememberedSizes, Sizes, at_first
from idbg_tui.panes import loading
from idbg_tui.panes.base import KEYS, PaneId
from idbg_tui.panes.graph.pane import GraphPane
from idbg_tui.panes.graph.title import titles
from idbg_tui.panes.kernel_diff.pane import KernelDiffPane
from idbg_tui.panes.log.pane import LogPane
from idbg_tui.panes.node.pane import NodePane
from idbg_tui.panes.rules.pane import RulesPane
from tests.harness.recorded import app_of, state_of
from tests.harness.screen import WIDE, bar, settle, written


@pytest.mark.parametrize("pane", ORDER)
def test_growing_and_shrinking_back_gives_the_same_sizes(pane: PaneId) -> None:
    assert Sizes().grown(pane, 1).grown(pane, -1) == Sizes()


@pytest.mark.parametrize("pane", ORDER)
def test_no_pane_can_grow_another_away(pane: PaneId) -> None:
    sizes = Sizes()
    for _ in range(50):
        sizes = sizes.grown(pane, 1)
    assert all(20 <= share <= 80 for share in (sizes.graph, sizes.top, sizes.source, sizes.tabs))


def test_the_graph_grows_at_the_cost_of_what_is_beside_and_below_it() -> None:
    grown = Sizes().grown("graph", 1)
    assert grown.graph > Sizes().graph and grown.top > Sizes().top


NUMBERS = ("1", "5", "7", "8")
LETTERS = ("1Gra", "5Dif", "7Log", "8Rul")
SHORT = ("1 Graph", "5 Diff", "7 Log", "8 Rules")
WHOLE = ("1 Graph", "5 KernelDiff", "7 Log", "8 Rules")


@pytest.mark.parametrize(
    ("width", "wanted"),
    [(12, NUMBERS), (21, NUMBERS), (22, LETTERS), (30, LETTERS), (31, SHORT), (36, SHORT), (37, WHOLE), (60, WHOLE)],
)
def test_the_current_pane_is_always_named_in_the_tabs(width: int, wanted: tuple[str, ...]) -> None:
    panes = [GraphPane(), KernelDiffPane(), LogPane(), RulesPane()]
    number(panes)
    for place, pane in enumerate(panes):
        names = [name for _, name in tab_names(panes, pane.ID, width)]
        current = SHORT[place] if wanted == NUMBERS else wanted[place]
        assert names == [*wanted[:place], current, *wanted[place + 1 :]]


def test_names_of_tabs_give_way_before_their_counts() -> None:
    panes = [GraphPane(), NodePane(), KernelDiffPane(), LogPane(), RulesPane()]
    number(panes)
    panes[1].mark, panes[2].mark = "◇✘", "1,204"
    for width in range(60, 36, -1):
        names = list(dict(tab_names(panes, "graph", width)).values())
        assert names[1].startswith("3") and names[1].endswith(" ◇✘") and names[2].endswith(" 1,204"), width
        assert sum(map(len, names)) + 2 * 4 <= width


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
async def test_the_counts_of_tabs_are_seen_at_every_size_once_a_repro_is_written(
    size: tuple[int, int], tmp_path: Path
) -> None:
    app = app_of("wrong_pass", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        repro = events.ReproEnded(run=1, path=str(tmp_path / "repro.py"), reproduced=True, status=1)
        app.state.apply([events.ReproStarted(run=1), repro])
        app.show()
        await settle(pilot)
        line = app.query_one(TabLine).render() if app.body.single else app.query_one("#tabs").border_title
        shown = str(line)
        for pane, mark in (("4 ?Find", "1"), ("5 ?[KD]", "✘"), ("9 ?Rep", "1")):
            assert re.search(rf"{pane}[a-zA-Z]* {mark}", shown), (size, shown)


@pytest.mark.parametrize("width", [58, 76, 96])
def test_every_stage_is_named_in_the_title_of_the_graph_where_its_names_have_room(width: int) -> None:
    title = next(each for each in titles(state_of("mlp_train"), "1 Graph", "") if each.cell_length <= width - 2)
    for name in ("dyn", "joint", "[forward]", "bwd" if width == 58 else "backward"):
        assert name in title.plain, title.plain
    assert " of 6" not in title.plain and "26" in title.plain


def test_sentences_that_name_a_pane_by_its_number_name_the_right_one() -> None:
    panes = [*loading.first_panes(), *loading.other_panes()]
    labels = {pane.label: KEYS[ORDER.index(pane.ID)] for pane in panes}
    named = re.compile(rf"(?<!\S)([\d-]) ({'|'.join(labels)})\b")
    sources = [path.read_text(encoding="utf-8") for path in Path(layout.__file__).parent.rglob("*.py")]
    said = {match.groups() for source in sources for match in named.finditer(source)}
    assert ("7", "Log") in said
    assert [(number, label) for number, label in said if number != labels[label]] == []


async def test_every_pane_that_shares_no_frame_has_a_border_with_its_number(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        for name in ("graph", "source", "node", "rules"):
            pane = app.body.panes[name]
            assert pane.styles.border_top[0] == "round" and str(pane.border_title).startswith(str(pane.number)), name


async def test_names_of_tabs_come_back_with_the_room_for_them(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        before = {place: app.query_one(place).border_title for place in ("#tabs", "GraphPane")}
        for size in ((60, 15), (120, 40)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
        assert {place: app.query_one(place).border_title for place in before} == before


async def test_the_footer_names_the_keys_of_the_pane_that_has_them(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        for key in "7851":
            await pilot.press(key)
            await settle(pilot)
            at_first = bar(app, "footer")
            for over in ("ctrl+p", "question_mark"):  # there, letters are text
                await pilot.press(over)
                await settle(pilot)
                await pilot.press("escape")
                await settle(pilot)
                assert bar(app, "footer") == at_first, key
        await pilot.press("ctrl+p", *"go to log")
        await settle(pilot)
        await pilot.press("down", "enter")
        await settle(pilot)
        assert app.body.current == "log"
        told = bar(app, "footer")
        await pilot.press("1", "7")
        await settle(pilot)
        assert bar(app, "footer") == told


def test_sizes_are_remembered_for_each_size_of_the_terminal(tmp_path: Path) -> None:
    path, chosen = tmp_path / "sizes.json", Sizes(graph=30)
    RememberedSizes(path).keep(Size(200, 55), chosen)
    written()
    again = RememberedSizes(path)
    assert again.of(Size(205, 58)) == chosen and again.of(Size(120, 40)) == Sizes()
    again.keep(Size(200, 55), None)
    assert again.of(Size(200, 55)) == at_first(Size(200, 55))


@pytest.mark.parametrize("content", ["", "{", '{"120x30": 3}', '{"120x30": {"graph": "wide"}}'])
def test_sizes_that_cannot_be_read_are_those_at_first(content: str, tmp_path: Path) -> None:
    path = tmp_path / "sizes.json"
    path.write_text(content)
    assert RememberedSizes(path).of(Size(120, 40)) == Sizes()


async def test_a_tall_terminal_shows_the_node_whole(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=(200, 55)) as pilot:
        await settle(pilot)
        node = app.body.panes["node"]
        assert node.region.height >= 18 and node.max_scroll_y == 0


BORDERS = {
    "GraphPane": ((-20, 0), "width"),
    "SourcePane": ((0, -4), "height"),
    "#tabs": ((15, 0), "width"),
    "#top": ((0, 3), "height"),
}
"""What is left of a border or above it, and where the border is dragged."""


async def test_a_border_follows_the_mouse(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        for name, (by, side) in BORDERS.items():
            box = app.query_one(name)
            before = getattr(box.region, side)
            x, y = box.region.right - 1, box.region.bottom - 1
            place = (x, y - 2) if side == "width" else (x - 5, y)
            await pilot.mouse_down(offset=place)
            await pilot.hover(offset=(place[0] + by[0], place[1] + by[1]))
            await pilot.mouse_up(offset=(place[0] + by[0], place[1] + by[1]))
            await settle(pilot)
            assert abs(getattr(box.region, side) - before - (by[0] or by[1])) <= 1, name
            assert app.body.dragged is None, name
            await pilot.press("equals_sign")
            await settle(pilot)
