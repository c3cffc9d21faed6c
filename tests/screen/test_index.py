"""The list of sessions is that of the folder, however the sessions came there, and whatever is in the cache."""

import os
import shutil
from pathlib import Path

import pytest

from idbg.config import places
from idbg.schema.events import SessionOpened, WorkerDied
from idbg.schema.programs import Program
from idbg.schema.runs import fold
from idbg.schema.summaries import SessionSummary
from idbg.session import reading, summaries
from idbg.session.index import sessions
from idbg.session.store import Store
from tests.harness import recorded
from tests.harness.sessions import killed_session_of, session_of, small_log


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(places, "cache", lambda: folder)
    return folder


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "out"


def names(output: Path) -> list[str]:
    return [each.name for each in sessions(output)]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which folders' logs were read."""
    seen: list[str] = []
    read = reading.read

    def counted(folder: Path) -> reading.Reading:
        seen.append(folder.name)
        return read(folder)

    monkeypatch.setattr(reading, "read", counted)
    return seen


@pytest.mark.parametrize("name", ["resnet", "breaking", "planted", "benched"])
@pytest.mark.parametrize("kept", [session_of, killed_session_of])
def test_a_summary_says_what_the_screen_says_of_the_last_run(name: str, kept: object, output: Path) -> None:
    folder = kept(name, output)  # type: ignore[operator]
    history = fold(recorded.log(name))
    run = history.last
    assert run is not None
    (told,) = sessions(output)
    assert (told.folder, told.name) == (str(folder), folder.name)
    assert (told.verdict, told.looks) == (history.verdict, history.looks)
    assert (told.graphs, told.kernels) == (len(run.graphs), len(run.kernels))
    assert (told.violations, told.breaks) == (run.violation_count, run.times_broken)
    assert (told.program, told.backend) == (run.program.label, run.target.backend)
    assert told.ended and not told.live and not told.damaged
    on_disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert told.bytes <= on_disk < told.bytes + 3000  # its own summary came after


def test_the_newest_is_first(output: Path) -> None:
    for name, at in (("b", 20.0), ("a", 30.0), ("c", 10.0)):
        small_log(output / name, at=at)
    assert names(output) == ["a", "b", "c"]


def test_a_folder_that_is_not_there_has_none(output: Path) -> None:
    assert sessions(output) == []


def test_what_is_no_session_is_not_listed(output: Path) -> None:
    small_log(output / "one", at=1.0)
    (output / "folder").mkdir()
    (output / "file").write_text("")
    for name, text in (
        ("foreign", '{"type":"noted","level":"info","text":""}\n'),
        ("empty", ""),
        ("text", "rubbish\n"),
    ):
        (output / name).mkdir()
        (output / name / "events.jsonl").write_text(text)
    (output / "link").symlink_to(output / "one")
    (output / "linked-log").mkdir()
    (output / "linked-log" / "events.jsonl").symlink_to(output / "one" / "events.jsonl")
    (output / "pipe").mkdir()
    os.mkfifo(output / "pipe" / "events.jsonl")
    assert names(output) == names(output) == ["one"]


def test_what_was_known_is_not_read_again(output: Path, reads: list[str]) -> None:
    killed_session_of("benched", output)
    before = sessions(output)
    assert sessions(output) == before
    assert reads == ["killed"]


def test_a_session_that_was_closed_is_listed_without_its_log(output: Path, reads: list[str]) -> None:
    session_of("resnet", output)
    assert sessions(output)[0].verdict == "compiled" or sessions(output)[0].graphs
    assert not reads


def test_the_list_follows_what_is_done_to_folders_by_hand(output: Path) -> None:
    killed_session_of("benched", output, "one")
    killed_session_of("planted", output, "two")
    assert sorted(names(output)) == ["one", "two"]
    shutil.rmtree(output / "two")
    assert names(output) == ["one"]
    (output / "one").rename(output / "uno")
    assert [(each.name, each.folder) for each in sessions(output)] == [("uno", str(output / "uno"))]
    shutil.copytree(output / "uno", output / "copy")
    assert sorted(names(output)) == ["copy", "uno"]
    killed_session_of("planted", output, "three")
    shutil.rmtree(output / "uno")
    (output / "three").rename(output / "uno")  # another session by that name
    planted = next(each for each in sessions(output) if each.name == "uno")
    assert planted.verdict == fold(recorded.log("planted")).last.verdict  # type: ignore[union-attr]


def test_a_log_that_has_grown_is_read_again(output: Path) -> None:
    folder = killed_session_of("planted", output)
    whole = (folder / "events.jsonl").read_bytes()
    (folder / "events.jsonl").write_bytes(whole[: len(whole) // 2])
    assert [each.verdict for each in sessions(output)] == ["waiting"]
    (folder / "events.jsonl").write_bytes(whole)
    assert [each.verdict for each in sessions(output)] == [fold(recorded.log("planted")).last.verdict]  # type: ignore[union-attr]


def test_a_summary_that_is_not_of_this_log_is_not_believed(output: Path) -> None:
    folder = session_of("planted", output)
    log = folder / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:3]))
    assert [each.verdict for each in sessions(output)] == ["waiting"]


@pytest.mark.parametrize("rubbish", [b"", b"\x00" * 100, b"\x91" * 100_000, b'{"format":1}'])
def test_losing_the_index_loses_nothing(output: Path, cache: Path, rubbish: bytes) -> None:
    killed_session_of("benched", output)
    before = sessions(output)
    (index,) = (cache / "sessions").iterdir()
    index.write_bytes(rubbish)
    assert sessions(output) == before
    shutil.rmtree(cache)
    assert sessions(output) == before


def test_a_cache_that_cannot_be_written_is_done_without(output: Path, cache: Path) -> None:
    small_log(output / "one", at=1.0)
    cache.write_text("a file where the folder would be")
    assert names(output) == ["one"]


def test_a_session_is_live_while_it_is_open_and_ended_after(output: Path) -> None:
    log = recorded.log("benched")
    assert isinstance(log[0], SessionOpened)
    kept = Store.create(output, log[0].program)
    kept.append(log[0])
    assert [(each.live, each.ended) for each in sessions(output)] == [(True, False)]
    kept.append(WorkerDied(cause="killed"))
    assert [(each.live, each.ended) for each in sessions(output)] == [(True, False)]
    kept.close()
    assert [(each.live, each.ended) for each in sessions(output)] == [(False, True)]


def test_a_session_whose_run_never_ended_has_not_ended(output: Path) -> None:
    log = recorded.log("benched")
    kept = Store.create(output, Program(path="model.py"))
    for event in log[:3]:
        kept.append(event)
    kept.close()
    assert [(each.live, each.ended, each.runs, each.verdict) for each in sessions(output)] == [
        (False, False, 1, "waiting")
    ]


def test_a_hostile_summary_lies_about_itself_alone(output: Path) -> None:
    folder = small_log(output / "one", at=1.0)
    size = (folder / "events.jsonl").stat().st_size
    lie = SessionSummary(folder="/etc", name="../../etc", program="\x1b[31m</script>", started=1e308)
    summaries.write(folder, lie, size)
    (told,) = sessions(output)
    assert (told.folder, told.name) == (str(folder), "one")
    edited = (folder / summaries.NAME).read_text().replace('"waiting"', '"clean"')
    (folder / summaries.NAME).write_text(edited)
    shutil.rmtree(places.cache() / "sessions")
    assert (sessions(output)[0].verdict, sessions(output)[0].started) == ("waiting", 1.0)  # the log's
    (folder / summaries.NAME).unlink()
    os.mkfifo(folder / summaries.NAME)
    shutil.rmtree(places.cache())
    assert sessions(output)[0].started == 1.0
