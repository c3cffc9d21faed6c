"""`E` opens a kernel's source in the editor; what it leaves is tried, and each version can be shown again."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from idbg.config.settings import Settings
from idbg.schema.code import Kernel
from idbg.schema.events import CodeCaptured, KernelEdited, RunEvent
from idbg.schema.programs import Failure
from idbg.session.session import Session
from idbg_tui.app import IdbgApp
from idbg_tui.messages import KernelChosen, RowRequest
from idbg_tui.panes.source.pane import Caption
from idbg_tui.state import queries
from idbg_tui.terminal import suspend
from idbg_tui.widgets.code import CodeView
from tests.harness import recorded
from tests.harness.fake_sessions import FAKE
from tests.harness.screen import ReadyApp, settle, until
from tests.harness.sessions import session_of

Left = Callable[[str], str]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> tuple[list[tuple[str, str, int]], list[Left]]:
    """What the editor was given, and what it makes of a text, which the test sets."""
    given: list[tuple[str, str, int]] = []
    makes: list[Left] = [lambda text: text]

    def edit_text(app: object, name: str, text: str, line: int, chosen: str) -> str:
        given.append((name, text, line))
        return makes[-1](text)

    monkeypatch.setattr(suspend, "edit_text", edit_text)
    return given, makes


def shown(app: IdbgApp) -> tuple[str, str]:
    """The caption and the text of the pane Source."""
    return str(app.query_one(Caption).render()), app.query_one(CodeView)._text


async def to_kernel(app: IdbgApp) -> Kernel:
    """Select the first kernel with a source."""
    assert app.state.shown is not None
    kernel = next(kernel for kernel in app.state.shown.kernels if kernel.source)
    app.post_message(KernelChosen(*kernel.key))
    return kernel


async def to_version(app: IdbgApp, pilot: Pilot[None], kernel: Kernel, version: int) -> None:
    """Press enter on its row in the pane Benchmarks."""
    app.post_message(RowRequest("benchmarks", ("version", 1, *kernel.key, version)))
    await until(pilot, lambda: app.body.current == "benchmarks")
    await pilot.press("enter")


async def test_what_the_editor_leaves_is_tried_and_its_versions_are_shown(tmp_path: Path, opened) -> None:
    given, makes = opened
    app = ReadyApp(lambda: Session.resume(session_of("resnet", tmp_path), command=FAKE), Settings())
    async with app.run_test(size=(200, 60)) as pilot:
        await settle(pilot)
        kernel = await to_kernel(app)
        await pilot.press("E")
        await until(pilot, lambda: "nothing was changed" in str(app.bars.flashed))
        name, text, line = given[0]
        assert (name, text) == (f"{kernel.name}.cpp", kernel.source) and line > 1

        makes.append(lambda text: text + "// first\n")
        await pilot.press("E")
        await until(pilot, lambda: app.state.shown is not None and len(app.state.shown.edits) == 1)
        await until(pilot, lambda: "version 1 · numbers not compared" in shown(app)[0])
        assert shown(app)[1] == kernel.source + "// first\n"

        makes.append(lambda text: text.replace("kernel(", "kernels("))
        await pilot.press("E")
        await until(pilot, lambda: "cannot call this" in str(app.bars.flashed))
        makes.append(lambda text: text.replace("kernels(", "kernel(") + "// second\n")
        await pilot.press("E")  # goes on with what was refused
        assert given[-2][1] == kernel.source + "// first\n" and "kernels(" in given[-1][1]
        await until(pilot, lambda: "version 2 ·" in shown(app)[0])
        assert shown(app)[1] == kernel.source + "// first\n// second\n"

        await to_version(app, pilot, kernel, 0)
        await until(pilot, lambda: shown(app)[1] == kernel.source)
        assert "2 edited versions in 6" in shown(app)[0] and app.body.current == "source"
        await to_version(app, pilot, kernel, 1)
        await until(pilot, lambda: "version 1 ·" in shown(app)[0])


async def test_a_build_error_stands_at_its_line(tmp_path: Path, opened) -> None:
    app = ReadyApp(lambda: Session.resume(session_of("resnet", tmp_path), command=FAKE), Settings())
    async with app.run_test(size=(200, 60)) as pilot:
        await settle(pilot)
        kernel = await to_kernel(app)
        opened[1].append(lambda text: text + "// first\n")
        await pilot.press("E")
        await until(pilot, lambda: app.state.shown is not None and len(app.state.shown.edits) == 1)
        run = app.state.shown
        assert run is not None
        failure = Failure("input", "it does not build: line 12: expected ‘;’", "fix it")
        edit = replace(run.edits[0], version=2, line=12, failure=failure)
        app.state.apply([KernelEdited(run=run.number, edit=edit)])
        app.show()
        await until(pilot, lambda: "line 12: expected" in shown(app)[0])
        assert app.query_one(CodeView).line == 12
        opened[1].append(lambda text: text)
        await pilot.press("E")
        await until(pilot, lambda: opened[0][-1][2] == 12)
        assert queries.shown_edit(app.state, kernel) == edit


async def test_a_version_of_an_earlier_run_is_shown_where_this_run_has_the_same_kernel(tmp_path: Path, opened) -> None:
    app = ReadyApp(lambda: Session.resume(session_of("resnet", tmp_path), command=FAKE), Settings())
    async with app.run_test(size=(200, 60)) as pilot:
        await settle(pilot)
        kernel = await to_kernel(app)
        opened[1].append(lambda text: text + "// first\n")
        await pilot.press("E")
        await until(pilot, lambda: "version 1 ·" in shown(app)[0])
        again = [replace(event, run=2) for event in recorded.log("resnet") if isinstance(event, RunEvent)]
        app.state.apply(again)
        app.show()
        await until(pilot, lambda: app.state.shown is not None and app.state.shown.number == 2)
        await until(pilot, lambda: "version" not in shown(app)[0])
        await to_version(app, pilot, kernel, 1)
        await until(pilot, lambda: shown(app)[1] == kernel.source + "// first\n")
        code = next(event for event in again if isinstance(event, CodeCaptured))
        others = tuple(replace(each, source=each.source.replace("kernel", "other")) for each in code.code.kernels)
        app.state.apply([replace(code, code=replace(code.code, kernels=others))])
        app.show()
        await to_version(app, pilot, kernel, 1)
        await until(pilot, lambda: "has another" in str(app.bars.flashed))


async def test_of_a_saved_session_the_command_is_named_that_tries_one(tmp_path: Path, opened) -> None:
    app = recorded.app_of("resnet", tmp_path)
    async with app.run_test(size=(200, 60)) as pilot:
        await settle(pilot)
        kernel = await to_kernel(app)
        await pilot.pause()
        await pilot.press("E")
        await until(pilot, lambda: f"idbg kernel resnet {kernel.name} --edit FILE" in str(app.bars.flashed))
        assert not opened[0]
