"""What the app shows, and waiting for it."""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from textual.app import App
from textual.pilot import Pilot
from textual.timer import Timer

from idbg_tui import remembered
from idbg_tui.app import IdbgApp
from idbg_tui.palette.uses import CommandUses
from idbg_tui.pane_sizes import RememberedSizes
from idbg_tui.panes.base import PaneId

WIDE, SMALL = (160, 45), (80, 24)
SOON, OFTEN = 0.2, 0.06  # seconds: what is put off for longer, and what repeats more seldom, is not waited for
LONGEST = 30.0  # seconds


def texts(app: IdbgApp, pane: PaneId) -> list[str]:
    """What the rows of a pane say, those that can be seen."""
    shown = app.body.panes[pane]
    lines = shown.lines  # type: ignore[attr-defined]
    return [lines.line(y).text.rstrip() for y in range(lines.size.height)]


def bar(app: IdbgApp, name: str) -> str:
    return app.query_one(f"#{name}").render().plain  # type: ignore[union-attr]


def written() -> None:
    """Wait until what the program remembers is on the disk."""
    for thread in threading.enumerate():
        if thread.name == remembered.THREAD:
            thread.join()


class ReadyApp(IdbgApp):
    """The app, given to a test once its session and its panes are there; it stores nothing for the next."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._uses = CommandUses(Path(os.devnull))
        self.body.remembered = RememberedSizes(Path(os.devnull))
        self.choices = None

    @asynccontextmanager
    async def run_test(self, **how: Any) -> AsyncGenerator[Pilot[None], None]:  # type: ignore[override]
        async with super().run_test(**how) as pilot:
            await opened(pilot)
            yield pilot


async def opened(pilot: Pilot[Any]) -> None:
    """Wait until the session is there, and all panes."""
    while isinstance(pilot.app, IdbgApp) and not pilot.app.ready and pilot.app.is_running:
        await pilot.pause()
        await asyncio.sleep(0.002)


async def settle(pilot: Pilot[None]) -> None:
    """Wait until the panes are there, have followed the selection, and nothing is put off for a moment."""
    await opened(pilot)
    await pilot.pause()
    deadline = monotonic() + LONGEST
    while is_put_off(pilot.app) and monotonic() < deadline:
        await asyncio.sleep(0.005)
    await pilot.pause()


def is_put_off(app: App[None]) -> bool:
    """Whether a timer will soon do something, as when panes follow the cursor, or events wait to be shown together."""
    nodes = [node for screen in app.screen_stack for node in screen.walk_children(with_self=True)]
    timers = [timer for node in (app, *nodes) for timer in node._timers]
    inbox = app._inbox if isinstance(app, IdbgApp) else None
    return (inbox is not None and inbox._waking) or any(map(_is_due, timers))


def _is_due(timer: Timer) -> bool:
    """Clocks that go on for ever are not waited for: only what ends by itself repeats so often."""
    runs = timer._task is not None and not timer._task.done() and timer._active.is_set()
    return runs and timer._interval <= (SOON if timer._repeat == 0 else OFTEN)


async def until(pilot: Pilot[Any], holds: Callable[[], bool]) -> None:
    """Wait for what comes when the machine lets it."""
    await opened(pilot)
    deadline = monotonic() + LONGEST
    while not holds() and monotonic() < deadline:
        await pilot.pause()  # which paints: some things wait for a frame
        await asyncio.sleep(0.02)
    assert holds()
    await pilot.pause()
