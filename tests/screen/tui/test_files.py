"""Is each file told from the others by its name, and does `e` open the line that is known?"""

from pathlib import Path

import pytest
from msgspec.structs import replace

from idbg.format import file_names
from idbg.format.failures import place_of
from idbg.schema import events
from idbg.schema.graphs import Graph
from idbg.schema.programs import Failure, Program, Target
from idbg_tui.messages import EditorRequest
from idbg_tui.panes.log.pane import LogPane
from idbg_tui.state import queries
from idbg_tui.state.state import State
from idbg_tui.terminal import suspend
from idbg_tui.widgets.lines import Lines
from tests.harness.node_facts import facts
from tests.harness.pane_host import Host
from tests.harness.recorded import app_of, chain, state_of
from tests.harness.screen import bar, settle, until

TORCHVISION = "/usr/lib/python3/site-packages/torchvision/models/resnet.py"
SYNTAX = Failure("user", "invalid syntax (syntax.py, line 4)", type="SyntaxError", file="/x/syntax.py", line=4)
QUOTED = Failure("torch", 'no\n\nfrom user code:\n  File "/x/raises.py", line 8, in f\n    y\n', type="Unsupported")


@pytest.mark.parametrize(
    ("file", "others", "name"),
    [
        ("/home/u/examples/resnet.py", {TORCHVISION}, "resnet.py"),
        (TORCHVISION, {"/home/u/examples/resnet.py"}, "torchvision/…/resnet.py"),
        ("/v/site-packages/six.py", set(), "six.py"),
        ("/v/site-packages/timm/layers.py", set(), "timm/layers.py"),
        ("/a/first/model.py", {"/a/second/model.py", "/a/first/other.py"}, "first/model.py"),
        ("/a/x/m/model.py", {"/a/y/m/model.py", "/a/x/m/model.py"}, "x/m/model.py"),
        ("model.py", {"/a/model.py"}, "model.py"),
        ("<string>", set(), "<string>"),
    ],
)
def test_two_files_of_one_name_are_told_apart(file: str, others: set[str], name: str) -> None:
    assert file_names.short(file, frozenset(others)) == name


def test_the_files_of_a_run_are_those_of_its_nodes_and_the_programs_own() -> None:
    state = state_of("resnet")
    state.program = Program("/home/u/examples/resnet.py")
    assert any(file.endswith("torchvision/models/resnet.py") for file in queries.source_files(state))
    assert "/home/u/examples/resnet.py" in queries.source_files(state)


def test_a_node_of_a_package_is_not_said_to_be_of_the_program_of_that_name() -> None:
    state = state_of("resnet")
    graph = state.graph
    assert graph is not None
    node = next(node for node in graph.nodes if node.file.endswith("torchvision/models/resnet.py"))
    state.choose(graph.node_id(node.name))
    told = next(fact.text for fact in facts(state) if fact.label == "from")
    assert told.startswith(f"torchvision/…/resnet.py:{node.line}")


def test_two_files_of_the_users_with_one_name_are_told_apart_at_the_node() -> None:
    one, other = (
        replace(node, file=f"/a/{folder}/model.py") for node, folder in zip(chain(2).nodes, "xy", strict=True)
    )
    state = State()
    state.apply(
        [
            events.RunStarted(run=1, program=Program("/a/m.py"), target=Target()),
            events.GraphCaptured(run=1, graph=Graph(chain(2).id, (one, other))),
        ]
    )
    told = next(fact.text for fact in facts(state) if fact.label == "from")
    assert told.startswith("x/model.py:1")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What $EDITOR is asked for, which is not started."""
    found: list[tuple[str, int]] = []
    monkeypatch.setattr(suspend, "edit", lambda app, path, line, editor: found.append((path, line)))
    return found


@pytest.mark.parametrize(("failure", "place"), [(SYNTAX, ("/x/syntax.py", 4)), (QUOTED, ("/x/raises.py", 8))])
async def test_e_opens_the_line_at_which_the_last_run_failed(
    tmp_path: Path, failure: Failure, place: tuple[str, int], asked: list[tuple[str, int]]
) -> None:
    assert place_of(failure) == place
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        started = events.RunStarted(run=2, program=Program("/x/syntax.py"), target=Target())
        app.state.apply([started, events.RunEnded(run=2, verdict="failed", seconds=0.1, failure=failure)])
        app.show()
        await pilot.press("1", "e")
        await settle(pilot)
    assert asked == [place]


async def test_e_opens_the_selected_nodes_line_where_the_run_has_one(
    tmp_path: Path, asked: list[tuple[str, int]]
) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        node = app.state.node
        assert node is not None
        await pilot.press("1", "e")
        await settle(pilot)
    assert asked == [(node.file, node.line)]


async def test_e_in_the_log_opens_the_line_that_is_told_of_there() -> None:
    state, pane = State(), LogPane()
    failure = replace(SYNTAX, traceback='Traceback:\n  File "/x/lib.py", line 9, in g\n    boom()')
    state.apply(
        [
            events.RunStarted(run=1, program=Program("/x/syntax.py"), target=Target()),
            events.RunEnded(run=1, verdict="failed", seconds=0.1, failure=failure),
        ]
    )
    app = Host(pane, state)
    async with app.run_test(size=(100, 20)) as pilot:
        await pilot.pause()
        rows = pane.query_one(Lines)
        texts = [rows.line(y).text for y in range(rows.row_count)]
        for words in ("at /x/syntax.py:4", 'File "/x/lib.py", line 9'):
            rows.place_cursor(next(y for y, text in enumerate(texts) if words in text))
            await pilot.press("e")
            await pilot.pause()
        asked = [(message.path, message.line) for message in app.of(EditorRequest)]  # type: ignore[attr-defined]
    assert asked == [("/x/syntax.py", 4), ("/x/lib.py", 9)]


async def test_the_session_is_written_as_one_page_beside_the_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a saved session, to the present folder: the session's stays as it is."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    app = app_of("attention", tmp_path)
    page = tmp_path / "here" / "attention.html"
    async with app.run_test(size=(200, 40)) as pilot:
        await settle(pilot)
        await pilot.press("O")
        await until(pilot, lambda: "written: " in bar(app, "footer"))
    assert page.read_bytes().lstrip().lower().startswith(b"<!doctype html>")
    assert [each.name for each in (tmp_path / "attention").iterdir()] == ["events.jsonl"]
