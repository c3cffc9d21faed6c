"""Pane 4 lists every kind of finding, the worst first; H shows one kind, enter leads to the pane with more of it."""

from pathlib import Path

from idbg_tui.panes.findings.pane import FindingsPane
from idbg_tui.panes.why.pane import WhyPane
from tests.harness.recorded import app_of
from tests.harness.screen import WIDE, settle, texts


def place_of(pane: FindingsPane, *start: str) -> int:
    """The first row whose key begins so."""
    keys = (row.key for row in pane.lines.items)
    return next(at for at, key in enumerate(keys) if isinstance(key, tuple) and key[: len(start)] == start)


async def test_each_kind_has_a_table_the_worst_first_and_the_tab_has_their_number(tmp_path: Path) -> None:
    app = app_of("breaking", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("4", "z")
        await settle(pilot)
        pane, shown = app.query_one(FindingsPane), "\n".join(texts(app, "findings"))
        places = [shown.index(title) for title in ("Violations: ", "Graph breaks: ", "Recompiles: ")]
        assert places == sorted(places)
        run = app.state.run
        assert run is not None and pane.mark == str(8 + run.times_broken + len(run.recompiles))
        chosen = pane.lines.chosen
        assert chosen is not None and not chosen.head


async def test_wrong_numbers_stand_above_all_else_and_lead_to_kernel_diff(tmp_path: Path) -> None:
    app = app_of("planted", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("4")
        pane = app.query_one(FindingsPane)
        pane.lines.place_cursor(place_of(pane, "finding", "mismatch"))
        await pilot.press("enter")
        await settle(pilot)
        assert app.body.current == "kernel_diff"


async def test_one_kind_alone_and_all_again(tmp_path: Path) -> None:
    app = app_of("breaking", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        pane, seen = app.query_one(FindingsPane), []
        await pilot.press("4")
        for _ in range(4):
            await pilot.press("H")
            await settle(pilot)
            seen.append((pane.view, "print() cannot be" in "\n".join(texts(app, "findings"))))
        assert [view for view, _ in seen] == ["violations", "breaks", "recompiles", ""]
        assert dict(seen)["breaks"] and not dict(seen)["violations"] and not dict(seen)["recompiles"]


async def test_enter_on_a_break_and_on_a_recompile_leads_to_its_row_in_why(tmp_path: Path) -> None:
    app = app_of("breaking", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        pane, why = app.query_one(FindingsPane), app.query_one(WhyPane)
        for kind, view in (("break", "breaks"), ("compile", "recompiles")):
            await pilot.press("4")
            at = place_of(pane, kind)
            pane.lines.place_cursor(at)
            await pilot.press("enter")
            await settle(pilot)
            assert app.body.current == "why" and why.view == view
            assert why.lines.chosen is not None and why.lines.chosen.key == pane.lines.items[at].key
