"""What will be measured, and what was measured of the program before."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from idbg.bench.suite import change
from idbg.schema.bench import EAGER, Row, SpeedChange
from idbg.schema.errors import IdbgError
from idbg.schema.programs import Failure, Target
from idbg.views.bench import key as key
from idbg.views.bench import latest

INDUCTOR = "inductor"
Key = tuple[object, ...]


@dataclass(frozen=True)
class PastMeasurements:
    """What the database has of a program, the oldest first, and how the session's rows compare with it.

    `rows` is None before it was read, and where it cannot be read; `problem` is why.
    """

    rows: Sequence[Row] | None = None
    changes: dict[Key, SpeedChange | None] = field(default_factory=dict)  # of every row that was compared
    problem: str = ""

    def change_of(self, row: Row) -> SpeedChange | None:
        """How a row of the session compares with the last good one before it; None where there is none."""
        return self.changes.get(key(row))


@dataclass
class ChartChoice:
    """Which chart is looked at, also when the charts were closed in between."""

    place: int = 0  # in panes.benchmarks.charts.CHARTS
    numbers: bool = False  # its numbers, and not its picture
    last_measured: object = None  # what was measured last when the charts were opened: another is shown first


@dataclass
class Measurements:
    """What the state knows of measuring beside the session's own rows."""

    waiting: int = 0  # requested rows that wait for a compile to end
    failure: Failure | None = None  # why the last measurement ended before its time, or was not kept
    chosen: tuple[str, ...] = ()  # NAME or NAME:MODE; () leaves the choice to the target
    past: PastMeasurements = PastMeasurements()
    chart: ChartChoice = field(default_factory=ChartChoice)

    def backends(self, target: Target) -> tuple[str, ...]:
        """What a measurement is of."""
        return self.chosen or tuple(dict.fromkeys((EAGER, INDUCTOR, target.backend)))


def read(file: str, rows: Sequence[Row]) -> PastMeasurements:
    """What was measured of a program, and how `rows` compare with what came before them. Slow: not for the UI's thread.

    Where there is no database none is made.
    """
    from idbg.bench.history import (  # on demand: the paint would wait for sqlite3
        BenchHistory,
        default_path,
    )

    known: Sequence[Row] = ()
    notes: list[str] = []
    if default_path().exists():
        try:
            history = BenchHistory(default_path())
            try:
                known, notes = history.of_program(file), history.notes
            finally:
                history.close()
        except IdbgError as error:
            return PastMeasurements(problem=error.message)
    return PastMeasurements(known, changes(rows, [*known, *rows]), "; ".join(notes))


def changes(rows: Sequence[Row], known: Sequence[Row]) -> dict[Key, SpeedChange | None]:
    """Each row against the last good one of the same that is older, if there is one."""
    by_key = {}
    for row in latest(rows):
        older = [one for one in known if one.key == row.key and one.at < row.at and one.latency_ms]
        by_key[key(row)] = change(row, max(older, key=lambda one: one.at)) if older else None
    return by_key
