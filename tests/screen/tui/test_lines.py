"""Does a list of many rows move, keep its cursor in sight, and repaint only the cells that differ?"""

import pytest
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.strip import Strip

from idbg_tui.widgets.lines import Lines, StyledRow, clip, cut, fit

pytestmark = pytest.mark.usefixtures("painted")


class Numbers(Lines):
    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count
        self.asked = 0
        self.refreshed: list[Region] = []

    @property
    def row_count(self) -> int:
        return self.count

    def row(self, index: int, width: int) -> StyledRow:
        self.asked += 1
        return [(f"row {index}", ""), (" end", "dim")]

    def refresh(self, *regions: Region, **how: bool) -> "Numbers":  # type: ignore[override]
        if hasattr(self, "refreshed"):
            self.refreshed += regions or [Region(0, 0, 999, 999)]
        return super().refresh(*regions, **how)


class Host(App[None]):
    CSS = "Numbers { height: 10; }"

    def __init__(self, count: int = 100_000) -> None:
        super().__init__()
        self.lines = Numbers(count)
        self.heard: list[tuple[str, int]] = []

    def compose(self) -> ComposeResult:
        yield self.lines

    def on_mount(self) -> None:
        self.lines.rows_changed()
        self.lines.focus()

    def on_lines_moved(self, event: Lines.Moved) -> None:
        self.heard.append(("moved", event.index))

    def on_lines_opened(self, event: Lines.Opened) -> None:
        self.heard.append(("opened", event.index))


@pytest.mark.parametrize(
    ("keys", "row"),
    [
        ("j", 1),
        ("down,down,k", 1),
        ("G", 99_999),
        ("G,g", 0),
        ("k", 0),
        ("pagedown", 8),
        ("ctrl+d", 4),
        ("ctrl+d,ctrl+u", 0),
        ("end,pageup", 99_991),
    ],
)
async def test_keys_move_the_cursor_and_stop_at_the_ends(keys: str, row: int) -> None:
    app = Host()
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.press(*keys.split(","))
        assert app.lines.cursor == row
        top = app.lines.scroll_offset.y
        assert top <= row < top + 10


async def test_a_step_is_told_and_enter_opens() -> None:
    app = Host()
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.press("j", "enter")
        await pilot.pause()
        assert app.heard == [("moved", 1), ("opened", 1)]


async def test_placing_the_cursor_is_not_told() -> None:
    app = Host()
    async with app.run_test(size=(40, 12)) as pilot:
        app.lines.place_cursor(500)
        await pilot.pause()
        assert app.heard == []
        assert app.lines.scroll_offset.y <= 500 < app.lines.scroll_offset.y + 10


async def test_only_rows_in_sight_are_made() -> None:
    app = Host()
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.press("G")
        await pilot.pause()
        assert app.lines.asked < 200


async def test_a_step_repaints_two_lines_and_no_more() -> None:
    app = Host()
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.press("j")
        await pilot.pause()
        app.lines.refreshed.clear()
        await pilot.press("j")
        assert {(region.y, region.height) for region in app.lines.refreshed} == {(1, 1), (2, 1)}


async def test_fewer_rows_keep_the_cursor_among_them() -> None:
    app = Host()
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.press("G")
        app.lines.count = 3
        app.lines.rows_changed()
        await pilot.pause()
        assert app.lines.cursor == 2
        assert app.lines.scroll_offset.y == 0


async def test_rows_that_did_not_change_are_not_repainted() -> None:
    app = Host()
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.pause()
        app.lines.refreshed.clear()
        app.lines.rows_changed()
        assert app.lines.refreshed == []


def strip(*pieces: tuple[str, str]) -> Strip:
    return Strip([Segment(text, Style.parse(style)) for text, style in pieces])


def test_names_are_cut_in_their_middle_and_sentences_at_their_end() -> None:
    assert cut("convolution_12", 9) == "conv…n_12"
    assert cut("short", 9) == "short"
    assert fit("ab", 4) == "ab  "
    assert len(fit("convolution_12", 7)) == 7
    assert clip("a long sentence", 7) == "a long…"
    assert cut("name", 0) == "" and clip("name", 0) == ""


def test_a_cut_text_has_its_cells_also_where_letters_take_two() -> None:
    for text in ("模型" * 20, "a模" * 20, "é" * 40):
        assert all(cell_len(fit(text, width)) == width for width in range(1, 60))
