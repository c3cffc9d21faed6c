"""While a program compiles its phases are listed; without an accelerator the room of the rules has the run in short."""

import re
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from idbg.schema import events
from idbg.schema.decisions.inductor import Span
from idbg.schema.programs import Program, Target
from idbg_tui.panes.graph.pane import GraphPane
from idbg_tui.panes.rules.pane import RulesPane
from idbg_tui.state import queries
from idbg_tui.state.state import State
from idbg_tui.status_bar.footer import footer_progress
from tests.harness.benched import with_every_launch
from tests.harness.pane_host import Host
from tests.harness.recorded import app_of
from tests.harness.screen import SMALL, WIDE, bar, settle


def compiling() -> State:
    """Dynamo is done, lowering goes on, and nothing was captured yet; such a run usually takes 40 s."""
    began = time.time() - 20
    spans = (
        Span(id=1, name="program", began=began + 5, seconds=1.0),
        Span(id=2, name="frame compile", began=began + 6, frame="0/0"),
        Span(id=3, name="dynamo", began=began + 6, seconds=2.0, parent=2, frame="0/0"),
        Span(id=4, name="lowering", began=began + 8, parent=2, frame="0/0"),
    )
    state = State()
    state.apply(
        [
            events.RunStarted(at=began, run=1, program=Program("m.py"), target=Target("inductor")),
            events.WorkerStarted(at=began, pid=1, torch="2.15", python="3.11", devices=("cpu",), seconds=0.1),
            events.PhaseChanged(run=1, phase="lowering"),
            events.DecisionsRecorded(run=1, decisions=spans),
        ]
    )
    state.take_typical({"lowering": 30.0, "c++ compile": 9.0, "program": 1.0, "run": 39.0})
    return state


@pytest.mark.parametrize("width", [78, 58, 40])
async def test_before_a_graph_is_captured_the_phases_are_listed_with_ticks_and_usual_times(width: int) -> None:
    pane = GraphPane()
    async with Host(pane, compiling()).run_test(size=(width, 24)) as pilot:
        await pilot.pause()
        lines = pane.lines
        rows = ["".join(text for text, _ in lines.row(at, lines.line_width)) for at in range(lines.row_count)]
    listed = {" ".join(row.split()[:2]): row.split()[2:] for row in rows}
    assert re.match(r" compiling for \d+ s, usually 40 s", rows[0])
    assert listed["✔ torch"] == ["starts", "5.00", "s"] and listed["✔ program"] == ["1.00", "s"]
    assert listed["✔ Dynamo"] == ["2.00", "s"] and listed["→ lowering"][-2:] == ["30.0", "s"]
    assert listed["C++ 9.00"] == ["s"] and "fusion" in listed  # they are still to come


def test_the_footer_has_a_bar_of_the_usual_time_that_leaves_the_keys_their_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = compiling()
    assert state.run is not None
    now = state.run.started + 20.04  # a busy machine may take a second to come here
    monkeypatch.setattr(queries, "time", SimpleNamespace(time=lambda: now))
    words = {width: "".join(text for text, _ in footer_progress(state, width)) for width in (67, 107)}
    assert words[107].startswith("lowering  20.") and words[107].endswith(" █████▁▁▁▁▁ usually 40 s")
    assert words[67].endswith(" ██▁▁▁ 40 s") or words[67].endswith(" ███▁▁ 40 s")
    assert all(len(line) <= width - 38 for width, line in words.items())


async def test_the_room_of_the_rules_lists_the_phases_too_and_goes_on_to_the_run() -> None:
    state, pane = compiling(), RulesPane()
    state.apply([events.RulesEdited(text='name = "none"\n', origin="")])
    async with Host(pane, state).run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        assert any("→ lowering" in text for text in _texts(pane))
        state.apply([events.RunEnded(run=1, verdict="compiled", seconds=20.0)])
        pane.show(state)
        await pilot.pause()
        shown = "\n".join(_texts(pane))
        assert "→ lowering" not in shown
        assert "d compare · R time kernels · W why" in " ".join(shown.split())


def _texts(pane: RulesPane) -> list[str]:
    return ["".join(text for text, _ in row.draw(56)) for row in pane.summary.items]


@pytest.mark.parametrize("size", [SMALL, WIDE])
async def test_without_an_accelerator_the_run_is_shown_in_short(size: tuple[int, int], tmp_path: Path) -> None:
    app = app_of("unruled", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("8")
        await settle(pilot)
        pane = app.body.panes["rules"]
        assert isinstance(pane, RulesPane) and app.focused is pane.summary
        shown = " ".join(" ".join(_texts(pane)).split())
        run = app.state.run
        assert run is not None
        assert "kernels 2 C++, 1 extern" in shown and "breaks no breaks, no recompiles" in shown
        assert "slowest not measured" in shown and "numbers not compared" in shown and "next W why" in shown
        assert bar(app, "footer").startswith("W why")
        await pilot.press("right_square_bracket")  # the text of the rules is one key away
        await settle(pilot)
        assert app.focused is pane.editor


async def test_the_slowest_kernel_is_named_with_its_time_and_enter_leads_to_it(tmp_path: Path) -> None:
    app = app_of("unruled", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        with_every_launch(app.state)
        app.show()
        await settle(pilot)
        times = queries.kernel_times(app.state)
        assert times is not None
        pane = app.body.panes["rules"]
        assert isinstance(pane, RulesPane)
        await pilot.press("8")
        await settle(pilot)
        row = next(at for at, item in enumerate(pane.summary.items) if item.kernel is not None)
        assert pane.summary.items[row].kernel[2] == times.by_time[0].name  # type: ignore[index]
        pane.summary.place_cursor(row)
        await pilot.press("enter")
        await settle(pilot)
        assert app.state.kernel is not None and app.state.kernel.name == times.by_time[0].name
        assert app.body.current == "source"
