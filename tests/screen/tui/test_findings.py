"""Pane 4 lists every kind of finding, the worst first; H shows one kind, enter leads to the pane with more of it."""

import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from idbg.config.settings import Settings
from idbg.schema import event_log, events
from idbg.schema.programs import Failure
from idbg.schema.runs import fold
from idbg.session.session import Session
from idbg.views import findings, tree
from idbg.views.diagnostics import Diagnostic
from idbg.views.tree import Section
from idbg_tui.panes.findings.pane import FindingsPane
from idbg_tui.panes.why.pane import WhyPane
from idbg_tui.widgets import sections
from idbg_tui.widgets.listing import Reading
from idbg_tui.widgets.section_rows import Look
from idbg_tui.widgets.side_by_side import SideBySide
from tests.harness.recorded import app_of, log
from tests.harness.screen import WIDE, ReadyApp, settle, texts, until


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


async def test_wrong_numbers_are_listed_and_lead_to_kernel_diff(tmp_path: Path) -> None:
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


def test_failures_and_wrong_numbers_stand_above_what_costs_time() -> None:
    breaking, planted = fold(log("breaking")), fold(log("planted"))
    kinds = findings.kinds_of(planted, breaking.last, Section("Violations", "", 1))
    assert [kind.name for kind in kinds] == ["numbers", "violations", "breaks", "recompiles"]


async def test_the_failure_of_a_frame_opens_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("idbg_tui.terminal.suspend.edit", lambda app, path, *rest: opened.append(path))
    recorded = log("breaking")
    of_frame = events.FrameFailed(run=1, frame="0/0", failure=Failure("backend", "it failed", file=__file__, line=1))
    (tmp_path / "events.jsonl").write_bytes(b"".join(event_log.encode(each) + b"\n" for each in [*recorded, of_frame]))
    app = ReadyApp(lambda: Session.open(tmp_path), Settings())
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        pane = app.query_one(FindingsPane)
        await pilot.press("4")
        pane.lines.place_cursor(place_of(pane, "finding", "failure"))
        await pilot.press("enter")
        await settle(pilot)
        assert opened == [__file__] and not isinstance(app.screen, Reading)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_sentence_that_has_no_room_beside_its_figures_goes_on_below_them(
    size: tuple[int, int], tmp_path: Path
) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("4")
        await settle(pilot)
        shown = texts(app, "findings")
        words = " ".join(re.sub(r"  +\d+$", "", line).strip() for line in shown)
        assert "an op that the accelerator runs" in words
        rows = [row for row in app.query_one(FindingsPane).lines.items[:20] if row.key and "more" in row.key[1:2]]  # type: ignore[index]
        assert rows and all(row.draw(40)[0][0].isspace() for row in rows)


def test_long_words_are_broken_between_words_and_figures_stay_in_their_columns() -> None:
    text = "size 0 of x is 12, was 8, and requires_grad of weight is not what it was when it was compiled"
    row = tree.Row(
        "r", tree.words(("⚠ ", "fallback"), (text, "strong")), (tree.Cell(3), tree.Cell(tree.Place("m.py", 7)))
    )
    name = tree.Row("n", tree.words("cpp_fused_" + "relu_" * 20), (tree.Cell(1), tree.Cell("")))
    columns = (tree.Column("times", "count"), tree.Column("line", "place", 3))
    for width in (44, 60, 90):
        section = Section("t", "", body=(tree.Table(columns, [row], "row"),))
        lines = ["".join(piece for piece, _ in each.draw(width)) for each in sections.rows(section, Look(width=width))][
            1:
        ]
        assert all(cell_len(line) <= width for line in lines) and lines[0].rstrip().endswith("m.py:7")
        whole = " ".join(" ".join([re.sub(r"(  +3)? +m.py:7 *$", "", lines[0]), *lines[1:]]).split())
        assert whole == f"⚠ {text}", width
        of_names = Section("t", "", body=(tree.Table(columns, [name], "kernel", names=True),))
        assert len(sections.rows(of_names, Look(width=width))) == 2  # a name alone is cut


async def test_what_to_press_stands_below_wrong_numbers_and_does_it_there(tmp_path: Path) -> None:
    app = app_of("wrong_pass", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("4")
        pane = app.query_one(FindingsPane)
        at = place_of(pane, "keys")
        assert "p diff" in pane.lines.text(at) and "x repro" not in pane.lines.text(
            at
        )  # nothing runs in a saved session
        pane.lines.place_cursor(at)
        await pilot.press("p")
        await until(pilot, lambda: isinstance(app.screen, SideBySide))
        await pilot.press("escape", "enter")
        await settle(pilot)
        assert app.body.current == "kernel_diff"


def test_whose_a_failure_is_stands_once_in_its_row() -> None:
    found = Diagnostic(
        kind="failure", level="error", rule="user", message="the program raised ValueError: x", program="m"
    )
    assert findings.row(found).text == "✘ failure: the program raised ValueError: x"
