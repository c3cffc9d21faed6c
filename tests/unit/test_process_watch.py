"""A live session sees which processes begin a log, and how each of them ends; every output says so."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from idbg import cli
from idbg.format.processes import end_words
from idbg.reports.documents import SessionData, document
from idbg.schema import events
from idbg.schema.decisions.dynamo import FrameResult
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Frame
from idbg.schema.processes import Process
from idbg.schema.programs import Failure, Program, Target
from idbg.schema.runs import fold
from idbg.session import processes, reading
from idbg.session.process_watch import ProcessWatch, end_of_log
from idbg.session.store import Store
from idbg.startup.sitecustomize.passing import note_end as noted
from idbg.views.diagnostics import of_history

PROGRAM = Program(path="serve.py")


def opened(store: Store, process: Process | None = None) -> None:
    store.append(events.SessionOpened(version="0", program=PROGRAM, folder=str(store.folder), process=process))


def begun(session: Path, process: Process) -> Store:
    """The log of a process that compiles: it is in the phase codegen."""
    store, process = Store.of_process(session, process)
    opened(store, process)
    store.append(events.RunStarted(run=1, program=PROGRAM, target=Target(backend="inductor")))
    for phase, seconds in (("dynamo", None), ("dynamo", 0.1), ("codegen", None), ("lowering", None), ("lowering", 1.0)):
        store.append(events.PhaseChanged(run=1, phase=phase, frame="0/0", seconds=seconds))
    pid = processes.pid_file(session, process)
    pid.parent.mkdir(exist_ok=True)
    pid.write_text(process.name)
    return store


class Watched:
    """A session whose processes are watched; `look` is what the watch's thread does from time to time."""

    def __init__(self, output: Path) -> None:
        self.store = Store.create(output, PROGRAM)
        opened(self.store)
        self.watch = ProcessWatch(self.store.folder, self.take)
        self.seen: list[SessionEvent] = []

    @property
    def folder(self) -> Path:
        return self.store.folder

    def take(self, event: SessionEvent) -> None:
        self.seen.append(event)
        self.store.append(event)

    def look(self, *, last: bool = False) -> list[SessionEvent]:
        self.seen.clear()
        self.watch.look(last=last)
        return list(self.seen)


def note_end(session: Path, pid: int, status: int) -> None:
    """What a process that waits for another does, once it is captured."""
    noted(str(session), pid, status)


def test_a_process_is_seen_once_it_has_a_log_and_its_signal_once_it_is_waited_for(tmp_path: Path) -> None:
    session = Watched(tmp_path)
    assert session.look() == []
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    store = begun(session.folder, Process(name=f"EngineCore-{child.pid}", pid=child.pid, host=os.uname().nodename))
    (started,) = session.look()
    assert isinstance(started, events.ProcessStarted)
    assert started.process.pid == child.pid
    assert session.look() == []
    store.close()
    assert session.look() == []  # its log is over, and the process is not
    child.terminate()
    _, status = os.waitpid(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    note_end(session.folder, child.pid, status)
    (ended,) = session.look()
    assert ended == events.ProcessEnded(
        name=f"EngineCore-{child.pid}",
        signal="SIGTERM",
        last_phase="codegen",
        last_frame="0/0",
        at=ended.at,
        said="not finished",
    )


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_signal_is_known_before_anybody_waits_for_the_process(tmp_path: Path) -> None:
    session = Watched(tmp_path)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    begun(session.folder, Process(name="Engine-1", pid=child.pid, host=os.uname().nodename)).close()
    assert [type(each) for each in session.look()] == [events.ProcessStarted]
    os.kill(child.pid, signal.SIGSEGV)
    deadline = time.monotonic() + 20
    while not (ended := session.look()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [getattr(each, "signal", "") for each in ended] == ["SIGSEGV"]
    child.wait()


def test_a_process_whose_end_nobody_sees_is_ended_without_a_status(tmp_path: Path) -> None:
    session = Watched(tmp_path)
    begun(session.folder, Process(name="child-7", pid=7, host="another")).close()
    assert [type(each) for each in session.look()] == [events.ProcessStarted]
    (ended,) = session.look(last=True)
    assert isinstance(ended, events.ProcessEnded)
    assert (ended.exit_status, ended.signal) == (None, "")


def test_only_how_a_captured_process_ended_is_noted(tmp_path: Path) -> None:
    session = Watched(tmp_path)
    begun(session.folder, Process(name="child-7", pid=7, host=os.uname().nodename))
    note_end(session.folder, 7, signal.SIGSEGV)
    with pytest.raises(FileNotFoundError):
        note_end(session.folder, 8, signal.SIGSEGV)
    assert sorted(path.name for path in (session.folder / "processes" / ".pids").iterdir()) == [
        f"{os.uname().nodename}-7"
    ]


def test_a_phase_that_is_over_is_not_the_last(tmp_path: Path) -> None:
    session = Watched(tmp_path)
    store = begun(session.folder, Process(name="child-7"))
    assert end_of_log(store.folder).end.last_phase == "codegen"
    store.append(events.PhaseChanged(run=1, phase="codegen", frame="0/0", seconds=2.0))
    assert end_of_log(store.folder).end.last_phase == ""


def test_a_frame_that_is_not_done_is_the_last_also_between_its_phases(tmp_path: Path) -> None:
    session = Watched(tmp_path)
    store, _ = Store.of_process(session.folder, Process(name="child-7"))
    opened(store)
    store.append(events.RunStarted(run=1, program=PROGRAM, target=Target(backend="inductor")))
    store.append(events.FrameStarted(run=1, frame=Frame(id="2/0", function="step", file="f.py", line=3)))
    for seconds in (None, 0.1):
        store.append(events.PhaseChanged(run=1, phase="dynamo", frame="2/0", seconds=seconds))
    killed = replace(end_of_log(store.folder).end, signal="SIGKILL")
    assert end_words(killed) == "killed by SIGKILL while it compiled 2/0"
    store.append(events.DecisionsRecorded(run=1, decisions=(FrameResult(frame="2/0", end="compiled"),)))
    assert end_words(replace(end_of_log(store.folder).end, signal="SIGKILL")) == "killed by SIGKILL"


def test_the_exception_that_ended_a_process_is_named_where_it_failed(tmp_path: Path) -> None:
    session = Watched(tmp_path)
    store = begun(session.folder, Process(name="Engine-7", pid=7, host=os.uname().nodename))
    session.look()
    failure = Failure(kind="user", type="KeyError", message="'weights'", hint="")
    store.append(events.RunEnded(run=1, verdict="failed", seconds=1.0, failure=failure))
    note_end(session.folder, 7, 1 << 8)  # status 1, as os.waitpid has it
    session.look()
    (found,) = of_history(fold([*reading.load(session.folder)]))
    assert found.message == "the process Engine-7 exited with status 1: the program raised KeyError: 'weights'"


def test_what_could_not_be_captured_is_noted_once(tmp_path: Path) -> None:
    session = Watched(tmp_path)
    (session.folder / "processes").mkdir()
    (session.folder / "processes" / ".problem-12").write_text("ImportError: no module")
    (noted,) = session.look()
    assert isinstance(noted, events.Noted)
    assert "process 12" in noted.text and "no module" in noted.text
    assert session.look() == []


def test_every_output_names_the_process_that_was_killed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = Watched(tmp_path)
    session.store.append(events.RunStarted(run=1, program=PROGRAM, target=Target()))
    begun(session.folder, Process(name="rank3", rank=3, world_size=8, run=1)).close()
    session.look()
    session.take(events.ProcessEnded(name="rank3", signal="SIGKILL", last_phase="codegen"))
    session.take(events.RunEnded(run=1, verdict="compiled", seconds=1.0, children=1))
    session.store.close()
    history = fold(reading.load(session.folder))
    found = [each for each in of_history(history) if each.rule == "process"]
    assert [each.message for each in found] == ["the process rank3 was killed by SIGKILL in codegen"]
    for name in ("text", "html", "markdown", "json"):
        text = document(name).render(SessionData("job", history, str(session.folder))).decode()
        assert "rank3" in text and "SIGKILL" in text and "codegen" in text, name
    assert cli.main(["show", str(session.folder)]) == 0
    shown = capsys.readouterr().out
    assert "rank 3 of 8" in shown and "killed by SIGKILL in codegen" in shown
    assert "✘ rank3: killed by SIGKILL in codegen" in shown
    assert cli.main(["show", f"{session.folder}/rank3"]) == 0
    assert "process   rank3" in capsys.readouterr().out


def test_an_orderly_end_is_no_finding() -> None:
    log: list[SessionEvent] = [
        events.SessionOpened(version="0", program=PROGRAM, folder="/there"),
        *(events.ProcessStarted(process=Process(name=f"child-{number}")) for number in range(4)),
        events.ProcessEnded(name="child-0", exit_status=0),
        events.ProcessEnded(name="child-1", signal="SIGTERM"),
        events.ProcessEnded(name="child-2"),
        events.ProcessEnded(name="child-3", exit_status=7),
    ]
    assert [each.message for each in of_history(fold(log))] == ["the process child-3 exited with status 7"]
