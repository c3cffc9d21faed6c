"""`idbg watch`: a check for each edit, with what is new and what went; nothing stops it but a signal."""

import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import idbg.cli.one_run
from idbg import cli
from idbg.accelerators.watch import RulesFile
from idbg.cli import watching
from idbg.cli.one_run import open_session
from idbg.cli.watching import Checked, Watch, headline, lines, report_of, screen
from idbg.config.arguments import Request
from idbg.config.settings import Settings
from idbg.schema import events
from idbg.schema.programs import Program, Target
from idbg.schema.runs import fold
from idbg.session import program_files
from idbg.session.reading import load
from idbg.session.session import Session
from tests.harness.fake_sessions import until
from tests.harness.hostile import TEXT, hostile

ROOT = Path(__file__).parents[3]
# A worker without torch: what it captures is recorded, and the program's text says how it goes.
CHILD = f"""
import os, sys, time
from pathlib import Path
from idbg.checking.check import recheck
from idbg.schema import event_log, events
from idbg.schema.programs import Failure
from idbg.schema.runs import Run
from idbg.worker import protocol
from msgspec.structs import replace
requests, out = os.fdopen(int(sys.argv[1]), "rb"), int(sys.argv[2])
say = lambda event: os.write(out, event_log.encode(event) + b"\\n")
say(events.WorkerStarted(pid=os.getpid(), torch="9.9", python="3", devices=("cpu",), seconds=0.0))
for line in requests:
    request, failure = protocol.decode(line), None
    how = Path(request.program.cwd, request.program.path).read_text()
    try:
        if "hang" in how:
            Path(request.program.cwd, "hangs").touch()
            time.sleep(60)
        run = Run(request.run, request.program, request.target, 0.0)
        with open({str(ROOT / "tests/recordings/mlp_train.jsonl")!r}, "rb") as log:
            for event in map(event_log.decode, log):
                if isinstance(event, events.FrameStarted | events.GraphCaptured):
                    event = replace(event, run=request.run)
                    run.apply(event)
                    say(event)
        say(events.ViolationsFound(run=request.run, violations=tuple(recheck(run, request.target.rules).violations)))
        if "(((" in how:
            failure = Failure("user", "'(' was never closed", type="SyntaxError", file=request.program.path, line=1)
    except KeyboardInterrupt:
        failure = Failure(kind="cancelled", message="cancelled")
    say(events.RunEnded(run=request.run, verdict="failed" if failure else "clean", seconds=0.0, failure=failure))
"""
FLOAT16 = '[[rules]]\nkind = "dtype"\nallowed = ["float16"]\n'
LAYOUT = '[[rules]]\nkind = "layout"\n'
ANY = 'name = "any"\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program and rules, and quick looks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(watching, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(program_files, "SETTLE_SECONDS", 0.001)
    monkeypatch.setattr("idbg.accelerators.watch.POLL_SECONDS", 0.02)
    monkeypatch.setattr("idbg.accelerators.watch.SETTLE_SECONDS", 0.001)
    (tmp_path / "model.py").write_text("import part\n")
    (tmp_path / "part.py").write_text("")
    (tmp_path / "npu.toml").write_text(LAYOUT)
    fake = functools.partial(Session, command=(sys.executable, "-c", CHILD))
    monkeypatch.setattr(idbg.cli.one_run, "Session", fake)
    return tmp_path


def write(name: str, text: str) -> Callable[[], None]:
    def edit() -> None:
        Path(name).write_text(text)

    return edit


def renamed(name: str, text: str) -> Callable[[], None]:
    """As editors do: another file is written, and gets the name."""

    def edit() -> None:
        Path(f"{name}~").write_text(text)
        os.replace(f"{name}~", name)

    return edit


def watched(
    *edits: Callable[[], None], answer: Callable[[], None] = lambda: None
) -> tuple[list[Checked], list[str], list[events.SessionEvent]]:
    """What is told of a watch in which each edit follows on a check, what else is said, and what happened. `answer` is
    the edit that follows on what else is said.
    """
    checks: list[Checked] = []
    notes: list[str] = []
    waiting = iter(edits)

    def told(checked: Checked) -> None:
        checks.append(checked)
        next(waiting, lambda: None)()

    def noted(text: str) -> None:
        notes.append(text)
        answer()

    program, target = Program("model.py", cwd=os.getcwd()), Target(backend="mock", accelerator="npu.toml")
    with open_session(Request(program, target, Settings(output="out"))) as session:
        Watch(session, told, noted).go(len(edits) + 1)
        happened = session.events
    return checks, notes, happened


def kinds(found: tuple[object, ...]) -> set[str]:
    return {each.rule for each in found}  # type: ignore[attr-defined]


def test_an_edit_of_the_program_is_compiled_and_what_is_new_and_gone_is_told() -> None:
    checks, _, happened = watched(write("model.py", "((("), renamed("model.py", "x = 1\n"))
    assert [each.run.verdict for each in checks] == ["violations", "failed", "violations"]
    assert [kinds(each.new) for each in checks] == [{"layout"}, {"user"}, set()]
    assert [kinds(each.gone) for each in checks] == [set(), set(), {"user"}]
    assert [each.because for each in checks] == [(), (str(Path("model.py").absolute()),)] * 1 + [checks[1].because]
    assert sum(isinstance(event, events.RunStarted) for event in happened) == 3


def test_an_edit_of_the_rules_is_asked_of_the_same_graphs() -> None:
    checks, _, happened = watched(renamed("npu.toml", FLOAT16), write("npu.toml", ANY))
    assert [kinds(each.new) for each in checks] == [{"layout"}, {"dtype"}, set()]
    assert [kinds(each.gone) for each in checks] == [set(), {"layout"}, {"dtype"}]
    assert [each.compiled for each in checks] == [True, False, False]
    assert [each.run.verdict for each in checks] == ["violations", "violations", "compiled"]
    assert sum(isinstance(event, events.RunStarted) for event in happened) == 1


def test_a_watch_that_goes_on_holds_the_last_runs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "KEPT_RUNS", 1)
    _, _, happened = watched(*(write("model.py", f"x = {number}\n") for number in range(3)))
    captured = [event.run for event in happened if isinstance(event, events.GraphCaptured)]
    assert set(captured) == {4}
    assert [event.run for event in happened if isinstance(event, events.RunEnded)] == [1, 2, 3, 4]
    [folder] = Path("out").iterdir()
    assert {event.run for event in load(folder) if isinstance(event, events.GraphCaptured)} == {1, 2, 3, 4}


def test_rules_that_are_none_are_said_and_those_before_stay() -> None:
    refused = renamed("npu.toml", "[[rules]]\nkind = 3\n")
    checks, notes, _ = watched(refused, answer=renamed("npu.toml", FLOAT16))
    assert [kinds(each.found) for each in checks] == [{"layout"}, {"dtype"}]
    assert re.match(r"npu\.toml:2: .*: the previous rules stay in force$", notes[0])


def test_a_module_that_is_imported_is_watched_too() -> None:
    checks, _, _ = watched(write("part.py", "y = 2\n"))
    assert checks[1].because == (str(Path("part.py").absolute()),)


def test_what_holds_the_same_is_no_edit() -> None:
    def edit() -> None:
        write("model.py", "import part\n")()
        threading.Timer(0.3, write("part.py", "z = 3\n")).start()

    checks, _, _ = watched(edit)
    assert checks[1].because == (str(Path("part.py").absolute()),)


def test_a_file_that_is_gone_is_waited_for() -> None:
    checks, notes, _ = watched(Path("model.py").unlink, answer=write("model.py", "x = 2\n"))
    assert len(checks) == 2
    assert notes == ["model.py is not there: waiting for it"]


def test_an_edit_while_it_compiles_begins_anew() -> None:
    def edit() -> None:
        Path("model.py").write_text("hang\n")
        threading.Thread(target=edit_again).start()

    def edit_again() -> None:
        until(Path("hangs").exists)
        renamed("model.py", "x = 3\n")()

    checks, _, happened = watched(edit)
    assert checks[1].run.verdict == "violations"
    assert checks[1].run.number == 3
    ended = [event for event in happened if isinstance(event, events.RunEnded)]
    assert [event.failure.kind if event.failure else "" for event in ended] == ["", "cancelled", ""]


def test_strict_rules_are_compiled_again() -> None:
    checks: list[Checked] = []

    def told(checked: Checked) -> None:
        checks.append(checked)
        write("npu.toml", FLOAT16)()

    target = Target(backend="mock", accelerator="npu.toml", strict=True)
    request = Request(Program("model.py", cwd=os.getcwd()), target, Settings(output="out"))
    with open_session(request) as session:
        Watch(session, told, print).go(2)
    assert [each.compiled for each in checks] == [True, True]
    assert kinds(checks[1].found) == {"dtype"}


@pytest.mark.parametrize(("rules", "status"), [(ANY, 0), (FLOAT16, 1), (FLOAT16 + 'severity = "slow"\n', 0)])
def test_after_so_many_checks_the_status_is_that_of_the_last(rules: str, status: int, capfd) -> None:
    Path("npu.toml").write_text(rules)
    assert cli.main(["watch", "model.py", "--accelerator", "npu.toml", "--checks", "1", "--json"]) == status
    [line] = capfd.readouterr().out.splitlines()
    report = json.loads(line)
    assert report["schema"] == "idbg.watch/1"
    assert (report["check"], report["compiled"], report["because"]) == (1, True, [])
    assert (report["errors"] > 0) == bool(status)
    assert len(report["new"]) == report["found"]


def test_bad_usage_is_refused(capfd) -> None:
    assert cli.main(["watch", "model.py", "--checks", "-1"]) == 2
    assert cli.main(["watch", "nothing.py"]) == 2
    assert "no file nothing.py" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("text", "moment", "number"),
    [
        ("", events.RunEnded, signal.SIGINT),  # it waits for an edit
        ("hang", events.WorkerStarted, signal.SIGINT),  # it compiles
        ("", events.SessionOpened, signal.SIGINT),  # it starts
        ("", events.RunEnded, signal.SIGTERM),
    ],
)
def test_a_signal_ends_it_at_any_moment_and_leaves_no_worker(
    folder: Path, text: str, moment: type, number: signal.Signals
) -> None:
    (folder / "model.py").write_text(text)
    script = f"""
        import functools, sys
        import idbg.cli.one_run
        from idbg.session.session import Session
        child = {f"{CHILD}# {folder}"!r}
        idbg.cli.one_run.Session = functools.partial(Session, command=(sys.executable, "-c", child))
        sys.exit(idbg.cli.main(["watch", "model.py", "--accelerator", "npu.toml", "--output", "out"]))
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder) as process:
        deadline = time.monotonic() + 60
        while not any(isinstance(event, moment) for event in _events(folder)):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(number)
        process.wait(60)
    assert process.returncode == 128 + number
    assert not _alive(str(folder))


def test_a_signal_while_the_watching_thread_starts_leaves_it_closable(monkeypatch: pytest.MonkeyPatch) -> None:
    watching = RulesFile(lambda path, text: None, lambda path, text, error: None)

    def interrupted(thread: threading.Thread) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        watching.start()
    watching.stop()


def _alive(marker: str) -> list[str]:
    """The command lines of processes that have it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_bytes().decode(errors="replace"))
    return [line for line in found if marker in line]


def _events(folder: Path) -> list[events.SessionEvent]:
    found = list(folder.glob("out/*/events.jsonl"))
    return load(found[0].parent) if found and b"\n" in found[0].read_bytes() else []


def checked(history: str = TEXT, count: int = 1) -> Checked:
    from idbg.views.diagnostics import diagnostics

    run = hostile(history).runs[1]
    found = tuple(diagnostics(run)) * count
    return Checked(2, (f"/x/{TEXT}.py",), True, run, found, found[::2], found[1::2], 1.0, 3)


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (40, 10), (200, 60)])
def test_a_screenful_fits_the_screen_and_obeys_nobody(columns: int, rows: int) -> None:
    told = list(screen(checked(count=30), columns, rows))
    assert len(told) < rows
    for line in told:
        assert len(line) <= columns
        assert line.isprintable()


def test_lines_obey_nobody_and_json_is_strict() -> None:
    told = list(lines(checked()))
    assert all(line.isprintable() for line in told)
    assert "check 2" in told[0]
    from idbg.schema import strict_json

    assert json.loads(strict_json.encode(report_of(checked(), 1.0)))["check"] == 2


def test_the_headline_says_why_and_how() -> None:
    run = fold(()).last or hostile("x").runs[1]
    one = Checked(3, ("/a/model.py",), False, run, (), (), (), 0.25, 2)
    assert re.fullmatch(r"✘ check 3: .+, 0\.2 s, not compiled again; /a/model\.py edited", headline(one))


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real worker."""
    monkeypatch.setattr(idbg.cli.one_run, "Session", Session)


PROGRAM = """
import torch
from part import scale

def program():
    return torch.nn.Linear(4, 4).to(torch.float64 if scale else torch.float32), (torch.ones(4, 4){cast},)
"""


@pytest.mark.slow
@pytest.mark.usefixtures("warm", "real")
def test_a_real_program_is_watched() -> None:
    Path("part.py").write_text("scale = 0\n")
    Path("model.py").write_text(PROGRAM.format(cast=""))
    Path("npu.toml").write_text('[[rules]]\nkind = "dtype"\nallowed = ["float32"]\n')

    def wide() -> None:
        renamed("part.py", "scale = 1\n")()
        renamed("model.py", PROGRAM.format(cast=".double()"))()

    checks, _, _ = watched(write("model.py", "def program(:\n"), wide, write("npu.toml", ANY))
    assert [each.run.verdict for each in checks] == ["compiled", "failed", "violations", "compiled"]
    assert [each.compiled for each in checks] == [True, True, True, False]
    assert kinds(checks[1].new) == {"user"}
    assert kinds(checks[2].new) == {"dtype"}
    assert {Path(each.file).name for each in checks[2].found} <= {"model.py", ""}
