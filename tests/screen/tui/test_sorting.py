"""Every table on the screen can be sorted by any of its columns: with a key, or with a click on a head."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from idbg.views.tree import Cell, Column, Section, Table, words
from idbg.views.tree import Row as TreeRow
from idbg_tui.app import IdbgApp
from idbg_tui.panes.section_pane import SectionPane
from idbg_tui.widgets.picker import Picker
from idbg_tui.widgets.section_rows import Look, Row
from idbg_tui.widgets.sections import rows as painted
from idbg_tui.widgets.sorting import AS_IT_IS, sorted_by
from tests.harness.recorded import app_of
from tests.harness.screen import SMALL, WIDE, settle, texts, until

FIGURES = {"b": 2.0, "a": None, "d": 0.5, "c": 1.0}
TABLE = Table(
    (Column("time", "seconds"), Column("note")),
    [TreeRow(name, words(name), (Cell(figure), Cell(f"of {name}"))) for name, figure in FIGURES.items()],
    "function",
)
SECTION = Section("Times", "", body=(TABLE,))


def names(look: Look) -> list[str]:
    return [str(row.key) for row in painted(SECTION, look) if not row.head]


def head(look: Look) -> str:
    return "".join(text for text, _ in painted(SECTION, look)[0].draw(80))


def test_numbers_are_sorted_from_the_largest_down_then_the_other_way_round_then_not() -> None:
    down, said = sorted_by(Look(), TABLE, "time")
    assert names(down) == ["b", "c", "d", "a"] and said == "sorted by time, descending"
    up, said = sorted_by(down, TABLE, "time")
    assert names(up) == ["d", "c", "b", "a"] and said == "sorted by time, ascending"
    assert sorted_by(up, TABLE, "time") == (Look(), "sorted as it was")
    assert names(sorted_by(down, TABLE, AS_IT_IS)[0]) == list(FIGURES)


def test_the_words_of_a_row_are_a_column_named_after_what_the_rows_are() -> None:
    assert names(sorted_by(Look(), TABLE, "function")[0]) == ["a", "b", "c", "d"]


def test_an_arrow_marks_the_column_and_moves_no_other_head() -> None:
    plain = head(Look())
    for name in ("time", "note", "function"):
        marked = head(sorted_by(Look(), TABLE, name)[0])
        assert (len(marked) == len(plain) and ("↓" in marked) == (name == "time") and "↑" in marked) or "↓" in marked
        for other in {"time", "note"} - {name}:
            assert marked.index(other) == plain.index(other)


def test_tables_with_other_columns_keep_their_order() -> None:
    other = Table((Column("size", "bytes"),), TABLE.rows, "function")
    look, _ = sorted_by(Look(), other, "size")
    assert names(look) == list(FIGURES)


def table_rows(pane: SectionPane) -> list[Row]:
    heads = next(row for row in pane.lines.items if row.head and row.table is not None)
    return [row for row in pane.lines.items if row.table is heads.table and not row.head and not row.inside]


async def choose(pilot: Pilot[None], app: IdbgApp, name: str) -> None:
    await pilot.press("s")
    await until(pilot, lambda: isinstance(app.screen, Picker))
    await pilot.press(*("space" if letter == " " else letter for letter in name), "enter")
    await until(pilot, lambda: not isinstance(app.screen, Picker))
    await settle(pilot)


@pytest.mark.parametrize("size", [WIDE, SMALL])
async def test_a_key_sorts_the_table_of_the_cursor_and_each_view_remembers_its_order(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    app = app_of("breaking", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("0")
        await settle(pilot)
        pane = app.body.panes["why"]
        assert isinstance(pane, SectionPane)
        before = [row.key for row in table_rows(pane)]
        table = next(row.table for row in pane.lines.items if row.head and row.table is not None)
        await choose(pilot, app, table.noun)
        first = [row.key for row in table_rows(pane)]
        await choose(pilot, app, table.noun)
        assert [row.key for row in table_rows(pane)] == first[::-1]
        await pilot.press("right_square_bracket", "left_square_bracket")
        assert [row.key for row in table_rows(pane)] == first[::-1]
        await choose(pilot, app, "as it was")
        assert [row.key for row in table_rows(pane)] == before


async def test_a_click_on_a_head_sorts_and_a_second_one_turns_the_order_round(tmp_path: Path) -> None:
    app = app_of("planted", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("5", "z", "g")
        await settle(pilot)
        lines = app.body.panes["kernel_diff"].lines  # type: ignore[attr-defined]
        shown = texts(app, "kernel_diff")
        y = next(y for y, line in enumerate(shown) if "so far" in line)
        x = shown[y].index("so far") + 3
        await pilot.click(lines, offset=(x, y))
        await settle(pilot)
        shown = texts(app, "kernel_diff")
        y = next(y for y, line in enumerate(shown) if "so far" in line)
        assert "↓so far" in shown[y] and "✘" in shown[y + 1]
        await pilot.click(lines, offset=(x, y))
        await settle(pilot)
        shown = texts(app, "kernel_diff")
        y = next(y for y, line in enumerate(shown) if "so far" in line)
        assert "↑so far" in shown[y] and "✘" in shown[y + 6]


async def test_below_a_table_the_key_is_about_the_nearest_above(tmp_path: Path) -> None:
    app = app_of("planted", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("5", "G")
        await settle(pilot)
        pane = app.body.panes["kernel_diff"]
        assert isinstance(pane, SectionPane) and pane.lines.chosen is not None and pane.lines.chosen.table is None
        await choose(pilot, app, "so far")
        assert [how[0] for how in pane.look.sorts.values()] == ["so far"]
