"""What the app shows, and waiting for it."""

from collections.abc import Callable

from textual.pilot import Pilot

from idbg_tui.app import IdbgApp
from idbg_tui.panes import later
from idbg_tui.panes.base import PaneId

WIDE, SMALL = (160, 45), (80, 24)


def texts(app: IdbgApp, pane: PaneId) -> list[str]:
    """What the rows of a pane say, those that can be seen."""
    lines = app.body.panes[pane].lines  # type: ignore[attr-defined]
    return [lines.line(y).text.rstrip() for y in range(lines.size.height)]


def bar(app: IdbgApp, name: str) -> str:
    return app.query_one(f"#{name}").render().plain  # type: ignore[union-attr]


async def settle(pilot: Pilot[None]) -> None:
    """Wait until the panes are there, and have followed the selection."""
    app = pilot.app
    while isinstance(app, IdbgApp) and any(isinstance(pane, later.PaneFrame) for pane in app.body.panes.values()):
        await pilot.pause(0.02)
    await pilot.pause(0.12)


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    """Wait for what comes when the machine lets it, a few seconds at most."""
    for _ in range(200):
        if holds():
            break
        await pilot.pause(0.03)
    assert holds()
    await pilot.pause()
