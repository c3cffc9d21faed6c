"""Rows are kept by whoever measures, at once with others, and a database that is broken loses nothing."""

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from idbg.bench import history as history_module
from idbg.bench.history import BenchHistory
from idbg.schema.bench import BenchBackend, BenchCase, Latency, Row
from idbg.schema.errors import OutputError
from idbg.schema.programs import Program

CASE = BenchCase(program=Program("a.py"), backend=BenchBackend("eager"))


def row(file: str = "/a.py", backend: str = "eager", median: float = 1.0, **others: object) -> Row:
    latency = Latency.of([median] * 5, block=1, warmup=10, settled=True) if median else None
    return Row(program="a.py", file=file, backend=backend, latency_ms=latency, **others)  # type: ignore[arg-type]


@pytest.fixture
def history(tmp_path: Path) -> BenchHistory:
    return BenchHistory(tmp_path / "of" / "mine" / "bench.sqlite")


def test_what_is_kept_comes_back_as_it_was(history: BenchHistory) -> None:
    suite = history.begin([CASE], "nightly")
    kept = row(cold_compile_s=3.5, caveats=("noisy",), diff="passed")
    history.add(suite, kept)
    again = BenchHistory(history.path)
    assert again.rows(suite) == [kept]
    (found,) = again.suites()
    assert (found.name, found.plan, found.done) == ("nightly", [CASE], False)
    again.end(suite)
    assert history.suites()[0].done


def test_the_one_before_is_of_the_same_program_backend_and_size(history: BenchHistory) -> None:
    first, second = history.begin([CASE]), history.begin([CASE])
    history.add(first, row(median=2.0))
    history.add(first, row(median=0.0, status="failed"))
    history.add(first, row(backend="inductor", median=3.0))
    history.add(first, row(batch=8, median=4.0))
    history.add(first, row(file="/b/a.py", median=5.0))
    history.add(second, row(median=9.0))
    before = history.before(row(), second)
    assert before is not None and before.latency_ms is not None and before.latency_ms.median == 2.0
    assert history.before(row(batch=7), second) is None
    assert [each.latency_ms and each.latency_ms.median for each in history.of_program("/b/a.py")] == [5.0]


def test_the_one_before_was_set_as_this_one_is(history: BenchHistory) -> None:
    ways: list[dict[str, object]] = [
        {},
        {"stance": "force_eager"},
        {"settings": {"dynamo.recompile_limit": 2, "dynamo.specialize_int": True}},
        {"dynamic_sources": ("L['x']",)},
        {"options": {"max_autotune": True}},
        {"dynamic": True},
    ]
    first, second = history.begin([CASE]), history.begin([CASE])
    for number, way in enumerate(ways, 1):
        assert history.before(row(**way), second) is None  # type: ignore[arg-type]
        history.add(first, row(median=float(number), **way))  # type: ignore[arg-type]
    found = [history.before(row(**way), second) for way in ways]  # type: ignore[arg-type]
    assert [each and each.latency_ms and each.latency_ms.median for each in found] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    turned = history.before(row(settings={"dynamo.specialize_int": True, "dynamo.recompile_limit": 2}), second)
    assert turned == found[2]


def test_a_row_that_was_kept_before_rows_said_what_torch_was_set_to_is_read(history: BenchHistory) -> None:
    first, second = history.begin([CASE]), history.begin([CASE])
    history.add(first, row(median=2.0))
    connection = sqlite3.connect(history.path)
    for name in ("options", "dynamic", "stance", "settings", "dynamic_sources"):
        connection.execute(f"update rows set row = json_remove(row, '$.{name}')")
    connection.commit()
    connection.close()
    before = history.before(row(), second)
    assert before is not None and before.latency_ms is not None and before.latency_ms.median == 2.0


def test_several_may_write_at_once(history: BenchHistory) -> None:
    def write() -> None:
        mine = BenchHistory(history.path)
        suite = mine.begin([CASE])
        for _ in range(20):
            mine.add(suite, row())
        mine.close()

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(history.suites()) == 4
    assert sum(len(history.rows(suite.id)) for suite in history.suites()) == 80


@pytest.mark.parametrize("damage", ["not a database", "torn"])
def test_a_broken_database_is_moved_aside_and_said_so(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "bench.sqlite"
    if damage == "torn":
        whole = BenchHistory(path)
        suite = whole.begin([CASE])
        for _ in range(200):
            whole.add(suite, row())
        whole.close()
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.seek(size // 2)
            file.write(b"\xff" * (size // 2))
    else:
        path.write_bytes(b"this was never a database" * 100)
    before = path.read_bytes()
    anew = BenchHistory(path)
    (note,) = anew.notes
    (aside,) = (found for found in tmp_path.glob("bench.sqlite.broken-*") if not found.name.endswith(("-wal", "-shm")))
    assert str(aside) in note and aside.read_bytes() == before
    assert anew.suites() == [] and anew.begin([CASE]) == 1


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "music.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("create table rows (song text)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(OutputError, match="another program's database"):
        BenchHistory(path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def test_rows_in_the_log_of_a_broken_database_are_moved_with_it(tmp_path: Path) -> None:
    path = tmp_path / "bench.sqlite"
    BenchHistory(path).close()
    killed = (
        "import os, sys; from pathlib import Path; from idbg.bench.history import BenchHistory\n"
        f"history = BenchHistory(Path({str(path)!r})); history.begin([]); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", killed], check=False)
    log = path.with_name(path.name + "-wal").read_bytes()
    assert log
    path.write_bytes(b"\xff" * path.stat().st_size)
    assert BenchHistory(path).notes
    (kept,) = tmp_path.glob("bench.sqlite.broken-*-wal")
    assert kept.read_bytes() == log


def test_a_database_that_another_holds_is_said_so_in_a_sentence(
    history: BenchHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_module, "WAIT_SECONDS", 0.1)
    impatient = BenchHistory(history.path)
    other = sqlite3.connect(history.path)
    other.execute("begin exclusive")
    with pytest.raises(OutputError, match=r"cannot use the database .*bench.sqlite: database is locked") as caught:
        impatient.begin([CASE])
    assert "--database FILE" in caught.value.hint
    other.close()
    assert not list(history.path.parent.glob("*.broken-*"))


def test_a_folder_that_cannot_be_made_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot use the database"):
        BenchHistory(tmp_path / "file" / "bench.sqlite")
