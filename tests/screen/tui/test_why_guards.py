"""Are guards listed by what they are about, with their cost and the compile that each caused, and found by a filter?"""

from pathlib import Path

from idbg.schema import events
from idbg.schema.decisions.dynamo import FrameGuards
from idbg_tui.panes.why import views
from idbg_tui.panes.why.pane import WhyPane
from idbg_tui.panes.why.views import text_of
from idbg_tui.widgets.section_rows import Look, Rows
from tests.harness.decided import has
from tests.harness.recorded import app_of
from tests.harness.screen import WIDE, bar, settle, texts
from tests.harness.why_states import guard, guarded, run_of


def test_guards_stand_under_what_they_are_about_with_cost_share_and_what_they_caused() -> None:
    rows = views.listed("guards", run_of(guarded(8)), Look(whole=True))
    said = [text_of(row) for row in rows]
    assert "8 guards, 1 failed" in said[0] and rows[0].head
    assert "layer_0 0/0  8 guards" in said[1] and "2 µs" in said[1] and "⚠ 1 failed" in said[1]
    assert "all of them take 2 µs; share of a call unknown" in said[2]
    rows, said = [rows[0], rows[1], *rows[3:]], [said[0], said[1], *said[3:]]
    assert "L['self'].layers[0].weight  4 guards" in said[2] and "20.0 %" in said[2] and "→ 0/1" in said[2]
    assert "check(L['self'].layers[0].weight, 0)" in said[3] and "5.0 %" in said[3] and "→ 0/1" in said[3]
    assert rows[3].file and rows[3].line == 1 and rows[3].inside == (rows[1].fold, rows[2].fold)
    assert "→" not in said[4]


def test_what_was_not_measured_is_no_zero() -> None:
    bare = guard(1)
    made = guarded(4)
    unmeasured = FrameGuards(frame="0/0", guards=(type(bare)(kind=bare.kind, source=bare.source, code=bare.code),))
    run = run_of([*made, events.DecisionsRecorded(run=1, decisions=(unmeasured,))])
    row = text_of(views.listed("guards", run, Look(whole=True))[3])
    assert row.split()[-2:] == ["-", "-"]


def test_hiding_leaves_those_that_failed_and_the_dearest_come_first_in_the_other_order() -> None:
    run = run_of(guarded(40, frames=2))
    hidden = [text_of(row) for row in views.listed("guards", run, Look(hiding=True, whole=True))]
    assert sum("check(" in row for row in hidden) == 2
    flat = [row for row in views.listed("guards", run, Look(order=1)) if row.fold is None and not row.head]
    assert len(flat) == 40 + 2 and len(flat[0].inside) == 1, "each frame has a line for its cost"


def test_a_filter_unfolds_what_it_finds_and_finds_by_kind_source_code_and_line() -> None:
    run = run_of(guarded(10_000))
    for query, count in (("layers[17]", 4), ("weight, 9999", 1), ("model.py:90", 111), ("nothing", 0)):
        found = [row for row in views.listed("guards", run, Look(query=query)) if row.fold is None and not row.head]
        assert len(found) == count, query


def test_rows_are_made_when_they_are_seen() -> None:
    rows = views.listed("guards", run_of(guarded(10_000)), Look(whole=True))
    assert isinstance(rows, Rows) and len(rows) > 10_000 and len(rows._made) < 10
    assert rows.place(rows[9_000].key) == 9_000


async def test_ten_thousand_are_walked_filtered_and_left_on_the_screen(tmp_path: Path) -> None:
    app = app_of("mlp_train", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.state.apply([event for event in guarded(10_000)[1:-1] if has(event, FrameGuards)])
        app.show()
        pane = app.query_one(WhyPane)
        pane.choose_view("guards")
        await pilot.press("0", "f", "G")
        await settle(pilot)
        assert pane.lines.cursor == len(pane.lines.items) - 1 and pane.lines.row_count > 2_000
        await pilot.press("/", *"weight, 777)", "enter")
        await settle(pilot)
        assert pane.lines.chosen is not None and pane.lines.chosen.copied.endswith("weight, 777)")
        assert sum("check(" in row for row in texts(app, "why")) == 1 and "esc shows all" in bar(app, "footer")
        await pilot.press("escape")
        await settle(pilot)
        assert pane.look.query == "" and len(pane.lines.items) > 2_000
