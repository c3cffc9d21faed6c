"""A suite keeps each row before the next begins, goes on where it was interrupted, and says what changed since."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from idbg.bench import runner
from idbg.bench.history import BenchHistory
from idbg.bench.job import BenchJob
from idbg.bench.suite import Suite, rows_of
from idbg.schema import events
from idbg.schema.bench import BenchBackend, BenchCase, Latency, Row, file_of
from idbg.schema.errors import BadInput, OutputError
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Program


@pytest.fixture
def history(tmp_path: Path) -> Iterator[BenchHistory]:
    with closing(BenchHistory(tmp_path / "kept.sqlite")) as opened:
        yield opened


@pytest.fixture
def cases(tmp_path: Path) -> list[BenchCase]:
    (tmp_path / "model.py").write_text("")
    program = Program("model.py", cwd=str(tmp_path))
    return [BenchCase(program=program, backend=BenchBackend(name)) for name in ("eager", "inductor", "mock")]


@pytest.fixture(autouse=True)
def medians(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """What each backend takes, in milliseconds; nothing is run."""
    medians = {"eager": 2.0, "inductor": 1.0, "mock": 3.0}

    def measured(case: BenchCase, *_: object) -> Row:
        name = case.backend.name
        latency = Latency.of([medians[name]] * 30, block=1, warmup=1, settled=True)
        return Row(
            program="model.py",
            file=file_of(case.program),
            backend=name,
            latency_ms=latency,
            program_hash=runner.program_hash(case),
        )

    monkeypatch.setattr(runner, "_row", measured)
    return medians


def fails(error: OutputError, row: Row | None) -> None:
    raise AssertionError(error)


def refusing(name: str) -> Callable[..., None]:
    def refuse(*_: object) -> None:
        raise OutputError(f"no {name}", hint="")

    return refuse


def test_each_row_is_kept_before_the_next_and_all_of_them_end_the_suite(
    history: BenchHistory, cases: list[BenchCase]
) -> None:
    suite = Suite.begin(history, cases, "nightly")
    for count, row in enumerate(suite.measure(fails), 1):
        assert history.rows(1)[-1] == row and len(history.rows(1)) == count
        assert not history.suites()[0].done
    assert history.suites()[0].done and [row.speedup for row in suite.rows] == [None, 2.0, pytest.approx(2 / 3)]
    assert Suite.latest(history).rows == suite.rows and list(rows_of(history, "nightly").values()) == suite.rows


def test_an_interrupted_suite_goes_on_with_what_is_left(
    history: BenchHistory, cases: list[BenchCase], tmp_path: Path
) -> None:
    next(Suite.begin(history, cases).measure(fails))
    again = Suite.resume(history)
    assert [str(case.backend) for case in again.cases] == ["inductor", "mock"] and len(again.rows) == 1
    assert [row.speedup for row in again.measure(fails)] == [2.0, pytest.approx(2 / 3)], "over the eager row of before"
    with pytest.raises(BadInput, match="no suite was interrupted"):
        Suite.resume(history)
    next(Suite.begin(history, cases).measure(fails))
    (tmp_path / "model.py").write_text("print()")
    assert (len(Suite.resume(history).cases), Suite.resume(history).rows) == (3, []), "the program is another one now"


def test_what_is_stopped_is_not_done(history: BenchHistory, cases: list[BenchCase]) -> None:
    suite = Suite.begin(history, cases)
    assert len(list(suite.measure(fails, runner.RunControl(stopped=lambda: len(suite.rows) == 2)))) == 2
    assert len(Suite.resume(history).cases) == 1


def test_changes_are_since_the_last_measurement_or_a_suite(
    history: BenchHistory, cases: list[BenchCase], medians: dict[str, float]
) -> None:
    for inductor in (1.0, 4.0, 2.0):
        medians["inductor"] = inductor
        suite = Suite.begin(history, cases, f"{inductor:g}")
        list(suite.measure(fails))
    assert [change.direction for change in suite.changes(None)] == ["same", "faster", "same"]
    assert [change.direction for change in suite.changes(rows_of(history, "1"))] == ["same", "slower", "same"]
    with pytest.raises(BadInput, match="there is no suite 'x'") as refused:
        rows_of(history, "x")
    assert refused.value.hint == "there are: 3 (2), 2 (4), 1 (1)"


def test_what_the_database_refuses_is_told_and_measured_all_the_same(
    history: BenchHistory, cases: list[BenchCase], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, Row | None]] = []
    suite = Suite.begin(history, cases)
    monkeypatch.setattr(history, "add", refusing("room"))
    rows = list(suite.measure(lambda error, row: told.append((error.message, row))))
    assert len(rows) == 3 and told == [("no room", row) for row in rows]
    assert not history.suites()[0].done


@pytest.mark.parametrize("where", ["__init__", "begin", "add", "end"])
def test_a_sessions_job_tells_its_rows_whatever_the_database_says(
    where: str, cases: list[BenchCase], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(BenchHistory, where, refusing(where))
    told: list[SessionEvent] = []
    job = BenchJob(cases, tmp_path / "kept.sqlite", told.append)
    job.start()
    job.join()
    assert len([event for event in told if isinstance(event, events.RowMeasured)]) == 3
    ended = told[-1]
    assert isinstance(ended, events.BenchEnded) and ended.failure is not None
    assert ended.failure.message == f"no {where}"
