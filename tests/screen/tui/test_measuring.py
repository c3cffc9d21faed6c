"""Measuring from the screen: the keys, rows as they come, and what changed since the last time."""

import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from idbg.bench.history import BenchHistory, default_path
from idbg.config.settings import Settings
from idbg.schema import events
from idbg.schema.bench import BenchBackend, BenchCase
from idbg.schema.errors import BadInput
from idbg.schema.programs import Failure, Program, Target
from idbg.session.session import Session
from idbg.views import bench as view
from idbg_tui.app import IdbgApp
from idbg_tui.panes.benchmarks.charts import measurement
from idbg_tui.panes.log import event_lines
from idbg_tui.state import measurements
from idbg_tui.state.state import State
from idbg_tui.status_bar import flashes
from idbg_tui.status_bar.footer import footer_progress
from idbg_tui.widgets.picker import Choices, Picker
from idbg_tui.widgets.section_rows import Look, place_of
from tests.harness.benched import keep, opened, rows, scaled, told, with_rows
from tests.harness.live import FakeSession
from tests.harness.screen import WIDE, ReadyApp, bar, settle, texts, until

STRICT = Target("aot", device="cpu", rules='name = "none"', options={"max_autotune": True})


def shown_rows(app: IdbgApp) -> list[str]:
    """The rows of the pane, without what stands before their words."""
    return [row.strip(" ▾▸") for row in texts(app, "benchmarks")]


@pytest.fixture(autouse=True)
def _nothing_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


# ---------------------------------------------------------------- measuring


class BenchSession(FakeSession):
    """A live session that remembers what it was asked to measure."""

    def __init__(self) -> None:
        super().__init__()
        self.program = Program("m.py", cwd="/somewhere")
        self.target = STRICT
        self.asked: list[BenchCase] = []
        self.refused = False

    def bench(self, cases: list[BenchCase]) -> None:
        if self.refused:
            raise BadInput("this session is closed", hint="open a new one")
        self.asked += cases

    def begin(self) -> None:
        self.emit(events.BenchStarted(cases=len(self.asked)))
        self.emit(events.BenchTaskStarted(program="m.py", backend="eager", task="warm"))


@asynccontextmanager
async def measuring() -> AsyncIterator[tuple[IdbgApp, BenchSession, Pilot[None]]]:
    session = BenchSession()
    app = ReadyApp(lambda: session, Settings())  # type: ignore[arg-type, return-value]
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.state.running)
        session.emit(events.RunEnded(run=1, verdict="clean", seconds=0.5))
        await until(pilot, lambda: not app.state.running)
        yield app, session, pilot


async def test_one_key_measures_on_eager_inductor_and_the_targets_backend(tmp_path: Path) -> None:
    async with measuring() as (app, session, pilot):
        await pilot.press("B")
        await pilot.pause()
        assert [case.backend for case in session.asked] == [
            BenchBackend("eager"),
            BenchBackend("inductor"),
            BenchBackend("aot"),
        ]
        for case in session.asked:
            assert (case.device, case.options, case.rules) == ("cpu", STRICT.options, STRICT.rules)
            assert case.program is session.program
        assert app.body.current == "benchmarks"
        assert "3 rows to measure when the compile is done   (c cancels both)" in shown_rows(app)
        await pilot.press("B")
        assert len(session.asked) == 3 and "measuring already" in bar(app, "footer")


async def test_inductor_is_measured_once_where_it_is_the_target() -> None:
    state = State()
    assert state.measurements.backends(Target("inductor")) == ("eager", "inductor")


async def test_rows_appear_as_they_are_measured() -> None:
    async with measuring() as (app, session, pilot):
        await pilot.press("B")
        session.begin()
        await until(pilot, lambda: app.state.measuring)
        assert shown_rows(app)[0] == "measuring eager: warm   3 rows left   (c stops it)"
        session.emit(events.RowMeasured(row=rows()["eager"]))
        session.emit(events.BenchTaskStarted(program="m.py", backend="inductor", task="warm"))
        await until(pilot, lambda: app.state.history.rows_left == 2)
        assert shown_rows(app)[0].startswith("measuring inductor: warm   2 rows left")
        assert any(row.startswith("⚠ eager  ") for row in shown_rows(app))
        assert "measuring inductor: warm   2 rows left" in bar(app, "footer") and "c cancel" in bar(app, "footer")
        lines = app.body.panes["benchmarks"].lines  # type: ignore[attr-defined]
        lines.place_cursor(place_of(lines.items, view.key(rows()["eager"])))
        session.emit(events.RowMeasured(row=rows()["mock"]))
        session.emit(events.RowMeasured(row=rows()["inductor"]))
        session.emit(events.BenchEnded())
        await until(pilot, lambda: not app.state.measuring)
        assert "measuring" not in shown_rows(app)[0]
        assert lines.items[lines.cursor].key == view.key(rows()["eager"])
        assert "C charts them" in bar(app, "footer")


@pytest.mark.parametrize("key", ["c", "ctrl+c"])
async def test_cancel_stops_it_and_finished_rows_stay(key: str) -> None:
    async with measuring() as (app, session, pilot):
        await pilot.press("B")
        session.begin()
        session.emit(events.RowMeasured(row=rows()["mock"]))
        await until(pilot, lambda: app.state.history.rows_left == 2)
        await pilot.press(key)
        assert session.calls[-1] == "cancel" and app.is_running
        session.emit(events.BenchEnded(failure=Failure(kind="cancelled", message="cancelled")))
        await until(pilot, lambda: not app.state.measuring)
        assert shown_rows(app)[0] == "stopped before all was measured: B measures again"
        assert any(row.startswith("⚠ mock  ") for row in shown_rows(app))
        await pilot.press("B")
        assert len(session.asked) == 6


async def test_what_waits_for_the_compile_is_forgotten_with_it() -> None:
    async with measuring() as (app, _, pilot):
        await pilot.press("r", "B")
        await until(pilot, lambda: app.state.running)
        await pilot.press("c")
        await pilot.pause()
        assert app.state.measurements.waiting == 0
        assert shown_rows(app)[0].startswith("not measured: B measures eager, inductor, aot")


async def test_a_measurement_that_is_refused_says_so_and_can_be_asked_again() -> None:
    async with measuring() as (app, session, pilot):
        session.refused = True
        await pilot.press("B")
        await pilot.pause()
        assert "this session is closed" in bar(app, "footer")
        assert app.state.measurements.waiting == 0 and app.body.current == "graph"


def test_the_time_of_each_kernel_is_no_row() -> None:
    state = with_rows(rows()["mock"])
    state.apply([events.BenchStarted(cases=1), events.BenchTaskStarted(program="m", backend="aot", task="kernels")])
    assert told(state)[0].strip() == "measuring aot: each kernel   (c stops it)"


def step(number: int, words: str, at: float) -> events.BenchStepStarted:
    return events.BenchStepStarted(step=number, of=6, words=words, at=at)


def test_the_step_and_its_time_are_told() -> None:
    state, now = State(live=True), time.time()
    task = events.BenchTaskStarted(program="m", backend="aot", task="kernels", at=now - 42)
    state.apply([events.BenchStarted(cases=1, at=now - 42), task, step(1, "importing torch", now - 42)])
    state.apply([step(6, "measuring the machine's peaks", now - 12.2)])
    assert (
        told(state)[0].strip()
        == "measuring aot: each kernel · step 6 of 6: measuring the machine's peaks   (c stops it)"
    )
    whole = "".join(text for text, _ in footer_progress(state, 160))
    assert whole == "measuring aot: each kernel · step 6 of 6: measuring the machine's peaks  12 s, 42 s in all"
    assert "".join(text for text, _ in footer_progress(state, 80)) == "aot: each kernel · step 6 of 6  12 s"
    state.apply([events.BenchTaskStarted(program="m", backend="aot", task="cold")])
    assert "step" not in told(state)[0]  # of the next task none has begun


async def test_steps_come_as_they_begin_and_go_with_the_measurement() -> None:
    async with measuring() as (app, session, pilot):
        await pilot.press("B")
        session.begin()
        session.emit(step(4, "warming up", time.time()))
        await until(pilot, lambda: app.state.history.step is not None)
        assert shown_rows(app)[0].startswith("measuring eager: warm · step 4 of 6: warming up   3 rows left")
        assert "eager: warm · step 4 of 6: warming up   3 rows left  0 s" in bar(app, "footer")
        assert "c cancel" in bar(app, "footer")
        session.emit(events.BenchEnded())
        await until(pilot, lambda: not app.state.measuring)
        assert app.state.history.step is None and "step 4" not in bar(app, "footer")


def test_the_log_lists_the_steps() -> None:
    assert [line.text for line in event_lines.event_lines(step(4, "warming up", 0.0), None)] == [
        "  step 4 of 6: warming up"
    ]


def test_rows_that_could_not_be_kept_are_said() -> None:
    failure = Failure(kind="idbg", message="cannot use the database x: locked", hint="try again")
    ended = events.BenchEnded(failure=failure)
    state = with_rows(rows()["mock"])
    state.apply([ended])
    assert told(state)[0].strip() == "cannot use the database x: locked; try again"
    assert flashes.of_event(ended) == ("cannot use the database x: locked; try again", "error")


async def test_another_key_chooses_on_which_backends_and_modes() -> None:
    async with measuring() as (app, session, pilot):
        known = (events.KnownBackend("wreck", error="ImportError: no driver"),)
        session.emit(events.WorkerStarted(pid=1, torch="2", python="3", devices=(), seconds=1.0, backends=known))
        await settle(pilot)
        await pilot.press("T")
        await pilot.pause()
        await pilot.press(*"max-autotune", "enter")
        await pilot.pause()
        assert isinstance(app.screen, Picker)
        lines = app.screen.query_one(Choices)
        shown = [lines.line(y).text for y in range(lines.row_count)]
        assert any("inductor:max-autotune " in row and "● torch.compile's mode" in row for row in shown)
        await pilot.press(*"aot", "enter")
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        assert "B measures eager, inductor, inductor:max-autotune" in bar(app, "footer")
        await pilot.press("B")
        assert [str(one.backend) for one in session.asked] == ["eager", "inductor", "inductor:max-autotune"]
        await pilot.press("T")
        await pilot.pause()
        await pilot.press(*"wreck", "enter")
        await pilot.pause()
        assert "the backend wreck cannot be used: ImportError: no driver" in bar(app, "footer")
        assert "wreck" not in app.state.measurements.chosen


@pytest.mark.slow
@pytest.mark.usefixtures("warm")
async def test_a_program_is_really_measured(tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    model.write_text("import torch\ndef program():\n    return torch.nn.Linear(8, 5).eval(), (torch.randn(4, 8),)\n")
    with Session(Program(str(model), cwd=str(tmp_path)), Target("eager"), output=tmp_path) as session:
        app = ReadyApp(lambda: session, Settings())
        async with app.run_test(size=WIDE) as pilot:
            app.state.measure_on(("eager",))
            await settle(pilot)
            await pilot.press("B")
            for _ in range(600):
                await pilot.pause(0.1)
                if app.state.history.rows and not app.state.measuring:
                    break
            (row,) = app.state.history.rows
            assert row.status == "ok" and row.latency_ms is not None
            assert any(line.startswith(("✔ eager", "⚠ eager")) for line in shown_rows(app))
    assert BenchHistory(default_path()).of_program(str(model)) == [row]


# ---------------------------------------------------------------- what changed


async def test_each_row_stands_beside_the_last_time(tmp_path: Path) -> None:
    found = rows()
    keep(scaled(found["eager"], 0.5, days=2), scaled(found["eager"], 1.0), scaled(found["inductor"], 1.5))
    async with opened(tmp_path) as (app, pilot):
        await pilot.press("z")
        await settle(pilot)
        shown = shown_rows(app)
        assert any(row.strip().startswith("= no difference beyond the noise: 74.1 µs → 74.1 µs") for row in shown)
        assert any(row.strip().startswith("✔ faster: 89.6 µs → 59.8 µs") for row in shown)
        assert any(row.strip() == "→ not measured before" for row in shown)


def test_slower_is_told_and_what_else_changed() -> None:
    row = rows()["inductor"]
    before = replace(scaled(row, 0.5), program_hash="other")
    keep(before)
    state = with_rows(row)
    state.take_past(measurements.read(row.file, [row]))
    (line,) = [line for line in told(state) if "slower" in line]
    assert line.strip().startswith("⚠ slower: 29.9 µs → 59.8 µs") and line.endswith("also changed: the program")
    made = measurement(view.measurement(row, state.measurements.past.change_of(row)), Look(100))
    assert any("slower: 29.9 µs" in "".join(text for text, _ in one.draw(100)) for one in made)


def test_a_second_measurement_is_held_against_the_first_of_the_same_session() -> None:
    row = rows()["inductor"]
    past = measurements.read(row.file, [scaled(row, 2.0), row])
    change = past.change_of(row)
    assert change is not None and change.direction == "faster"
    assert not default_path().exists()


async def test_the_database_is_not_read_on_the_screens_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads, read = [], measurements.read

    def noting(*args: object) -> measurements.PastMeasurements:
        threads.append(threading.current_thread())
        return read(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(measurements, "read", noting)
    async with opened(tmp_path):
        assert threads and threading.main_thread() not in threads


def test_a_database_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    default_path().parent.mkdir(parents=True)
    default_path().write_bytes(b"no database" * 1000)
    row = rows()["inductor"]
    state = with_rows(row)
    state.take_past(measurements.read(row.file, [row]))
    assert any("no earlier measurement can be read" in line and "moved to" in line for line in told(state))
