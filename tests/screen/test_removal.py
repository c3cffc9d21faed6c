"""Nothing but sessions is ever removed, and of those no live one."""

import os
import re
import time
from pathlib import Path

import pytest

from idbg.config import places
from idbg.config.settings import Keeping, bytes_of
from idbg.schema.errors import OutputError
from idbg.schema.events import SessionOpened
from idbg.schema.programs import Program
from idbg.schema.summaries import SessionSummary
from idbg.session import removal, summaries
from idbg.session.index import sessions
from idbg.session.store import Store
from tests.harness.sessions import killed_session_of, session_of, small_log


@pytest.fixture(autouse=True)
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(places, "cache", lambda: tmp_path / "cache")
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


@pytest.mark.parametrize("name", ["resnet", "minified"])
def test_a_session_goes_with_all_that_it_wrote(name: str, output: Path) -> None:
    folder = session_of(name, output)
    (folder / "repros" / "x").mkdir(parents=True)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert removal.remove(folder) == size
    assert list(output.iterdir()) == []


def foreign(output: Path) -> Path:
    folder = output / "foreign"
    folder.mkdir()
    (folder / "events.jsonl").write_text('{"type":"purchase"}\n')
    return folder


def with_notes(output: Path) -> Path:
    folder = small_log(output / "noted", at=1.0)
    (folder / "notes.md").write_text("mine")
    return folder


def a_link(output: Path) -> Path:
    small_log(output.parent / "elsewhere", at=1.0)
    (output / "link").symlink_to(output.parent / "elsewhere")
    return output / "link"


def a_linked_log(output: Path) -> Path:
    small_log(output.parent / "elsewhere", at=1.0)
    (output / "linked").mkdir()
    (output / "linked" / "events.jsonl").symlink_to(output.parent / "elsewhere" / "events.jsonl")
    return output / "linked"


def a_project(output: Path) -> Path:
    """A folder of somebody's into which a log was copied."""
    folder = small_log(output / "project", at=1.0)
    (folder / ".git").mkdir()
    return folder


@pytest.mark.parametrize("made", [foreign, with_notes, a_link, a_linked_log, a_project])
def test_what_is_not_a_session_alone_is_left_as_it_is(made: object, output: Path) -> None:
    folder = made(output)  # type: ignore[operator]
    before = sorted(path for path in output.parent.rglob("*"))
    with pytest.raises(OutputError, match="is left as it is"):
        removal.remove(folder)
    assert sorted(path for path in output.parent.rglob("*")) == before


def test_links_in_a_session_are_removed_and_not_followed(output: Path) -> None:
    folder = small_log(output / "one", at=1.0)
    mine = output.parent / "mine"
    mine.mkdir()
    (mine / "kept").write_text("kept")
    (folder / "run-1").symlink_to(mine)
    (folder / "repros").mkdir()
    (folder / "repros" / "link").symlink_to(mine)
    removal.remove(folder)
    assert not folder.exists() and (mine / "kept").read_text() == "kept"


def test_a_live_session_stays(output: Path) -> None:
    live = Store.create(output, Program(path="model.py"))
    live.append(SessionOpened(version="0", program=Program(path="model.py"), folder="", at=1.0))
    with pytest.raises(OutputError, match="it is live"):
        removal.remove(live.folder)
    live.close()
    removal.remove(live.folder)
    assert not live.folder.exists()


def test_what_was_begun_to_be_removed_is_not_listed_and_goes_next_time(output: Path) -> None:
    small_log(output / f"{removal.GOING}1-one", at=1.0)
    (output / f"{removal.GOING}2-two" / "mine").mkdir(parents=True)
    assert sessions(output) == []
    removal.sweep(output)
    assert [path.name for path in output.iterdir()] == [f"{removal.GOING}2-two"]


def summary(name: str, days: float, *, size: int = 10, live: bool = False) -> SessionSummary:
    return SessionSummary(folder=f"/{name}", name=name, started=-days * 86400, bytes=size, live=live)


@pytest.mark.parametrize(
    ("keeping", "gone"),
    [
        (Keeping(), []),
        (Keeping(sessions=2), ["d", "c"]),
        (Keeping(days=2.5), ["d", "c"]),
        (Keeping(size=30), ["d"]),
        (Keeping(sessions=3, days=1.5), ["d", "c", "b"]),
        (Keeping(sessions=1), ["d", "c", "b"]),
    ],
)
def test_old_many_and_large_ones_go(keeping: Keeping, gone: list[str]) -> None:
    found = [summary("a", 1), summary("b", 2), summary("c", 3), summary("d", 4)]
    assert [each.name for each in removal.superfluous(found, keeping, 0.0)] == gone


def test_live_ones_and_new_ones_stay_whatever_the_settings_say() -> None:
    new = summary("new", removal.GRACE / 86400 / 2)
    found = [new, summary("live", 9, live=True), summary("old", 10)]
    assert [each.name for each in removal.superfluous(found, Keeping(sessions=1, size=1), 0.0)] == ["old"]


def test_what_goes_is_gone_when_another_begins(output: Path) -> None:
    killed_session_of("benched", output, "one")
    with_notes(output)
    now = time.time()
    small_log(output / "new", at=now)
    os.utime(output / "new" / "events.jsonl")
    thread = removal.begin(output, Keeping(sessions=1))
    assert thread is not None
    thread.join(60)
    assert sorted(path.name for path in output.iterdir()) == ["new", "noted"]
    assert removal.begin(output, Keeping()) is None


@pytest.mark.parametrize(
    ("text", "size"), [(7, 7), ("7", 7), ("1 KB", 1000), ("1.5 KiB", 1536), ("2GiB", 2 << 30), ("3 m", 3_000_000)]
)
def test_a_size_is_written_as_people_do(text: int | str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", [-1, "-1", "much", "1 XB", "", "1e9", "1 GB or so"])
def test_what_is_no_size_is_refused(text: int | str) -> None:
    with pytest.raises(ValueError, match=r"is no size|is negative"):
        bytes_of(text)


def test_a_session_of_which_nothing_can_be_read_stays(output: Path) -> None:
    folder = small_log(output / "newer", at=1.0)
    log = folder / "events.jsonl"
    log.write_bytes(re.sub(rb'"format":\d+', b'"format":999', log.read_bytes()))
    os.utime(log, (1.0, 1.0))
    (found,) = sessions(output)
    assert found.damaged and not found.started
    small_log(output / "old", at=1.0)
    os.utime(output / "old" / "events.jsonl", (1.0, 1.0))
    removal.apply(output, Keeping(sessions=1, days=1, size=1))
    assert [path.name for path in output.iterdir()] == ["newer"]


def test_what_a_session_says_of_its_own_size_costs_no_other(output: Path) -> None:
    for name, at in (("mine", 1.0), ("anybodys", 2.0)):
        folder = small_log(output / name, at=at)
        told = SessionSummary(folder=str(folder), name=name, program="m.py", started=at, bytes=1 << 50, ended=True)
        summaries.write(folder, told, (folder / "events.jsonl").stat().st_size)
    assert {each.bytes for each in sessions(output)} == {1 << 50}
    removal.apply(output, Keeping(size=1 << 20))
    assert sorted(path.name for path in output.iterdir()) == ["anybodys", "mine"]
