"""Does a pane that was hidden show what is, once it is shown again?"""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import GraphId
from idbg_tui.app import IdbgApp
from idbg_tui.state import queries
from idbg_tui.widgets.changed_lines import ChangedLinesView
from idbg_tui.widgets.lines import Lines
from tests.harness.recorded import app_of, log
from tests.harness.screen import settle

pytestmark = pytest.mark.usefixtures("painted")

DENY = '[[rules]]\nkind = "unsupported_ops"\nseverity = "reject"\ndeny = ["linear"]\nstages = ["dynamo"]\n'
IN_DYNAMO = f'name = "d"\n{DENY}'
LONG = events.Noted(level="warning", text="a sentence with many words " * 12)


def stale(app: IdbgApp) -> dict[str, list[int]]:
    """Of each list on the screen, the lines that were painted otherwise than they are."""
    found = {}
    for widget in app.query(ChangedLinesView):
        lines = [y for y in range(widget.size.height) if widget._painted.get(y) != widget.line(y).simplify()]
        if lines:
            found[type(widget).__name__] = lines
    return found


def happens(name: str) -> list[SessionEvent]:
    """What changes every pane: other rules, and all of another recording's events under this run's number."""
    return [events.RulesEdited(text=IN_DYNAMO, origin="editor"), LONG, *log(name)[1:]]


async def shown(pilot: Pilot[None], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


async def test_violations_of_another_stage_are_listed_after_the_zoom_in_which_they_were_found(tmp_path: Path) -> None:
    app = app_of("mlp_train", tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        app.state.apply([events.RulesEdited(text=IN_DYNAMO, origin="editor")])
        app.show()
        await shown(pilot, "1", "z", "v", "z")
        assert app.state.graph_id == GraphId("0/0", "dynamo") and queries.counts(app.state) == {"reject": 2}
        assert stale(app) == {}


@pytest.mark.parametrize(("zoomed", "size"), [(pane, ((160, 45), (80, 24))[pane % 3 == 0]) for pane in range(10)])
async def test_every_pane_is_painted_anew_that_changed_while_it_was_hidden(
    zoomed: int, size: tuple[int, int], tmp_path: Path
) -> None:
    app = app_of("mlp_train", tmp_path)
    async with app.run_test(size=size) as pilot:
        await shown(pilot, "4", "5", "6", "7", str(zoomed), "z")
        app.state.apply(happens("benched" if zoomed % 2 else "planted"))
        app.show()
        await shown(pilot, "z")
        assert stale(app) == {}
        for number in range(10):
            await shown(pilot, str(number))
            assert stale(app) == {}, f"pane {number}"


async def test_a_sentence_that_came_while_its_pane_was_hidden_is_as_wide_as_the_pane(tmp_path: Path) -> None:
    app = app_of("planted", tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        await shown(pilot, "5", "7", "1", "z")
        app.state.apply([LONG])
        app.show()
        await shown(pilot, "z")
        rows = app.body.panes["log"].query_one(Lines)
        widths = [len(rows.line(y).text.rstrip()) for y in range(rows.size.height)]
        assert max(widths) > 70


async def test_the_cursor_can_be_seen_that_moved_while_its_pane_was_hidden(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        await shown(pilot, "4", "z")
        last = app.state.graph.nodes[-3] if app.state.graph else None
        assert last is not None and app.state.graph_id is not None and app.state.graph is not None
        app.state.choose(app.state.graph.node_id(last.name))
        app.show()
        await shown(pilot, "z")
        lines = app.body.panes["graph"].query_one(Lines)
        assert lines.scroll_offset.y <= lines.cursor < lines.scroll_offset.y + lines.size.height
