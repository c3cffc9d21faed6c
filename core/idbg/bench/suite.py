"""Begin, resume, store and compare suites of benchmark rows.

A row changed by the Mann-Whitney U test on its samples, not by two means; a change that is smaller than the difference
of two identical processes is not reported.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

from idbg.analysis.significance import mann_whitney
from idbg.bench import runner
from idbg.bench.history import BenchHistory, StoredSuite
from idbg.bench.runner import DEFAULT_CONTROL, RunControl, program_hash
from idbg.schema.bench import BenchCase, Row, RowKey, Rows, SpeedChange, file_of, set_to
from idbg.schema.errors import BadInput, OutputError

SHOWN = 10  # of the suites that a hint names
Refused = Callable[[OutputError, Row | None], None]
OlderRows = Mapping[RowKey, Row]


class Suite:
    """`cases` are still to be measured, `rows` are measured. Without a `history` nothing is stored.

    `begin` creates a suite; `resume` and `latest` find one in the history.
    """

    def __init__(
        self, history: BenchHistory | None, number: int, cases: list[BenchCase], rows: Iterable[Row] = ()
    ) -> None:
        self.cases, self.rows = cases, Rows(rows)
        self._history, self._number = history, number

    @classmethod
    def begin(cls, history: BenchHistory, cases: list[BenchCase], name: str = "") -> "Suite":
        """A new suite of these cases, stored under `name`. Raises OutputError if the database cannot be written."""
        return cls(history, history.begin(cases, name), cases)

    @classmethod
    def resume(cls, history: BenchHistory) -> "Suite":
        """The last interrupted suite, with its good rows of programs that have not changed since.

        Raises BadInput if there is none.
        """
        kept = next((kept for kept in history.suites() if not kept.done), None)
        if kept is None:
            raise BadInput("no suite was interrupted", hint="begin one: idbg bench --all")
        good = [row for row in history.rows(kept.id) if row.status == "ok"]
        measured = {_what(row) for row in good}
        planned = [
            (case, (file_of(case.program), str(case.backend), program_hash(case), set_to(case))) for case in kept.plan
        ]
        left = [case for case, what in planned if what not in measured]
        still = {what for _, what in planned}
        return cls(history, kept.id, left, (row for row in good if _what(row) in still))

    @classmethod
    def latest(cls, history: BenchHistory) -> "Suite":
        """The last complete suite. Raises BadInput if there is none."""
        kept = next((kept for kept in history.suites() if kept.done), None)
        if kept is None:
            raise BadInput("nothing was measured yet", hint="measure first: idbg bench FILE.py")
        last = {row.key: row for row in history.rows(kept.id)}  # a resumed suite has rows that failed at first
        return cls(history, kept.id, [], last.values())

    def measure(
        self, refused: Refused, control: RunControl = DEFAULT_CONTROL, *, known: Iterable[Row] = ()
    ) -> Iterator[Row]:
        """Each case's row as soon as it is measured, as `runner.rows` returns it. It is in the database before the next
        one begins, so that an interrupt loses nothing.

        `refused` is called with what the database does not take: a row, or (with None) the end of the suite.
        """
        whole = True
        eager = chain(self.rows.copy(), known)
        for row in runner.rows(self.cases, control, known=eager):
            self.rows.append(row)
            whole &= self._is_kept(row, refused)
            yield row
        if self.cases and whole and not control.stopped():
            self._is_kept(None, refused)

    def _is_kept(self, row: Row | None, refused: Refused) -> bool:
        """Store the row, or with None the end of the suite. Returns False and calls `refused` if the database does not
        take it.
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
        """What became faster or slower than these rows, or with None, than each row's last measurement.

        Raises OutputError if the database cannot be read.
        """
        pairs = ((row, self._before(row) if older is None else older.get(row.key)) for row in self.rows)
        changes = (change(row, before) for row, before in pairs if before is not None)
        return [each for each in changes if each is not None]

    def _before(self, row: Row) -> Row | None:
        return self._history.before(row, self._number) if self._history is not None else None


def rows_of(history: BenchHistory, named: str) -> OlderRows:
    """The rows of the suite with this name or number, by what they measure. Raises BadInput if there is none."""
    suites = history.suites()
    kept = next((each for each in suites if named in (each.name, str(each.id))), None)
    if kept is None:
        raise BadInput(f"there is no suite {named!r}", hint=f"there are: {_names(suites)}")
    return {row.key: row for row in history.rows(kept.id)}


def _what(row: Row) -> tuple[str, str, str, str]:
    return row.file, row.backend, row.program_hash, set_to(row)


def _names(suites: list[StoredSuite]) -> str:
    return ", ".join(f"{suite.id}{f' ({suite.name})' if suite.name else ''}" for suite in suites[:SHOWN]) or "none"


def change(now: Row, before: Row) -> SpeedChange | None:
    """How the median latency changed, and how certain that is; None if one of the rows has no latency."""
    if now.latency_ms is None or before.latency_ms is None:
        return None
    p = mann_whitney(now.latency_ms.samples, before.latency_ms.samples)
    return SpeedChange(now, before, now.latency_ms.median / before.latency_ms.median, p, tuple(_else(now, before)))


def _else(now: Row, before: Row) -> Iterator[str]:
    if now.program_hash != before.program_hash:
        yield "the program"
    if now.machine and before.machine:
        for name in ("host", "device", "threads", "torch", "python", "commit"):
            if (new := getattr(now.machine, name)) != (old := getattr(before.machine, name)):
                yield f"{name} {old or 'unknown'} → {new or 'unknown'}"
