"""How is a suite of rows begun, gone on with, kept row by row, and compared with what was measured before?"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

from idbg.bench import runner
from idbg.bench.change import change
from idbg.bench.history import BenchHistory, KeptSuite
from idbg.bench.runner import IsStopped, StepTold, TaskTold, program_hash
from idbg.schema.bench import SECONDS, BenchCase, Row, RowKey, Rows, SpeedChange, file_of, set_to
from idbg.schema.errors import BadInput, OutputError

SHOWN = 10  # of the suites that a hint names
Refused = Callable[[OutputError, Row | None], None]
OlderRows = Mapping[RowKey, Row]


class Suite:
    """`cases` are what is left to measure, `rows` what is measured; without a `history` nothing is kept.

    `begin` makes a new one, `resume` and `latest` find one that the history holds.
    """

    def __init__(
        self, history: BenchHistory | None, number: int, cases: list[BenchCase], rows: Iterable[Row] = ()
    ) -> None:
        self.cases, self.rows = cases, Rows(rows)
        self._history, self._number = history, number

    @classmethod
    def begin(cls, history: BenchHistory, cases: list[BenchCase], name: str = "") -> "Suite":
        """A new suite of these cases, whose plan is kept under `name`. Raises OutputError where the database cannot be
        written.
        """
        return cls(history, history.begin(cases, name), cases)

    @classmethod
    def resume(cls, history: BenchHistory) -> "Suite":
        """The last one that was interrupted, with its good rows of programs that are as they were then.

        Raises BadInput where there is none.
        """
        kept = next((kept for kept in history.suites() if not kept.done), None)
        if kept is None:
            raise BadInput("no suite was interrupted", hint="begin one: idbg bench --all")
        good = [row for row in history.rows(kept.id) if row.status == "ok"]
        measured = {_what(row) for row in good}
        asked = [
            (case, (file_of(case.program), str(case.backend), program_hash(case), set_to(case))) for case in kept.plan
        ]
        left = [case for case, what in asked if what not in measured]
        still = {what for _, what in asked}
        return cls(history, kept.id, left, (row for row in good if _what(row) in still))

    @classmethod
    def latest(cls, history: BenchHistory) -> "Suite":
        """The last one that was measured to its end. Raises BadInput where there is none."""
        kept = next((kept for kept in history.suites() if kept.done), None)
        if kept is None:
            raise BadInput("nothing was measured yet", hint="measure first: idbg bench FILE.py")
        last = {row.key: row for row in history.rows(kept.id)}  # a resumed suite has rows that failed at first
        return cls(history, kept.id, [], last.values())

    def measure(
        self,
        refused: Refused,
        *,
        seconds: float = SECONDS,
        told: TaskTold = lambda *_: None,
        stepped: StepTold = lambda _: None,
        stopped: IsStopped = lambda: False,
        known: Iterable[Row] = (),
    ) -> Iterator[Row]:
        """Each case's row as soon as it is measured, as `runner.rows` has it; it is in the database before the next
        one begins, so that whatever ends this leaves it there.

        What the database does not take is `refused`: a row, or that all of them are measured (then there is no row).
        """
        whole = True
        eager = chain(self.rows.copy(), known)
        for row in runner.rows(self.cases, seconds=seconds, told=told, stepped=stepped, stopped=stopped, known=eager):
            self.rows.append(row)
            whole &= self._is_kept(row, refused)
            yield row
        if self.cases and whole and not stopped():
            self._is_kept(None, refused)

    def _is_kept(self, row: Row | None, refused: Refused) -> bool:
        """Write the row to the database, or, with none, that the suite is done. False where that was refused, which
        `refused` hears.
        """
        if self._history is None:
            return True
        try:
            if row is not None:
                self._history.add(self._number, row)
            else:
                self._history.end(self._number)
        except OutputError as error:
            refused(error, row)
            return False
        return True

    def changes(self, older: OlderRows | None) -> list[SpeedChange]:
        """What became faster or slower since these rows, or, with None, since each was measured last.

        Raises OutputError where the database cannot be read.
        """
        pairs = ((row, self._before(row) if older is None else older.get(row.key)) for row in self.rows)
        told = (change(row, before) for row, before in pairs if before is not None)
        return [each for each in told if each is not None]

    def _before(self, row: Row) -> Row | None:
        return self._history.before(row, self._number) if self._history is not None else None


def rows_of(history: BenchHistory, named: str) -> OlderRows:
    """The rows of the suite with this name or number, by what they measure. Raises BadInput where there is none."""
    suites = history.suites()
    kept = next((each for each in suites if named in (each.name, str(each.id))), None)
    if kept is None:
        raise BadInput(f"there is no suite {named!r}", hint=f"there are: {_names(suites)}")
    return {row.key: row for row in history.rows(kept.id)}


def _what(row: Row) -> tuple[str, str, str, str]:
    return row.file, row.backend, row.program_hash, set_to(row)


def _names(suites: list[KeptSuite]) -> str:
    return ", ".join(f"{suite.id}{f' ({suite.name})' if suite.name else ''}" for suite in suites[:SHOWN]) or "none"
