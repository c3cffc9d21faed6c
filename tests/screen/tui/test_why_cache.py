"""Does Why show what caches answered and why, CUDA graphs at their lines, and candidates with bars and a winner?"""

from pathlib import Path

from idbg.schema import events
from idbg.schema.decisions.inductor import Autotuned, CacheAnswer, Choice, CudaGraph, Differs
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Frame
from idbg.schema.runs import Run, fold
from idbg.views import cache as report
from idbg_tui.panes.why import views
from idbg_tui.panes.why.pane import WhyPane
from idbg_tui.panes.why.views import text_of
from idbg_tui.widgets.section_rows import Look, Row
from tests.harness.recorded import app_of, log
from tests.harness.screen import SMALL, settle, texts
from tests.harness.why_states import FILE, start

LOOK = Look(width=118)


def shown(happened: list[SessionEvent], look: Look = LOOK) -> list[str]:
    return [text_of(row).rstrip() for row in rows(happened, look)]


def rows(happened: list[SessionEvent], look: Look = LOOK) -> list[Row]:
    framed = [*start(), events.FrameStarted(run=1, frame=Frame("0/0", "f", FILE, 3)), *happened]
    return list(views.listed("cache", fold(framed).runs[1], look))


def answered(answer: CacheAnswer) -> list[SessionEvent]:
    return [events.DecisionsRecorded(run=1, frame="0/0", decisions=(answer,))]


def test_a_miss_says_which_part_of_the_key_differs_and_a_bypass_why() -> None:
    differs = (Differs("the shape of argument 1", "[5, 8]", "[4, 8]"),)
    miss = CacheAnswer(cache="fx_graph", outcome="miss", part="inference", differs=differs, nearest="run 1, frame 0/0")
    bypass = CacheAnswer(cache="fx_graph", outcome="bypass", part="inference", reason="an op that cannot be cached")
    text = "\n".join(shown([*answered(miss), *answered(bypass)]))
    assert "⚠ miss" in text and "the shape of argument 1 is [5, 8], was [4, 8]" in text
    assert "⚠ bypass" in text and "an op that cannot be cached" in text and "0 of 2 lookups hit" in text


def test_kernels_of_one_outcome_are_one_row_that_unfolds() -> None:
    many = [CacheAnswer(cache="kernel", outcome="hit", part="inference", what=f"cpp_{n}") for n in range(300)]
    happened = [event for answer in many for event in answered(answer)]
    closed = shown(happened)
    assert any("300 kernels" in line for line in closed) and len(closed) < 10
    assert len(shown(happened, Look(width=118, whole=True))) == len(closed) + 300


def test_a_cuda_graph_that_was_skipped_leads_to_its_line() -> None:
    graph = CudaGraph(outcome="skipped", part="inference", reason="mutated inputs", file=FILE, line=7)
    found = rows([events.DecisionsRecorded(run=1, frame="0/0", decisions=(graph,))])
    row = next(row for row in found if "no CUDA graph" in text_of(row))
    assert (row.file, row.line, row.enter) == (FILE, 7, "edit") and "✘" in text_of(row)


def test_candidates_stand_by_time_with_bars_and_the_winner_marked() -> None:
    choices = (Choice("extern_mm", 1e-5, "aten"), Choice("triton_mm_0", 4e-5), Choice("triton_mm_1", error="no room"))
    tuned = Autotuned(op="mm", choices=choices, chosen="extern_mm", seconds=0.5)
    found = shown([events.DecisionsRecorded(run=1, frame="0/0", decisions=(tuned,))])
    lines = [line for line in found if "mm" in line and ("µs" in line or "failed" in line)]
    bars = [line.count("█") for line in lines]
    assert bars == [4, 14, 0] and "✔ extern_mm" in lines[0] and "10 µs" in lines[0] and "no room" in lines[2]


def test_a_recorded_compile_has_a_row_for_each_answer() -> None:
    run: Run = fold(log("switched")).runs[1]
    text = "\n".join(text_of(row) for row in views.listed("cache", run, Look(width=200, whole=True)))
    for row in report.answers(run):
        assert report.NAMES[row.answer.cache] in text and row.answer.outcome in text and row.answer.what in text
    assert views.count("cache", run) > 0


async def test_on_a_small_screen_too(tmp_path: Path) -> None:
    app = app_of("switched", tmp_path)
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        await pilot.press("0")
        app.query_one(WhyPane).choose_view("cache")
        await settle(pilot)
        assert any("FX graph cache" in row for row in texts(app, "why"))
