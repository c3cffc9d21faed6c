"""A trace is imported by another process while its session is open, and by every command that takes a session."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from idbg.cli import main
from idbg.schema.errors import BadInput
from idbg.session import session as session_module
from idbg.session.importing import Import
from idbg.session.session import Session
from tests.harness.traces import line, recordings, trace_in, unpacked


def wait_for_end(session: Session) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        run = session.history.last
        if run is not None and run.ended is not None:
            return
        time.sleep(0.05)
    raise AssertionError("the import does not end")


def test_events_come_while_the_session_is_open(tmp_path: Path) -> None:
    trace = unpacked(recordings("breaking")[0], tmp_path / "trace")
    with Session.importing(trace, tmp_path / "out") as session:
        wait_for_end(session)
        run = session.history.last
        assert run is not None and len(run.graphs) > 10 and run.ended
        assert not session.live and session.folder.parent == tmp_path / "out"


def test_closing_ends_the_process_that_reads_and_keeps_what_was_read(tmp_path: Path) -> None:
    trace = trace_in(tmp_path / "trace", line({"dynamo_start": {}, "frame_id": 0}))  # just written: it is followed
    session = Session.importing(trace, tmp_path / "out")
    began = time.monotonic()
    session.close()
    assert time.monotonic() - began < 10
    with Session.open(session.folder) as saved:
        assert saved.history.last is not None and "0/0" in saved.history.last.frames


def test_what_cannot_be_imported_is_refused_before_there_is_a_session(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no trace in"):
        Session.importing(tmp_path, tmp_path / "out")


def test_commands_take_a_trace_as_a_session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, output = str(unpacked(recordings("breaking")[0], tmp_path / "trace")), f"--output={tmp_path / 'out'}"
    assert main(["import", trace, output, "--json"]) == 0
    folder = json.loads(capsys.readouterr().out)["session"]
    assert main(["show", trace, output, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["session"]["folder"] == folder
    assert main(["analyze", trace, output, "--type", "recompiles"]) == 1  # a function of it failed
    assert "scaled" in capsys.readouterr().out
    assert main(["report", trace, output, "-o", str(tmp_path / "report.html")]) == 0
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert len(list((tmp_path / "out").iterdir())) == 1


def test_a_session_of_several_processes_names_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, output = str(unpacked(recordings("ranks")[0], tmp_path / "trace")), f"--output={tmp_path / 'out'}"
    assert main(["analyze", trace, output, "--type", "breaks"]) == 1  # one of them has no graph
    said = capsys.readouterr().out
    assert said.startswith("rank0\n") and "\nrank1\n" in said and said.count("graph break") >= 2
    assert main(["analyze", trace, output, "--type", "breaks", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["processes"]
    assert list(found) == ["rank0", "rank1"] and all(each["breaks"] for each in found.values())
    assert main(["analyze", trace, output, "--trace", str(tmp_path / "time.json")]) == 2
    assert "/rank0 is the first of 2" in capsys.readouterr().err
    folder = next((tmp_path / "out").iterdir())
    assert main(["show", f"{folder}/rank1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["graphs"] > 0


def test_a_long_session_is_there_before_it_is_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    importing = Import(unpacked(recordings("breaking")[0], tmp_path / "trace"), tmp_path / "out")
    importing.read()
    monkeypatch.setattr(session_module, "FIRST_EVENTS", 3)
    with Session.streamed(importing.folder) as session, Session.open(importing.folder) as whole:
        wait_for_end(session)
        assert session.history.last is not None and whole.history.last is not None
        assert session.history.last.graphs == whole.history.last.graphs
        assert len(session.events) == len(whole.events)


STOPPED = """
import os, signal, sys
from idbg.cli import main
from idbg.session.importing import Import
number = int(sys.argv.pop(1))
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored from the start, and then stays so
Import.read = lambda self, show: os.kill(os.getpid(), number)
sys.exit(main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_import_that_a_signal_ends_says_so_as_json(number: signal.Signals, tmp_path: Path) -> None:
    trace = unpacked(recordings("breaking")[0], tmp_path / "trace")
    command = [sys.executable, "-c", STOPPED, str(int(number)), "import", str(trace), "--json"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 128 + number, done.stderr
    found = json.loads(done.stdout)
    assert (found["schema"], found["status"]) == ("idbg.error/1", 128 + number)
