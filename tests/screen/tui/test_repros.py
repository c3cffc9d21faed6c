"""Pane 9: the repros of a session, what is said of each, and their scripts, read side by side."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Program
from idbg.schema.repros import Sought
from idbg.views import repros
from idbg.views.tree import Table
from idbg_tui.app import IdbgApp
from idbg_tui.panes.repros.reading import ReadingScripts
from idbg_tui.panes.repros.scripts import read
from idbg_tui.state.state import State
from idbg_tui.terminal import suspend
from idbg_tui.widgets.line_pairs import EqualLines
from idbg_tui.widgets.listing import Listing
from tests.harness import repro_events
from tests.harness.live import FakeSession, living
from tests.harness.recorded import app_of, chain
from tests.harness.screen import SMALL, bar, settle, texts

SIZES = (SMALL, (120, 40))


@asynccontextmanager
async def opened(
    folder: Path, size: tuple[int, int] = SMALL, told: list[SessionEvent] | None = None
) -> AsyncIterator[tuple[IdbgApp, FakeSession, Pilot[None]]]:
    """A live session in which repros were asked for, with pane 9 on the screen."""
    app, session = living()
    session.folder = folder
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        session.emit(events.GraphCaptured(run=session.runs, graph=chain(3)))
        session.emit(events.RunEnded(run=session.runs, verdict="clean", seconds=1.0))
        for event in repro_events.session(folder) if told is None else told:
            session.emit(event)
        await settle(pilot)
        await pilot.press("9")
        await settle(pilot)
        yield app, session, pilot


def place(app: IdbgApp, words: str) -> int:
    lines = app.body.panes["repros"].lines  # type: ignore[attr-defined]
    return next(row for row in range(len(lines.items)) if words in lines.text(row))


async def put(app: IdbgApp, pilot: Pilot[None], words: str) -> None:
    """The cursor goes to the first row that has these words."""
    app.body.panes["repros"].lines.go(place(app, words))  # type: ignore[attr-defined]
    await settle(pilot)


@pytest.mark.parametrize("size", SIZES)
async def test_all_repros_are_listed_newest_first_each_with_its_status_its_size_and_its_age(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with opened(tmp_path, size) as (app, _, pilot):
        await pilot.press("z")
        await settle(pilot)
        told = "\n".join(texts(app, "repros"))
        ages = ["1 min", "10 min", "1 h", "2 h"]
        rows = [line for line in texts(app, "repros") if line.lstrip()[:2] in ("✔ ", "✘ ", "· ")]
        assert [age for line, age in zip(rows, ages, strict=True) if age not in line] == []
        assert "412 of 1,934 nodes" in rows[0] and "4 of 1,934 nodes" in rows[1]
        assert "no script" in rows[2] and "does not reproduce" in rows[3]
        assert "1-minimal: no node can be left out" in told and "stopped after 17 tries" in told and "X goes on" in told
        assert "also met ×2: TypeError" in told and "registered by the program's own Python" in told
        assert all(len(line) <= size[0] for line in texts(app, "repros"))
        assert "9 Repro" in str(app.body.query_one("#tabs").border_title)


async def test_nothing_is_called_good_that_was_not_run_or_goes_on() -> None:
    state, now = State(), time.time()
    state.apply([events.RunStarted(run=1, program=app_program(), target=state.target)])
    state.apply([events.MinifyStarted(at=now, run=1, sought=Sought("failure"))])
    section = repros.table(state.history.repros, state.history.runs, now + 90, live=True)
    (row,) = (row for block in section.body if isinstance(block, Table) for row in block.rows)
    assert row.text.startswith("… ") and row.cells[0].value == "searching"
    section = repros.table(state.history.repros, {}, now + 90, live=False)
    (row,) = (row for block in section.body if isinstance(block, Table) for row in block.rows)
    assert [cell.value for cell in row.cells] == ["never ended", "", "1 min"]


def app_program() -> Program:
    return Program("m.py")


@pytest.mark.parametrize("size", SIZES)
async def test_enter_reads_the_script_beside_the_nearest_that_does_not_fail(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with opened(tmp_path, size) as (app, _, pilot):
        await put(app, pilot, "1-minimal")
        await pilot.press("enter")
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, ReadingScripts)
        failing, passing = screen._pages
        assert failing.text.text == repro_events.FAILING and passing.text.text == repro_events.PASSING
        lines = repro_events.FAILING.split("\n")
        assert lines[failing.code.line - 1].strip() == "y = y.cumsum(1)"  # not the heading, which differs always
        assert failing.code._marks == {0, lines.index("    y = y.cumsum(1)")}
        assert (failing.display, passing.display) == (True, size != SMALL)
        assert "lacks cumsum" in str(passing.border_title)
        await pilot.press("tab", "j")
        await settle(pilot)
        assert passing.display and screen.page is passing
        assert passing.text.text.split("\n")[passing.code.line - 1] == lines[failing.code.line - 1]
        await pilot.press("escape")
        await settle(pilot)
        assert app.screen is app.screen_stack[0]


async def test_a_script_that_was_deleted_says_so_and_one_that_never_was_says_why(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, _, pilot):
        await put(app, pilot, "does not reproduce")
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, ReadingScripts) and "is not there any more" in app.screen.page.text.problem
        await pilot.press("escape")
        await settle(pilot)
        await put(app, pilot, "no script")
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, Listing) and "registered by the program's own" in app.screen.lines.text(0)


async def test_a_failure_that_was_met_on_the_way_is_one_enter_away(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, _, pilot):
        await put(app, pilot, "also met")
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, ReadingScripts) and app.screen.page.text.text == repro_events.OTHER
        assert "TypeError" in str(app.screen.page.border_title)


async def test_path_and_script_are_copied_and_the_editor_opens_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []
    edited: list[str] = []
    monkeypatch.setattr(suspend, "copy", lambda _, text, what, __: copied.append(text) or f"copied {what}")
    monkeypatch.setattr(suspend, "edit", lambda _, path, line, *__: edited.append(f"{path}:{line}"))
    script = str(tmp_path / "repros" / "smallest" / "repro.py")
    async with opened(tmp_path) as (app, _, pilot):
        await put(app, pilot, "1-minimal")
        await pilot.press("y", "Y")
        await settle(pilot)
        await pilot.press("e", "enter")
        await settle(pilot)
        await pilot.press("Y", "e")
        await settle(pilot)
        assert edited == [f"{script}:1", f"{script}:12"]
        assert copied == [script, repro_events.FAILING, repro_events.FAILING]


async def test_X_goes_on_with_a_search_that_was_stopped_and_not_with_one_that_is_minimal(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, session, pilot):
        await put(app, pilot, "412 of")
        await pilot.press("X")
        await settle(pilot)
        assert session.calls[-1] == "minify failure"
        await put(app, pilot, "1-minimal")
        await pilot.press("X")
        await settle(pilot)
        assert session.calls[-1] == "minify failure" and "nothing can be left out" in bar(app, "footer")
        await pilot.press("x")
        await settle(pilot)
        assert session.calls[-1] == "repro convolution_1 unsupported-op"
        session.run()
        await settle(pilot)
        await put(app, pilot, "412 of")
        calls = list(session.calls)
        await pilot.press("X")
        await settle(pilot)
        assert session.calls == calls and "run 1 is not in the worker any more" in bar(app, "footer")


async def test_a_search_counts_in_its_row_and_its_end_is_said(tmp_path: Path) -> None:
    told: list[SessionEvent] = [
        events.MinifyStarted(run=1, sought=repro_events.SEARCHED),
        events.MinifyProgressed(run=1, progress=repro_events.progress()),
    ]
    async with opened(tmp_path, told=told) as (app, session, pilot):
        rows = "\n".join(texts(app, "repros"))
        assert "searching" in rows and "412 of 1,934 nodes" in rows and "17 of 300 tries" in rows
        session.emit(events.MinifyEnded(run=1, minified=repro_events.found(tmp_path)))
        await settle(pilot)
        rows = "\n".join(texts(app, "repros"))
        assert "searching" not in rows and "reproduces" in rows and "4 of 1,934 nodes" in rows
        assert "1-minimal, 4 of 1,934 nodes" in bar(app, "footer")
        session.emit(events.MinifyStarted(run=1, sought=Sought("failure")))
        session.emit(
            events.MinifyEnded(run=1, minified=replace(repro_events.found(tmp_path), reproduced=False, status=0))
        )
        await settle(pilot)
        assert "does NOT fail so" in bar(app, "footer")
        assert "searching" not in "\n".join(texts(app, "repros"))


@pytest.mark.parametrize("size", SIZES)
async def test_a_saved_session_has_its_repros_and_can_search_for_none(tmp_path: Path, size: tuple[int, int]) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("9")
        await settle(pilot)
        assert "has no repros" in "\n".join(texts(app, "repros"))
        app.state.apply(repro_events.session(tmp_path / "gone" / "before"))
        app.show()
        (tmp_path / "gone" / "before" / "repros").rename(tmp_path / "attention" / "repros")  # it was moved here
        await settle(pilot)
        await put(app, pilot, "1-minimal")
        await pilot.press("X")
        await settle(pilot)
        assert "nothing can be left out" in bar(app, "footer")
        await put(app, pilot, "412 of")
        await pilot.press("X")
        await settle(pilot)
        assert "was read from disk" in bar(app, "footer")
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, ReadingScripts) and app.screen.page.text.text == repro_events.FAILING


def test_lines_of_two_scripts_stand_beside_one_another() -> None:
    pairing = EqualLines("a\nb\nc\nd", "a\nc\nx\nd")
    assert pairing.marks == ({2}, {3})
    assert [pairing.beside(0, line) for line in (1, 2, 3, 4)] == [1, 2, 2, 4]
    assert [pairing.beside(1, line) for line in (1, 2, 3, 4)] == [1, 3, 4, 4]


def test_a_folder_or_a_huge_file_that_a_record_names_is_not_read(tmp_path: Path) -> None:
    assert "a folder" in read(str(tmp_path), tmp_path).problem
    huge = tmp_path / "huge.py"
    with huge.open("wb") as file:
        file.truncate(1 << 30)
    assert "MiB" in read(str(huge), tmp_path).problem


@pytest.mark.parametrize("size", SIZES)
async def test_a_recorded_search_is_listed_with_what_is_promised_and_its_scripts_differ_by_what_it_needs(
    tmp_path: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []
    monkeypatch.setattr(suspend, "copy", lambda _, text, what, __: copied.append(text) or f"copied {what}")
    app = app_of("minified", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("9", "z")
        await settle(pilot)
        told = "\n".join(texts(app, "repros"))
        for words in ("aten.addmm.default: peak_memory", "2 of 8 nodes", "5 of 8 nodes", "unsupported_ops at cumsum"):
            assert words in told, words
        assert "not known to be minimal: its 5 tries are used up" in told
        assert size == SMALL or "(5 more known from before)" in told
        assert "what feeds relu" in told and "4 nodes" in told
        await put(app, pilot, "1-minimal")
        await pilot.press("Y", "enter")
        await settle(pilot)
        assert isinstance(app.screen, ReadingScripts)
        failing, passing = app.screen._pages
        assert copied == [failing.text.text] and "REPRODUCED" in failing.text.text
        line = failing.text.text.split("\n")[failing.code.line - 1]
        assert line.startswith("def program(") and "torch.ops.aten.addmm" not in passing.text.text
        assert "lacks addmm" in str(passing.border_title)


async def test_a_new_repro_moves_the_cursor_along_only_from_the_newest(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, session, pilot):
        lines = app.body.panes["repros"].lines  # type: ignore[attr-defined]
        assert lines.cursor_number == 3
        session.emit(events.MinifyStarted(run=1, sought=Sought("wrong")))
        await settle(pilot)
        assert lines.cursor_number == 4
        await put(app, pilot, "does not reproduce")
        older = lines.cursor_number
        session.emit(events.MinifyEnded(run=1, minified=repro_events.found(tmp_path)))
        session.emit(events.MinifyStarted(run=1, sought=Sought("failure")))
        await settle(pilot)
        assert (older, lines.cursor_number) == (0, 0)
