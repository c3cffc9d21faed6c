"""The processes of a session are listed, and one of them is shown on the whole screen."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from idbg.config.settings import Settings
from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.processes import Process
from idbg.session.session import Session
from idbg.session.store import Store
from idbg_tui.app import IdbgApp
from tests.harness.recorded import app_of, log
from tests.harness.screen import SMALL, WIDE, ReadyApp, bar, settle, texts, until


def as_process(name: str, process: Process) -> Iterator[SessionEvent]:
    """A recording as the log of a process."""
    for event in log(name):
        yield replace(event, process=process) if isinstance(event, events.SessionOpened) else event


def session_with(folder: Path, *, ended: bool = True) -> tuple[Path, Store]:
    """The folder of a session with the ranks 0 and 1, of which the second was killed, and the first one's store."""
    main = Store.create(folder, log("mlp_train")[0].program, name="job")  # type: ignore[union-attr, arg-type]
    stores = []
    for rank, recording in enumerate(("attention", "resnet")):
        process = Process(name=f"rank{rank}", pid=100 + rank, rank=rank, world_size=2)
        store, process = Store.of_process(main.folder, process)
        for event in as_process(recording, process):
            store.append(event)
        stores.append(store)
    for event in (
        *log("mlp_train"),
        *(events.ProcessStarted(process=Process(name=f"rank{rank}", rank=rank, world_size=2)) for rank in (0, 1)),
        events.ProcessEnded(name="rank1", signal="SIGKILL", last_phase="codegen"),
    ):
        main.append(event)
    main.close()
    stores[1].close()
    if ended:
        stores[0].close()
    return main.folder, stores[0]


def app_over(folder: Path) -> IdbgApp:
    return ReadyApp(lambda: Session.open(folder), Settings())


@pytest.mark.parametrize("size", [WIDE, SMALL])
async def test_a_session_of_one_process_names_no_pane_of_processes(size: tuple[int, int], tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        screen = [str(line) for line in app.screen._compositor.render_strips()]
        assert not any("Processes" in line or "Procs" in line for line in screen)
        for _ in range(15):
            await pilot.press("tab")
            assert app.body.current != "processes"
        await pilot.press("number_sign")
        await settle(pilot)
        assert app.body.current == "processes"
        assert "one process" in app.body.panes["processes"].lines.empty  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", [WIDE, SMALL])
async def test_enter_shows_a_process_and_a_key_goes_back(size: tuple[int, int], tmp_path: Path) -> None:
    app = app_over(session_with(tmp_path)[0])
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        assert "/3 " not in bar(app, "header")
        main = app.state
        await pilot.press("number_sign")
        await settle(pilot)
        rows = texts(app, "processes")
        assert ["main" in row for row in rows].count(True) == 1
        assert any("rank0" in row and "it ne" in row for row in rows)
        assert any("rank1" in row and "killed by SIGKILL" in row for row in rows)
        await pilot.press("G", "enter")
        await until(pilot, lambda: app.ready and app.state is not main)
        await settle(pilot)
        assert "3/3 rank1" in bar(app, "header")
        assert app.body.current == "graph"
        assert any("convolution" in row for row in texts(app, "graph"))  # resnet's, and not the main process's
        await pilot.press("r")
        await settle(pilot)
        assert "read from disk" in bar(app, "footer")
        await pilot.press("number_sign")
        await settle(pilot)
        assert any("rank1" in row and "shown" in row for row in texts(app, "processes"))
        await pilot.press("Q")
        await until(pilot, lambda: app.ready and app.state is main)
        await settle(pilot)
        assert "/3 " not in bar(app, "header")
        assert not any("convolution" in row for row in texts(app, "graph"))
        await pilot.press("Q")
        await settle(pilot)
        assert "this is the main process" in bar(app, "footer")


async def test_a_process_is_followed_while_it_writes(tmp_path: Path) -> None:
    folder, writing = session_with(tmp_path, ended=False)
    app = app_over(folder)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("number_sign")
        await settle(pilot)
        main = app.state
        await pilot.press("G", "k", "enter")
        await until(pilot, lambda: app.ready and app.state is not main)
        await settle(pilot)
        assert "2/3 rank0" in bar(app, "header")
        shown = app.state
        found: Callable[[], bool] = lambda: any("a later line" in str(event) for event in shown.events)  # noqa: E731
        assert not found()
        writing.append(events.Noted(level="info", text="a later line"))
        await until(pilot, found)
    writing.close()
