"""Many sessions begin at once, in many processes: each has a folder of its own, all are listed, each file is whole."""

import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import pytest

from idbg.config import places
from idbg.schema.programs import Program
from idbg.schema.summaries import SessionSummary
from idbg.session import files, reading
from idbg.session.index import sessions
from idbg.session.store import Store

PROCESSES, EACH = 6, 15
WRITER = """\
import sys
from pathlib import Path
from idbg.schema import events
from idbg.schema.programs import Program, Target
from idbg.session.event_bus import EventBus
from idbg.session.index import sessions
from idbg.session.store import Store

output, name = Path(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    program = Program(path=name)
    bus = EventBus(kept := Store.create(output, program))
    bus.emit(events.SessionOpened(version="0", program=program, folder=str(kept.folder)))
    bus.emit(events.RunStarted(run=1, program=program, target=Target(rules="x" * 1000)))
    bus.emit(events.RunEnded(run=1, verdict="clean", seconds=0.0))
    if number % 8 == 0:
        bus.flush()
        assert kept.folder.name in [each.name for each in sessions(output)]
    bus.close()
    print(kept.folder)
"""


def test_no_two_of_many_processes_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    output = tmp_path / "out"
    names = ["model.py", "Model.py"]  # one folder to some file systems
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(output), names[number % 2], str(EACH)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    told = [writer.communicate(timeout=120)[0].split() for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * PROCESSES
    made = [name for each in told for name in each]
    assert len(made) == len({name.casefold() for name in made}) == PROCESSES * EACH
    found = sessions(output)
    assert {each.folder for each in found} == set(made)
    assert all(each.ended and each.runs == 1 and not each.damaged for each in found)
    assert found == sessions(output) == sorted(found, key=lambda each: (each.started, each.name), reverse=True)
    assert not list(output.rglob("*.part"))


READER = """\
import sys
from pathlib import Path
path, seen = Path(sys.argv[1]), set()
print("ready", flush=True)
while not Path(sys.argv[2]).exists():
    seen.add(path.read_bytes())
print(sorted((len(each), len(set(each))) for each in seen))
"""


def test_whoever_reads_a_file_while_it_is_written_finds_one_whole(tmp_path: Path) -> None:
    path, done = tmp_path / "file", tmp_path / "done"
    files.write(path, b"a" * 100_000)
    reader = subprocess.Popen([sys.executable, "-c", READER, str(path), str(done)], stdout=subprocess.PIPE, text=True)
    assert reader.stdout is not None and reader.stdout.readline() == "ready\n"
    for number in range(500):
        files.write(path, b"ab"[number % 2 : number % 2 + 1] * (100_000 + number % 2))
    done.touch()
    seen, _ = reader.communicate(timeout=30)
    assert set(literal_eval(seen)) <= {(100_000, 1), (100_001, 1)} != set()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["done", "file"]


def test_the_writer_of_a_session_that_was_killed_is_not_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "cache", lambda: tmp_path / "cache")
    script = WRITER.replace("    bus.close()", "    bus.flush(); print(kept.folder, flush=True); sys.stdin.readline()")
    writer = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "out"), "model.py", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path), "XDG_CACHE_HOME": str(tmp_path / "theirs")},
    )
    assert writer.stdin is not None and writer.stdout is not None
    writer.stdin.write("go\n")
    writer.stdin.flush()
    writer.stdout.readline()
    folder = Path(writer.stdout.readline().strip())

    def told() -> list[tuple[bool, bool, str]]:
        return [(each.live, each.ended, each.verdict) for each in sessions(tmp_path / "out")]

    assert told() == [(True, False, "empty")]
    writer.kill()
    writer.communicate()
    assert told() == [(False, True, "empty")]
    assert reading.read(folder).missing == ""


# ------------------------------------------------------------- how much one session keeps


def test_a_session_stops_keeping_at_its_limit_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from idbg.schema import events
    from idbg.session.event_bus import EventBus

    monkeypatch.setattr(places, "cache", lambda: tmp_path / "cache")
    program = Program(path="model.py")
    bus = EventBus(kept := Store.create(tmp_path / "out", program, 20_000))
    heard: list[events.SessionEvent] = []
    bus.subscribe(heard.append)
    bus.emit(events.SessionOpened(version="0", program=program, folder=str(kept.folder)))
    for number in range(100):
        bus.emit(events.OutputWritten(run=0, stream="stdout", text=str(number) * 500))
    bus.emit(events.WorkerDied(cause="last"))
    bus.close()
    notes = [event for event in heard if isinstance(event, events.Noted)]
    assert [note.missing for note in notes] == [True] and "more than 19.5 KiB (the setting session_size)" in notes[
        0
    ].text
    assert len(heard) == 103 and len(bus.events) == 103  # the run is not harmed
    found, missing = reading.read(kept.folder)
    assert missing == "" and isinstance(found[-1], events.Noted) and found[-1].missing
    assert 15 < len(found) < 60 and (kept.folder / files.LOG).stat().st_size < 21_000
    (listed,) = sessions(tmp_path / "out")
    assert isinstance(listed, SessionSummary) and listed.damaged == notes[0].text and not listed.ended


def test_an_event_too_large_to_be_read_again_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from idbg.schema import events
    from idbg.session import store

    monkeypatch.setattr(store, "LINE_LIMIT", 5000)
    monkeypatch.setattr(reading, "LINE_LIMIT", 5000)
    kept = Store.create(tmp_path, Program(path="model.py"))
    assert kept.append(events.SessionOpened(version="0", program=Program(path="m.py"), folder="")) is None
    note = kept.append(events.OutputWritten(run=0, stream="stdout", text="x" * 6000))
    assert note is not None and "one event of the session takes" in note.text
    assert kept.append(events.WorkerDied(cause="later")) is None
    kept.close()
    found, missing = reading.read(kept.folder)
    assert len(found) == 2 and found[-1] == note and missing == ""
