"""No column has a name over nothing, no row is cut that has room, and every key is in the help and does something."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len

from idbg_tui import bound_keys, help, keymap
from idbg_tui.app import IdbgApp
from idbg_tui.panes.base import Pane
from idbg_tui.panes.graph.columns import widths
from idbg_tui.panes.graph.rows import GraphLines
from idbg_tui.panes.section_pane import SectionPane
from idbg_tui.widgets.covering import Covering
from idbg_tui.widgets.section_rows import Row
from tests.harness.recorded import app_of, count
from tests.harness.screen import settle
from tools import key_table

RECORDED = ("resnet", "planted", "breaking", "benched", "wrong_pass", "minified", "switched")


def tables(pane: SectionPane) -> Iterator[tuple[Row, list[Row]]]:
    """The heads of each table that is listed, with the rows below them, up to the next."""
    items = list(pane.lines.items)
    heads = [at for at, row in enumerate(items) if row.head and row.table is not None]
    for at, end in zip(heads, [*heads, len(items)][1:], strict=True):
        yield items[at], [row for row in items[at + 1 : end] if row.table is items[at].table]


def over_nothing(head: Row, rows: list[Row], width: int) -> list[str]:
    """The names of columns in which no row has anything: cells are counted from the right."""
    empty, right = [], 0
    drawn = ["".join(text for text, _ in row.draw(width)).ljust(width) for row in rows]
    for name, end in head.ends:
        if name and not any(line[width - end : width - right].strip() for line in drawn):
            empty.append(name)
        right = end
    return empty


def panes(app: IdbgApp) -> list[SectionPane]:
    return [pane for pane in app.body.panes.values() if isinstance(pane, SectionPane)]


@pytest.mark.parametrize("name", RECORDED)
async def test_no_column_has_a_name_over_nothing(name: str, tmp_path: Path) -> None:
    app = app_of(name, tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        for pane in panes(app):
            for head, rows in tables(pane):
                assert not rows or over_nothing(head, rows, pane.lines.room - 1) == [], pane.label
        count(app.state)
        app.show()
        lines = app.body.query_one(GraphLines)
        columns, drawn = (
            lines.columns(150),
            ["".join(t for t, _ in lines.row(at, 150)) for at in range(lines.row_count)],
        )
        at = 2
        for _, name_over, width in widths(columns):
            assert any(line[at : at + width].strip() for line in drawn), name_over
            at += width + 1


@pytest.mark.parametrize("name", RECORDED)
async def test_no_row_is_cut_that_has_room(name: str, tmp_path: Path) -> None:
    app = app_of(name, tmp_path)
    async with app.run_test(size=(300, 80)) as pilot:
        await settle(pilot)
        for digit in "45670-":
            await pilot.press(digit, *([] if digit != "4" else ["z"]))
            await settle(pilot)
            pane = app.body.panes[app.body.current]
            if not isinstance(pane, SectionPane):
                continue
            for at, row in enumerate(pane.lines.items):
                if row.head:
                    continue
                shown = "".join(text for text, _ in row.draw(pane.lines.room)).rstrip()
                whole = "".join(text for text, _ in row.draw(1000)).rstrip()
                if "\u2026" in shown and shown.count("\u2026") > whole.count("\u2026"):
                    needed = cell_len(re.sub(r" {3,}", "  ", whole))
                    assert needed > pane.lines.room - 2, (pane.label, at, shown)


async def test_every_key_of_every_pane_is_in_the_help_and_does_something(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        every = list(app.body.panes.values())
        for pane in every:
            listed = {
                key
                for group, keys, _ in help.entries(app.keys, every, pane)
                if group == f"In {pane.label}"
                for key in keys.split()
            }
            for offer in bound_keys.of_chain(pane.chain()):
                assert bound_keys.MOVES.issuperset(offer.keys) or set(map(keymap.spelled, offer.keys)) <= listed
        words = {keys for _, keys, _ in help.entries(app.keys, every, every[0])}
        assert {keymap.spelled(app.keys[key.name]) for key in keymap.KEYS} <= words
        assert {key.name for key in keymap.KEYS} <= set(app.actions)


def does(kind: type, action: str) -> bool:
    """Whether a widget of this kind has the action, or the app does."""
    name = action.partition("(")[0]
    if name.startswith(("app.", "screen.")):
        name, owner = name.partition(".")[2], (IdbgApp if name.startswith("app.") else Covering)
        return hasattr(owner, f"action_{name}") or name in {"chart", "slice", "numbers", "write", "save_map"}
    return hasattr(kind, f"action_{name}")


def test_every_binding_names_an_action_that_there_is() -> None:
    lost = [
        (module, key.key, key.action)
        for module, kind in key_table.widgets()
        if issubclass(kind, Pane) or not module.startswith("welcome.")
        for key in bound_keys.of_class(kind)
        if not does(kind, key.action)
    ]
    assert lost == []
