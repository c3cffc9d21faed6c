"""Store benchmark results in a SQLite database that several processes may write to at once."""

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from idbg.config import places
from idbg.schema.bench import BenchCase, Row
from idbg.schema.errors import OutputError

WAIT_SECONDS = 10.0  # for another process to let go of the database
VERSION = 1
_SCHEMA = """
create table if not exists suites (
    id integer primary key, at real not null, name text not null, plan text not null, done integer not null default 0
);
create table if not exists rows (
    id integer primary key, suite integer not null references suites, at real not null,
    file text not null, program_hash text not null, backend text not null, device text not null,
    dtype text not null, batch integer, row text not null
);
create index if not exists rows_of on rows (file, backend, device, dtype, batch, at);
"""
_decode_row = msgspec.json.Decoder(Row).decode
_decode_plan = msgspec.json.Decoder(list[BenchCase]).decode


def default_path(folder: Path | None = None) -> Path:
    """The default database, in the folder or the user's data folder."""
    return (folder or places.data()) / "bench.sqlite"


class StoredSuite(msgspec.Struct, frozen=True):
    """One call of `idbg bench`; `plan` is all that it was to measure. `done` is false if it was interrupted."""

    id: int
    at: float
    name: str
    plan: list[BenchCase]
    done: bool


class BenchHistory:
    """The database at `path`. An unreadable file is moved aside, as `notes` say; nothing in it is lost.

    Raises OutputError if the folder cannot be written, or another process holds the database for too long.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []
        with self._output_errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._connection = _opened(path)
            except _Broken as error:
                aside = path.with_name(f"{path.name}.broken-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
                error.move(path, aside)
                self.notes.append(f"{path} cannot be read ({error}): it was moved to {aside}, and a new one begun")
                self._connection = _opened(path)

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def begin(self, plan: list[BenchCase], name: str = "") -> int:
        """Store the plan of a new suite, and return the suite's id. Raises OutputError."""
        with self._output_errors(), self._connection as connection:
            cursor = connection.execute(
                "insert into suites (at, name, plan) values (?, ?, ?)",
                (time.time(), name, msgspec.json.encode(plan).decode()),
            )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def add(self, suite: int, row: Row) -> None:
        """Store one row of this suite; it is on disk when this returns. Raises OutputError."""
        values = (suite, row.at, row.file, row.program_hash, *row.key[1:5], msgspec.json.encode(row).decode())
        with self._output_errors(), self._connection as connection:
            connection.execute(
                "insert into rows (suite, at, file, program_hash, backend, device, dtype, batch, row)"
                " values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )

    def end(self, suite: int) -> None:
        """Mark the suite as complete. Raises OutputError."""
        with self._output_errors(), self._connection as connection:
            connection.execute("update suites set done = 1 where id = ?", (suite,))

    def suites(self) -> list[StoredSuite]:
        """All suites, the latest first. Raises OutputError."""
        with self._output_errors():
            records = self._connection.execute(
                "select id, at, name, plan, done from suites order by id desc"
            ).fetchall()
        return [StoredSuite(id, at, name, _decode_plan(plan), bool(done)) for id, at, name, plan, done in records]

    def rows(self, suite: int) -> list[Row]:
        """The suite's rows in the order of their measurement; for a resumed suite also those that failed at first.
        Raises OutputError.
        """
        return self._rows("suite = ? order by id", (suite,))

    def before(self, row: Row, suite: int) -> Row | None:
        """The last row of an earlier suite that measured the same as `row`, and has a latency; None if there is none.
        Raises OutputError.
        """
        wanted = "file = ? and backend = ? and device = ? and dtype = ? and batch is ? and suite < ? order by id desc"
        rows = self._rows(wanted, (*row.key[:5], suite))
        return next((kept for kept in rows if kept.latency_ms and kept.key == row.key), None)

    def of_program(self, file: str) -> list[Row]:
        """All rows of the program with this name (`schema.bench.file_of`), the oldest first. Raises OutputError."""
        return self._rows("file = ? order by id", (file,))

    def _rows(self, wanted: str, values: tuple[object, ...]) -> list[Row]:
        with self._output_errors():
            records = self._connection.execute(f"select row from rows where {wanted}", values).fetchall()
        return [_decode_row(row) for (row,) in records]

    @contextlib.contextmanager
    def _output_errors(self) -> Iterator[None]:
        """While this lasts, SQLite's and the disk's errors are raised as OutputError."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            hint = "another process holds it: try again, or give a database of your own"
            raise OutputError(
                f"cannot use the database {self.path}: {error}",
                hint=f"{hint if 'locked' in str(error) else 'give another'} (--database FILE)",
            ) from error


class _Broken(Exception):
    """The database cannot be read. Its connection stays open: closing it would drop the rows in the log."""

    def __init__(self, error: sqlite3.Error, connection: sqlite3.Connection) -> None:
        super().__init__(str(error))
        self._connection = connection

    def move(self, path: Path, aside: Path) -> None:
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
        self._connection.close()


def _opened(path: Path) -> sqlite3.Connection:
    """A connection to the database, which is created if there is none. Raises _Broken if it cannot be read, OutputError
    if it is another program's or version's.
    """
    connection = sqlite3.connect(path, timeout=WAIT_SECONDS)
    try:
        # before anything is written: what is moved aside is as it was
        if (problem := connection.execute("pragma quick_check").fetchone()[0]) != "ok":
            raise sqlite3.DatabaseError(problem)
        # in one statement: another process may be making it
        version, tables = connection.execute(
            "select (select user_version from pragma_user_version), (select count(*) from sqlite_master)"
        ).fetchone()
        if tables and version != VERSION:
            connection.close()
            raise OutputError(
                f"{path} is another program's database, or another version's", hint="give another: --database FILE"
            )
        connection.execute("pragma journal_mode = wal")
        connection.executescript(f"pragma user_version = {VERSION}; {_SCHEMA}")
    except sqlite3.OperationalError:
        connection.close()
        raise
    except sqlite3.DatabaseError as error:
        raise _Broken(error, connection) from error
    return connection
