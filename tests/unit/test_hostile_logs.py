"""A session may be cut off anywhere, damaged, or made by somebody who means no good: it opens as far as it is whole, or
is refused in a sentence; nothing hangs, no memory is blown up, and nothing outside of its folder is touched.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from idbg.config import places
from idbg.schema import event_log, events
from idbg.schema.code import Kernel, OutputCode
from idbg.schema.errors import OutputError
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Frame, Graph, GraphId
from idbg.schema.programs import Program, Target
from idbg.session import files, reading
from idbg.session.index import sessions
from idbg.session.session import Session
from idbg.session.store import Store

PROGRAM = Program(path="modèle.py")
LOG: list[SessionEvent] = [
    events.SessionOpened(version="0.1.0", program=PROGRAM, folder="/there", at=1.0),
    events.RunStarted(run=1, program=PROGRAM, target=Target(rules="name = 'x'\n"), at=2.0),
    events.OutputWritten(run=1, stream="stdout", text="héllo 漢字 \u2028\n", at=3.0),
    events.FrameStarted(run=1, frame=Frame("0/0", "forward", "m.py", 3), at=4.0),
    events.RunEnded(run=1, verdict="clean", seconds=0.5, at=5.0),
]
LINES = [event_log.encode(event) + b"\n" for event in LOG]
WHOLE = b"".join(LINES)
few = settings(max_examples=150, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "cache", lambda: tmp_path / "cache")


def saved(folder: Path, content: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / files.LOG).write_bytes(content)
    return folder


def test_wherever_the_writer_is_stopped_the_whole_events_are_read(tmp_path: Path) -> None:
    ends = [len(b"".join(LINES[:count])) for count in range(len(LINES) + 1)]
    for length in range(len(LINES[0]) - 1, len(WHOLE) + 1):
        found, missing = reading.read(saved(tmp_path / "s", WHOLE[:length]))
        whole = sum(end <= length + 1 for end in ends[1:])  # an event is whole without its end of line
        assert (found, missing) == (LOG[:whole], ""), length


@pytest.mark.parametrize("zeros", [1, 511, 70_000])
@pytest.mark.parametrize("torn", [0, 7])
def test_zeros_that_a_power_cut_left_end_the_log(tmp_path: Path, zeros: int, torn: int) -> None:
    content = WHOLE + LINES[2][:torn] + b"\0" * zeros
    assert reading.read(saved(tmp_path / "s", content)) == (LOG, "")


NAMES = ("../../../x", "/etc/passwd", "..", ".", "a\0b", "\n", "x" * 1000, "A", "a", "X" * 200 + "1", "X" * 200 + "2")
BAD_LINES = {
    "rubbish": b"rubbish\n",
    "zeros": b"\0" * 100 + b"\n",
    "half a letter": b'{"type":"noted","at":1.0,"level":"info","text":"\xe6\xbc"}\n',
    "nested deep": b'{"type":"noted","x":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n",
    "nested deep, unclosed": b"[" * 200_000 + b"\n",
    "a field of another type": b'{"type":"run_ended","run":"one","verdict":"clean","seconds":1}\n',
    "no such verdict": b'{"type":"run_ended","run":1,"verdict":"\\u001b[31m' + b"x" * 5000 + b'","seconds":1}\n',
    "a field too few": b'{"type":"run_started","run":1}\n',
    "not an object": b"[1,2]\n",
    "no type": b"{}\n",
}


@pytest.mark.parametrize("bad", BAD_LINES)
def test_a_damaged_line_ends_what_is_read_and_is_named(tmp_path: Path, bad: str) -> None:
    content = b"".join([*LINES[:2], BAD_LINES[bad], *LINES[2:]])
    found, missing = reading.read(saved(tmp_path / "s", content))
    assert found == LOG[:2]
    assert "line 3" in missing and "are left out" in missing
    assert len(missing) < 400 and missing.isprintable()
    with Session.open(tmp_path / "s") as opened:
        assert opened.history.missing == [missing]
        assert [run.verdict for run in opened.history.runs.values()] == ["waiting"]
    (listed,) = sessions(tmp_path)
    assert (listed.damaged, listed.ended, listed.verdict) == (missing, False, "waiting")


@pytest.mark.parametrize("bad", BAD_LINES)
def test_a_log_that_begins_so_is_refused_in_a_sentence(tmp_path: Path, bad: str) -> None:
    with pytest.raises(OutputError) as refused:
        reading.read(saved(tmp_path / "s", BAD_LINES[bad] + WHOLE))
    assert len(refused.value.message) < 400 and refused.value.hint


def test_nothing_that_is_no_regular_file_is_waited_for(tmp_path: Path) -> None:
    for name in ("pipe", "folder", "link", "device"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "pipe" / files.LOG)
    (tmp_path / "folder" / files.LOG).mkdir()
    (tmp_path / "link" / files.LOG).symlink_to("/etc/passwd")
    (tmp_path / "device" / files.LOG).symlink_to("/dev/zero")
    for name in ("pipe", "folder", "link", "device", "nothing", "a\0b"):
        with pytest.raises(OutputError, match="is not a session"):
            reading.read(tmp_path / name)
    assert sessions(tmp_path) == []


def test_a_log_as_large_as_a_disk_takes_no_memory_and_no_time(tmp_path: Path) -> None:
    folder = saved(tmp_path / "s", WHOLE)
    with (folder / files.LOG).open("r+b") as log:
        log.truncate(1 << 40)  # a terabyte of zeros that takes no room
    script = (
        "import resource, sys; from pathlib import Path; from idbg.session import reading\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"
        "found, missing = reading.read(Path(sys.argv[1])); print(len(found), missing)\n"
        # of this program alone: ru_maxrss counts what the process had before its exec, which is pytest's memory
        "print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])"
    )
    told = subprocess.run(
        [sys.executable, "-c", script, str(folder)], capture_output=True, text=True, timeout=60, check=True
    )
    assert told.stdout.startswith(f"{len(LOG)} ") and "is longer than 128 MiB" in told.stdout
    assert int(told.stdout.splitlines()[-1]) < 1_000_000


def test_more_than_memory_takes_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "most_bytes", lambda: len(b"".join(LINES[:3])))
    found, missing = reading.read(saved(tmp_path / "s", WHOLE))
    assert found == LOG[:3] and "longer than what is read at once" in missing


def test_names_that_point_outside_write_nothing_outside(tmp_path: Path) -> None:
    out = tmp_path / "out"
    kept = Store.create(out, Program(path="../../../../etc/passwd"))
    name = "../../../x"
    kernels = tuple(Kernel(frame=name, part="inference", name=each, language=name, source="int f();") for each in NAMES)
    for event in (
        LOG[0],
        events.RunStarted(run=-1, program=PROGRAM, target=Target()),
        events.FrameStarted(run=1, frame=Frame(name, name, name, 1)),
        events.FrameStarted(run=1, frame=Frame("..", name, name, 1)),
        events.GraphCaptured(run=1, graph=Graph(GraphId(name, "dynamo"), (), "x")),
        events.CodeCaptured(run=1, code=OutputCode(name, "inference", "wrapper", kernels)),
    ):
        kept.append(event)
    kept.close()
    assert kept.folder.parent == out and [path.name for path in tmp_path.iterdir()] == ["out"]
    (sources,) = kept.folder.glob("run-1/frame-*/kernels/inference")
    names = [path.name for path in sources.iterdir()]
    assert len(names) == len({name.casefold() for name in names}) == len(kernels)
    assert max(map(len, names)) < 100


def test_a_frame_that_was_linked_elsewhere_is_not_emptied(tmp_path: Path) -> None:
    kept = Store.create(tmp_path / "out", PROGRAM)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "file").write_text("mine")
    (kept.folder / "run-1").mkdir()
    (kept.folder / "run-1" / "frame-0_0").symlink_to(mine)
    kept.append(LOG[0])
    kept.append(LOG[3])
    kept.close()
    assert (mine / "file").read_text() == "mine"


@few
@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.binary(max_size=6)), min_size=1, max_size=4))
def test_whatever_bytes_are_changed_it_is_a_beginning_or_a_refusal(
    tmp_path: Path, changes: list[tuple[int, bytes]]
) -> None:
    content = WHOLE
    for at, data in changes:
        content = content[:at] + data + content[at + len(data) :]
    first = min(at for at, _ in changes)
    untouched = sum(len(b"".join(LINES[: count + 1])) <= first for count in range(len(LINES)))
    try:
        found, missing = reading.read(saved(tmp_path / "s", content))
    except OutputError:
        assert untouched == 0
        return
    assert found[:untouched] == LOG[:untouched]
    assert missing or len(found) <= len(LOG) + content.count(b"\n")


@few
@given(st.binary(max_size=200))
def test_whatever_follows_whole_events_they_are_read(tmp_path: Path, more: bytes) -> None:
    found, _ = reading.read(saved(tmp_path / "s", WHOLE + more))
    assert found[: len(LOG)] == LOG
