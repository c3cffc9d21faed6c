"""Are frames, breaks and recompiles of a real compile listed as they were, and do their keys lead somewhere?"""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from idbg.render.text import text as as_text
from idbg.schema.decisions.dynamo import FailedGuard, FrameGuards, FrameResult, Skip, StackLine
from idbg.views import about
from idbg_tui.app import IdbgApp
from idbg_tui.messages import EditorRequest
from idbg_tui.panes.why import views
from idbg_tui.panes.why.pane import WhyPane
from idbg_tui.panes.why.views import ViewName, text_of
from idbg_tui.widgets.section_rows import Look, Row
from tests.harness.decided import has
from tests.harness.framed import recompiled, started
from tests.harness.framed import run_of as framed
from tests.harness.recorded import app_of, log, state_of
from tests.harness.screen import SMALL, WIDE, bar, settle, texts
from tests.harness.why_states import guarded, run_of

FILE_NAME = "breaking.py"


def rows(view: ViewName, look: Look | None = None, *, name: str = "breaking") -> list[Row]:
    return list(views.listed(view, run_of(log(name)), look or Look()))


def said(view: ViewName, look: Look | None = None) -> list[str]:
    return [text_of(row).rstrip() for row in rows(view, look)]


def line_of(text: str) -> int:
    program = Path(__file__).parents[2] / "recordings" / FILE_NAME
    return next(number for number, line in enumerate(program.read_text().splitlines(), 1) if text in line)


async def shown(pilot: Pilot[None], view: ViewName) -> WhyPane:
    await settle(pilot)
    await pilot.press("0")
    pane = pilot.app.query_one(WhyPane)
    pane.choose_view(view)
    await pilot.pause()
    return pane


def place(pane: WhyPane, words: str) -> int:
    return next(at for at, row in enumerate(pane.lines.items) if words in text_of(row))


def test_frames_that_are_alike_are_one_row_which_unfolds_to_each_and_why_it_was_compiled_again() -> None:
    told = said("frames", Look(whole=True))
    middle = next(row for row in told if "middle  0/0  ×2, alike" in row)
    assert middle.startswith("▾ ✔") and middle.endswith(f"{FILE_NAME}:{line_of('def middle')}")
    again = next(row for row in told[told.index(middle) :] if row.strip().startswith("0/1"))
    assert again.strip().startswith("0/1  n is 2, and was 1")
    assert any("middle, after line 10  1/0" in row for row in told)
    closed = said("frames")
    assert any("product  3/0  ×3, alike" in row for row in closed) and not any("3/1" in row for row in closed)


def test_what_was_left_alone_is_told_the_users_first_and_folded() -> None:
    skips = [row for row in said("frames") if "functions skipped, all of torch and libraries" in row]
    assert len(skips) == 1 and skips[0].startswith("▸")
    assert any("Dynamo never compiles code of this file" in row for row in said("frames", Look(whole=True)))


def test_a_frame_leads_to_its_graph_and_shows_its_numbers() -> None:
    row = next(row for row in rows("frames") if "forward" in text_of(row))
    run = run_of(log("breaking"))
    cells = text_of(row).split()
    assert row.enter == "node" and row.nodes[0].graph.frame == "4/0"
    assert str(len(run.decided.last(FrameGuards)["4/0"].guards)) in cells


def test_breaks_are_told_once_a_line_with_their_count_and_lead_to_the_line_and_the_graphs() -> None:
    heads, first, second = rows("breaks")
    assert heads.head and "times" in text_of(heads)
    assert 'print() cannot be in a graph  print("in the middle")' in text_of(first)
    assert first.line == line_of("print(") and first.enter == "edit" and " 2  " in text_of(first)
    assert "Python branches on the value of a tensor" in text_of(second) and second.line == line_of("if y.sum()")
    assert first.before is not None and first.after is not None
    assert (first.before.frame, first.after.frame) == ("0/0", "1/0")
    assert first.sought is not None and first.sought.kind == "break"


def test_an_opened_break_has_what_to_do_torchs_words_hints_page_and_the_users_stack() -> None:
    told = said("breaks", Look(whole=True))
    assert any("→ may help: have it done after the graph" in row for row in told)
    assert any(row.strip().startswith("torch's hint: Avoid calling builtin `print`") for row in told)
    assert any("GB0059" in row for row in told)
    assert any(f"{FILE_NAME}:{line_of('print(')}" in row and "in middle" in row for row in told)
    closed = said("breaks", Look(turned=frozenset((rows("breaks")[1].fold,))))
    assert any("▸" in row and "lines of idbg" in row for row in closed)
    assert not any("jobs.py" in row for row in closed)


def test_a_recompile_says_what_was_expected_what_came_and_what_can_be_tried() -> None:
    told = rows("recompiles")
    assert any("product  3 compiles" in text_of(row) for row in told)
    again = {row.frame: row for row in told if row.inside and row.frame}
    assert "size 0 of x is 5, and was 4" in text_of(again["3/1"]) and again["3/1"].again is not None
    assert "dtype of x is Double, and was Float" in text_of(again["3/2"])
    assert "n is 2, and was 1" in text_of(again["0/1"]) and again["0/1"].line == line_of("x.sin() * n")
    assert "the first" in text_of(again["3/0"]) and again["3/0"].fold is None
    tries = [row for row in told if "t tries it" in text_of(row)]
    assert tries and all(row.again is not None for row in tries)
    narrow = [row for row in rows("recompiles", Look(width=78)) if row.again is not None]
    shown = ["".join(text for text, _ in row.draw(78)).rstrip() for row in narrow]
    assert sum(row.endswith("t tries it") for row in shown) == len(tries)  # it is not cut off
    assert any("mark_dynamic" in row for row in shown)  # t works on the line of code too
    assert any("expected 4, got 5" in row for row in said("recompiles", Look(whole=True)))


@pytest.mark.parametrize(
    ("function", "code"), [("f", "mark_dynamic(x, 1)"), ("torch_dynamo_resume_in_f_at_7", "dynamic_sources = ")]
)
def test_what_is_tried_for_a_function_after_a_break_is_nothing_that_its_caller_could_mark(
    function: str, code: str
) -> None:
    size = FailedGuard(text="", kind="size", source="L['x']", what="size 1", expected="3", actual="4")
    run = framed(started("0/0", function), recompiled("0/1", size), started("0/1", function))
    row = next(row for row in views.listed("recompiles", run, Look()) if row.frame == "0/1")
    assert row.again is not None and code in row.again.code


def test_what_was_compiled_often_enough_to_stop_soon_is_a_warning() -> None:
    run = run_of(log("breaking"))
    run.decided.last(FrameResult)["3/2"] = FrameResult(frame="3/2", end="compiled", alike=7, limit=8)
    row = next(row for row in views.listed("recompiles", run, Look()) if "product" in text_of(row))
    assert "⚠ 7 of 8" in text_of(row) and any(style == "fallback" for _, style in row.draw(120))


def test_W_has_the_real_breaks_and_recompiles_of_a_line() -> None:
    state = state_of("breaking")
    assert state.shown is not None and state.provenance is not None

    def found(text: str) -> dict[str, str]:
        subject = about.line(state.provenance, f"tests/recordings/{FILE_NAME}", line_of(text))  # type: ignore[arg-type]
        return {name: as_text(section) for name, section in about.sections(state.shown, subject)}  # type: ignore[arg-type]

    assert "print() cannot be in a graph" in found("print(")["breaks"]
    assert {"recompiles", "guards"} <= found("x.sin() * n").keys()


def test_a_filter_leaves_what_has_the_text_and_what_it_stands_under() -> None:
    told = said("breaks", Look(query="torch.cond"))
    assert any("Python branches" in row for row in told) and not any("print()" in row for row in told)
    assert said("breaks", Look(query="no such thing")) == []


async def test_enter_on_a_break_opens_the_line_and_point_goes_to_the_graph_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_of("breaking", tmp_path)
    opened: list[EditorRequest] = []
    async with app.run_test(size=WIDE) as pilot:
        monkeypatch.setattr(app.controllers.files, "edit", opened.append)
        await shown(pilot, "breaks")
        await pilot.press("enter")
        await settle(pilot)
        assert [(asked.path, asked.line) for asked in opened] == [(f"tests/recordings/{FILE_NAME}", line_of("print("))]
        await pilot.press("full_stop")
        await settle(pilot)
        assert app.state.graph_id is not None and app.state.graph_id.frame == "1/0"
        await pilot.press("comma")
        await settle(pilot)
        assert app.state.graph_id.frame == "0/0"


async def test_a_row_moves_the_other_panes_and_rows_about_the_selected_line_are_marked(tmp_path: Path) -> None:
    app = app_of("breaking", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        pane = await shown(pilot, "frames")
        pane.lines.go(place(pane, "product"))
        await settle(pilot)
        assert app.state.graph_id is not None and app.state.graph_id.frame == "3/0"
        pane.choose_view("recompiles")
        run = app.state.shown
        assert run is not None
        wanted = next(
            graph.node_id(node.name)
            for graph in run.graphs.values()
            for node in graph.nodes
            if node.line == line_of("x.sin() * n") and node.op.startswith("call")
        )
        app.state.choose(wanted)
        app.show()
        await settle(pilot)
        drawn = [pane.lines.text(at) for at in range(len(pane.lines.items))]
        marked = [row for row in drawn if row.startswith("▌")]
        assert len(marked) == 1 and "n is 2, and was 1" in marked[0]


async def test_l_unfolds_h_goes_to_what_it_is_under_and_a_new_event_moves_nothing(tmp_path: Path) -> None:
    app = app_of("breaking", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        pane = await shown(pilot, "breaks")
        await pilot.press("l", "j", "j")
        await settle(pilot)
        before = pane.lines.chosen
        assert before is not None and before.inside
        app.state.apply([event for event in log("breaking") if has(event, FrameResult)])
        app.show()
        assert pane.lines.chosen is not None and pane.lines.chosen.key == before.key
        await pilot.press("h")
        assert pane.lines.chosen is not None and pane.lines.chosen.fold == before.inside[-1]


async def test_a_decision_is_found_under_what_was_folded(tmp_path: Path) -> None:
    app = app_of("breaking", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        pane = await shown(pilot, "frames")
        skip = app.state.run.decided.every(Skip)[3]  # type: ignore[union-attr]
        rows = views.listed("frames", app.state.run, Look(whole=True))  # type: ignore[arg-type]
        key = next(row.key for row in rows if (row.file, row.line) == (skip.file, skip.line))
        pane.reveal_in("frames", key)
        assert pane.lines.chosen is not None and skip.function in text_of(pane.lines.chosen)


async def test_no_view_is_wider_than_a_small_screen(tmp_path: Path) -> None:
    app = app_of("breaking", tmp_path)
    async with app.run_test(size=SMALL) as pilot:
        for view in views.VIEWS:
            pane = await shown(pilot, view)
            await pilot.press("f")
            assert all(len(row) <= 80 for row in texts(app, "why")), view
            assert f"[{view}" in pane._names.render().plain
            assert len(pane._names.render().plain.rstrip()) <= 78, view


async def test_the_tab_says_how_often_graphs_broke(tmp_path: Path) -> None:
    app = app_of("breaking", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        pane = await shown(pilot, "breaks")
        assert pane.mark == "3" and pane.heading().plain == "0 Why 3"
        assert "go there" in bar(app, "footer")


def test_a_thousand_frames_are_folded_and_listed() -> None:
    run = run_of(guarded(1_000, frames=1_000))
    found = views.listed("frames", run, Look())
    assert len(found) == 13 and "×84, alike" in text_of(found[1])  # of 12 functions


def test_an_app_over_a_session_without_decisions_is_an_app(tmp_path: Path) -> None:
    assert isinstance(app_of("resnet", tmp_path), IdbgApp)


def test_a_frame_that_failed_shows_the_users_lines_at_once() -> None:
    run = run_of(log("breaking"))
    stack = (StackLine("/lib/site-packages/torch/_dynamo/x.py", 1), StackLine("model.py", 5, "inner", "mm(x, y)"))
    failed = FrameResult(frame="4/0", end="failed", why="RuntimeError: shapes", stack=stack)
    run.decided.last(FrameResult)["4/0"] = failed
    found = list(views.listed("frames", run, Look()))
    told = [text_of(row) for row in found]
    assert any("✘ forward" in row and "failed" in row for row in told) and any(
        "RuntimeError: shapes" in r for r in told
    )
    line = next(row for row in found if "mm(x, y)" in text_of(row))
    assert (line.file, line.line, line.enter) == ("model.py", 5, "edit")
    assert any("1 line of torch" in row for row in told)
