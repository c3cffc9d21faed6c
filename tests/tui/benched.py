"""The recorded measurement (tests/recordings/benched.jsonl) as rows, as a state and as an app."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace
from recorded import app_of, state_of
from test_app import WIDE, settle, until
from textual.pilot import Pilot

from idbg import events
from idbg.bench.history import History, default_path
from idbg.bench.records import Latency, Row
from idbg_tui import bench_list
from idbg_tui.app import IdbgApp
from idbg_tui.listing import Listing
from idbg_tui.state import State


def rows() -> dict[str, Row]:
    return {row.backend: row for row in state_of("benched").history.rows}


def scaled(row: Row, times: float, days: float = 1.0) -> Row:
    """The same, measured earlier, when it took so many times as long."""
    assert row.latency_ms is not None
    samples = [times * sample for sample in row.latency_ms.samples]
    return replace(row, at=row.at - 86400 * days, latency_ms=Latency.of(samples, 1, 30, True))


def keep(*measured: Row) -> None:
    history = History(default_path())
    suite = history.begin([])
    for row in measured:
        history.add(suite, row)
    history.close()


def with_rows(*measured: Row, live: bool = True) -> State:
    state = State(live=live)
    state.apply([events.RowMeasured(row=row) for row in measured])
    return state


def told(state: State, width: int = 200) -> list[str]:
    found = bench_list.items(state)
    return [item.text if isinstance(item, bench_list.Told) else drawn(item, found, width) for item in found]


def drawn(item: bench_list.Item, found: list[bench_list.Item], width: int) -> str:
    shown = [one for one in found if isinstance(one, Row)]
    pieces = bench_list.row(item, shown, width) if isinstance(item, Row) else bench_list.heads(shown, width)
    return "".join(text for text, _ in pieces)


@asynccontextmanager
async def opened(folder: Path, size: tuple[int, int] = WIDE) -> AsyncIterator[tuple[IdbgApp, Pilot[None]]]:
    app = app_of("benched", folder)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.state.bench.past.rows is not None)
        await pilot.press("6")
        await settle(pilot)
        yield app, pilot


def listed(app: IdbgApp) -> list[str]:
    assert isinstance(app.screen, Listing)
    lines = app.screen.lines
    return [lines.text(row) for row in range(lines.row_count)]
