"""How long the phases of a program's compile took in earlier sessions."""

import os
from pathlib import Path

from msgspec.structs import replace

from idbg.schema import event_log, events
from idbg.schema.diff import Comparison
from idbg.schema.programs import Failure, Program, Target
from idbg.session.files import LOG
from idbg.session.past import MOST, phases_of_earlier, seconds_of_earlier
from idbg.session.session import Session

PROGRAM = Program("model.py")


def saved(
    folder: Path, seconds: float, program: Program = PROGRAM, backend: str = "inductor", failure: Failure | None = None
) -> None:
    folder.mkdir()
    told: list[events.SessionEvent] = [
        events.SessionOpened(version="1", program=program, folder=str(folder)),
        events.RunStarted(run=1, program=program, target=Target(backend=backend)),
        events.PhaseChanged(run=1, phase="codegen"),
        events.PhaseChanged(run=1, phase="codegen", seconds=seconds),
        events.RunEnded(run=1, verdict="clean", seconds=9.0, failure=failure),
    ]
    (folder / LOG).write_bytes(b"".join(event_log.encode(event) + b"\n" for event in told))


def test_whole_runs_of_the_same_program_and_backend_count(tmp_path: Path) -> None:
    saved(tmp_path / "a", 3.0)
    saved(tmp_path / "b", 5.0)
    saved(tmp_path / "other", 7.0, program=Program("other.py"))
    saved(tmp_path / "eager", 7.0, backend="eager")
    saved(tmp_path / "failed", 7.0, failure=Failure(kind="torch", message="no"))
    found = phases_of_earlier(tmp_path / "now", PROGRAM, "inductor")
    assert sorted(each["codegen"] for each in found) == [3.0, 5.0]


def test_only_the_newest_sessions_are_read(tmp_path: Path) -> None:
    for number in range(MOST + 3):
        saved(tmp_path / f"s{number}", float(number))
        os.utime(tmp_path / f"s{number}" / LOG, (1000.0 + number, 1000.0 + number))
    found = phases_of_earlier(tmp_path / "now", PROGRAM, "inductor")
    assert [each["codegen"] for each in found] == [7.0, 6.0, 5.0, 4.0, 3.0]


def test_a_damaged_session_tells_nothing_and_stops_nothing(tmp_path: Path) -> None:
    saved(tmp_path / "a", 3.0)
    for name, damage in (("torn", b'{"type":"phase_changed","ru'), ("binary", b"\xff\x00\n")):
        saved(tmp_path / name, 9.0)
        log = tmp_path / name / LOG
        log.write_bytes(log.read_bytes().splitlines()[0] + b"\n" + damage)
    assert phases_of_earlier(tmp_path / "now", PROGRAM, "inductor") == [{"codegen": 3.0}]


def test_what_is_no_log_is_not_waited_for(tmp_path: Path) -> None:
    saved(tmp_path / "a", 3.0)
    for name in ("pipe", "endless"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "pipe" / LOG)
    with (tmp_path / "endless" / LOG).open("wb") as log:
        log.truncate(1 << 40)
    assert phases_of_earlier(tmp_path / "now", PROGRAM, "inductor") == [{"codegen": 3.0}]


def test_a_session_knows_what_is_typical_from_those_beside_it(tmp_path: Path) -> None:
    for name, seconds in (("a", 3.0), ("b", 5.0), ("c", 100.0)):
        saved(tmp_path / name, seconds)
    with Session.open(tmp_path / "c") as session:
        assert session.typical() == {"codegen": 5.0}  # of 3, 5, and its own


def test_a_run_usually_takes_what_runs_that_were_asked_for_alike_took(tmp_path: Path) -> None:
    for name, seconds, backend in (("a", 3.0, "inductor"), ("b", 5.0, "inductor"), ("other", 7.0, "eager")):
        saved(tmp_path / name, seconds, backend=backend)
    target = Target(backend="inductor", accelerator="tpu", strict=True)  # the rules take no time
    assert seconds_of_earlier(tmp_path / "now", PROGRAM, target, None) == [9.0, 9.0]
    assert seconds_of_earlier(tmp_path / "now", PROGRAM, replace(target, options={"max_autotune": True}), None) == []
    assert seconds_of_earlier(tmp_path / "now", PROGRAM, target, Comparison()) == []
    with Session.open(tmp_path / "other") as session:
        assert session.usual_seconds(session.history.runs[1]) == 9.0
        session.history.runs[1].comparison = Comparison()
        session.history.runs[1].ended = None
        assert session.usual_seconds(session.history.runs[1]) is None
