"""A process of a session has a folder and a log of its own, which every command finds by SESSION/NAME."""

import os
from pathlib import Path

import pytest

from idbg.reports.documents import SessionData
from idbg.reports.documents.json import session_report
from idbg.schema import events
from idbg.schema.errors import OutputError
from idbg.schema.processes import Process
from idbg.schema.programs import Program, Target
from idbg.schema.runs import fold
from idbg.session import index, processes, reading, removal
from idbg.session.store import Store

PROGRAM = Program(path="train.py")


def session_in(output: Path) -> Path:
    """The folder of a session without processes."""
    store = Store.create(output, PROGRAM, name="job")
    store.append(events.SessionOpened(version="0", program=PROGRAM, folder=str(store.folder)))
    store.close()
    return store.folder


def with_process(session: Path, process: Process) -> Process:
    """Write the log of a process; returns the process with its final name."""
    store, named = Store.of_process(session, process)
    store.append(events.SessionOpened(version="0", program=PROGRAM, folder=str(store.folder), process=named))
    store.append(events.RunStarted(run=1, program=PROGRAM, target=Target(backend="inductor")))
    store.close()
    return named


def test_processes_are_listed_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    for rank in (10, 2, 0):
        with_process(session, Process(name=f"rank{rank}", rank=rank))
    assert processes.names(session) == ["rank0", "rank2", "rank10"]


def test_two_processes_of_one_name_get_two_folders(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    names = [with_process(session, Process(name="rank3")).name for _ in range(3)]
    assert names == ["rank3", "rank3-2", "rank3-3"] == processes.names(session)


def test_the_log_of_a_process_says_whose_it_is(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    process = Process(name="EngineCore-4711", pid=4711, parent=17, host="a", command=("python", "serve.py"))
    named = with_process(session, process)
    folder = processes.find(session, "EngineCore-4711")
    assert folder is not None
    history = fold(reading.load(folder))
    assert history.process == named == process
    assert session_report(SessionData("job", history)).process == process
    assert fold(reading.load(session)).process is None


@pytest.mark.parametrize("spelled", ["last/rank1", "{name}/rank1", "{folder}/rank1", "{folder}/processes/rank1"])
def test_a_command_line_names_a_process_after_its_session(tmp_path: Path, spelled: str) -> None:
    session = session_in(tmp_path)
    with_process(session, Process(name="rank1"))
    text = spelled.format(name=session.name, folder=session)
    assert index.find(text, tmp_path) == session / "processes" / "rank1"


def test_an_unknown_process_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    with pytest.raises(OutputError, match="has no process rank1") as alone:
        index.find("last/rank1", tmp_path)
    assert "one process" in str(alone.value.hint)
    with_process(session, Process(name="rank0"))
    with pytest.raises(OutputError, match="has no process rank1") as error:
        index.find(f"{session.name}/rank1", tmp_path)
    assert "rank0" in str(error.value.hint)


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", ".hidden", "x" * 200, "a\0b", "r\nm"])
def test_names_that_climb_out_or_hide_are_no_processes(tmp_path: Path, name: str) -> None:
    session = session_in(tmp_path)
    assert not processes.is_name(name)
    assert processes.find(session, name) is None


def test_links_among_the_processes_are_refused(tmp_path: Path) -> None:
    session, other = session_in(tmp_path / "a"), session_in(tmp_path / "b")
    with_process(session, Process(name="rank0"))
    os.symlink(other, session / "processes" / "rank1")
    assert processes.names(session) == ["rank0"]
    assert processes.find(session, "rank1") is None
    os.symlink(session / "processes", other / "processes")
    assert processes.names(other) == []
    assert processes.find(other, "rank0") is None
    with pytest.raises(OutputError, match="it is a link"):
        Store.of_process(other, Process(name="rank5"))
    assert not (session / "processes" / "rank5").exists()


def test_the_main_log_has_each_process_and_how_it_ended() -> None:
    rank = Process(name="rank1", rank=1, world_size=2)
    log: list[events.SessionEvent] = [
        events.SessionOpened(version="0", program=PROGRAM, folder="/there"),
        events.ProcessStarted(process=Process(name="rank0")),
        events.ProcessStarted(process=rank),
        events.ProcessEnded(name="rank1", signal="SIGKILL", last_phase="codegen", at=3.0),
        events.ProcessEnded(name="never started", exit_status=0),
    ]
    first, second = session_report(SessionData("job", fold(log))).processes
    assert (first.name, first.ended) == ("rank0", None)
    assert (second.name, second.rank, second.world_size) == ("rank1", 1, 2)
    assert second.ended is not None
    assert (second.ended.signal, second.ended.last_phase, second.ended.at) == ("SIGKILL", "codegen", 3.0)


def test_a_session_with_processes_is_removed_as_a_whole(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    with_process(session, Process(name="rank0"))
    assert removal.why_not(session) == ""
    removal.remove(session)
    assert not session.exists()
