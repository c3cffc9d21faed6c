"""Does Why show where a compile's time goes: a tree that can be folded, a picture, other runs, a trace to keep?"""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from idbg.analysis.decisions import times
from idbg.schema import events
from idbg.schema.decisions.inductor import Span
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run, fold
from idbg_tui.panes.why import views
from idbg_tui.panes.why.pane import WhyPane
from idbg_tui.panes.why.views import text_of
from idbg_tui.widgets.section_rows import Look, Row
from tests.harness.live import living
from tests.harness.recorded import app_of, log
from tests.harness.screen import SMALL, WIDE, bar, settle, texts, until
from tests.harness.work import lines_run

RECORDED = "breaking"
LOOK = Look(width=118)


def recorded() -> Run:
    return fold(log(RECORDED)).runs[1]


def rows_of(run: Run, look: Look) -> Sequence[Row]:
    return views.listed("time", run, look)


def said(found: Sequence[Row]) -> list[str]:
    return [text_of(row).rstrip() for row in found]


def half(number: int) -> list[SessionEvent]:
    """A run of which the backend goes on."""
    spans = (
        Span(id=1, name="frame compile", began=100.0, frame="0/0"),
        Span(id=2, name="dynamo", began=100.0, seconds=1.0, parent=1, frame="0/0"),
        Span(id=3, name="lowering", began=101.0, parent=1, frame="0/0"),
    )
    return [
        events.RunStarted(at=100.0, run=number, program=Program("m.py"), target=Target()),
        events.DecisionsRecorded(run=number, decisions=spans),
    ]


def test_every_span_is_in_the_tree_with_its_time_once_short_ones_are_asked_for() -> None:
    run = recorded()
    timings = times.tree(run)
    shown = rows_of(run, Look(width=118, whole=True))
    assert sum(row.key[0] == "span" and len(row.key) == 2 for row in shown if isinstance(row.key, tuple)) == len(
        timings
    )
    few = rows_of(run, LOOK)
    left = next(text for text in said(few) if "left out" in text)
    assert len(few) < len(shown) and left.strip()[0].isdigit()


def test_what_dominates_is_said_first_and_what_is_spent_adds_up() -> None:
    text = said(rows_of(recorded(), LOOK))
    assert text[0].strip().startswith("compiling took") and "most of it" in text[1]
    shares = [float(line.split()[-2]) for line in text[text.index(next(t for t in text if "by use" in t)) + 1 :][:6]]
    assert 90 < sum(shares) <= 100.1


def test_while_it_goes_on_it_says_what_goes_on_for_how_long_and_what_is_usual() -> None:
    ended = (
        Span(id=3, name="lowering", began=101.0, seconds=9.0, parent=1, frame="0/0"),
        Span(id=1, name="frame compile", began=100.0, seconds=10.0, frame="0/0"),
    )
    end: list[SessionEvent] = [
        events.DecisionsRecorded(run=1, decisions=ended),
        events.RunEnded(run=1, verdict="clean", seconds=10.0),
    ]
    before = fold([*half(1), *end]).runs[1]
    run = fold(half(2)).runs[2]
    text = said(rows_of(run, Look(width=118, now=105.0, earlier=(before,))))
    assert text[0].strip().startswith("compiling for 5.00 s so far, 10.0 s before: lowering 4.00 s, 9.00 s before")
    lowering = next(line for line in text if "lowering" in line and "in progress" in line)
    assert lowering.split()[-4:] == ["4.00", "s", "9.00", "s"]
    later = said(rows_of(run, Look(width=118, now=106.0)))
    assert later[0].strip().startswith("compiling for 6.00 s so far: lowering 5.00 s")


def test_against_the_run_before_it_says_what_took_longer() -> None:
    run = recorded()
    text = said(rows_of(run, Look(width=118, earlier=(run,), turned=frozenset({"against"}))))
    assert any("against run 1" in line and "compile time" in line for line in text)
    assert text[-1].strip() == "no use changed much"


@pytest.mark.parametrize("size", [WIDE, SMALL])
async def test_one_key_changes_tree_and_picture_in_which_blocks_are_gone_to_and_zoomed(
    size: tuple[int, int], tmp_path: Path
) -> None:
    app = app_of(RECORDED, tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("0")
        pane = app.query_one(WhyPane)
        pane.choose_view("time")
        await pilot.press("o", "z")
        await settle(pilot)
        picture = [row for row in pane.lines.items if row.blocks]
        assert picture and not any("by use" in row for row in texts(app, "why"))
        width = pane.lines.line_width
        assert all(block.start + block.length <= width for row in picture for block in row.blocks)
        await pilot.press("G")
        assert pane.look.focus in {block.id for block in picture[-1].blocks}
        row = next(row for row in picture if len(row.blocks) > 1)
        await pilot.press(*["k"] * (len(picture) - 1 - picture.index(row)), *["h"] * 99)
        assert pane.look.focus == row.blocks[0].id
        await pilot.press("l")
        focus = pane.look.focus
        assert focus == row.blocks[1].id
        await pilot.press("enter")
        assert pane.look.zoom == focus
        zoomed = [row for row in pane.lines.items if row.blocks]
        assert zoomed[0].blocks[0].id == focus and zoomed[0].blocks[0].length >= width - 3
        await pilot.press(*["k"] * picture.index(row), "enter")
        assert pane.look.zoom == 0
        await pilot.press("o")
        assert any("by use" in row for row in texts(app, "why"))


async def test_t_writes_a_trace_and_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = app_of(RECORDED, tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.query_one(WhyPane).choose_view("time")
        await pilot.press("0", "O")
        await settle(pilot)
        (path,) = tmp_path.glob("*trace*.json")
        assert path.name in bar(app, "footer")
        assert len(json.loads(path.read_text())["traceEvents"]) > 20


def test_ten_thousand_spans_have_a_row_each() -> None:
    spans = [Span(id=1, name="frame compile", began=0.0, seconds=10.0)]
    spans += [Span(id=n, name="pass", what=f"p{n}", began=n / 1000, seconds=0.001, parent=1) for n in range(2, 10_001)]
    run = recorded()
    run = Run(1, run.program, run.target, 0.0)
    run.decided.apply("", map(replace, spans))
    rows, work = lines_run(lambda: rows_of(run, Look(width=118, whole=True)))
    assert len(rows) > 10_000 and work < 200 * 10_000


async def test_what_was_laid_while_it_was_hidden_fits_when_it_is_seen(tmp_path: Path) -> None:
    app = app_of(RECORDED, tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("0")
        pane = app.query_one(WhyPane)
        pane.choose_view("time")
        await settle(pilot)
        shown = texts(app, "why")
        await pilot.press("7")
        await settle(pilot)
        pane.lay()
        await pilot.press("0")
        await settle(pilot)
        assert texts(app, "why") == shown


async def test_in_a_sessions_first_run_what_is_typical_comes_from_earlier_sessions() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await until(pilot, lambda: app.state.typical == {"lowering": 2.0})
        session.emit(half(session.runs)[1])
        await pilot.press("0")
        app.query_one(WhyPane).choose_view("time")
        await settle(pilot)
        assert ", typically 2.00 s for all of it" in " ".join(" ".join(texts(app, "why")[:2]).split())
