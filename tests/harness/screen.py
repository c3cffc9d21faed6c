"""What the app shows, and waiting for it."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot

from idbg_tui.app import IdbgApp
from idbg_tui.panes.base import PaneId

WIDE, SMALL = (160, 45), (80, 24)


def texts(app: IdbgApp, pane: PaneId) -> list[str]:
    """What the rows of a pane say, those that can be seen."""
    lines = app.body.panes[pane].lines  # type: ignore[attr-defined]
    return [lines.line(y).text.rstrip() for y in range(lines.size.height)]


def bar(app: IdbgApp, name: str) -> str:
    return app.query_one(f"#{name}").render().plain  # type: ignore[union-attr]


class ReadyApp(IdbgApp):
    """The app, given to a test once its session and its panes are there."""

    @asynccontextmanager
    async def run_test(self, **how: Any) -> AsyncGenerator[Pilot[None], None]:  # type: ignore[override]
        async with super().run_test(**how) as pilot:
            await opened(pilot)
            yield pilot


async def opened(pilot: Pilot[None]) -> None:
    """Wait until the session is there, and all panes."""
    while isinstance(pilot.app, IdbgApp) and not pilot.app.ready and pilot.app.is_running:
        await pilot.pause(0.02)


async def settle(pilot: Pilot[None]) -> None:
    """Wait until the panes are there, and have followed the selection."""
    await opened(pilot)
    await pilot.pause(0.12)


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    """Wait for what comes when the machine lets it, a few seconds at most."""
    await opened(pilot)
    for _ in range(200):
        if holds():
            break
        await pilot.pause(0.03)
    assert holds()
    await pilot.pause()
