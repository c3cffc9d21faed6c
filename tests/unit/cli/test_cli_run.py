"""`idbg run`: one report on stdout, the rest on stderr, an exit status that means something, and a clean end."""

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import idbg.cli.one_run
from idbg import cli
from idbg.session.session import Session
from tests.harness.fake_sessions import FAKE_CHILD

MAIN = f"""
import functools, signal, sys, idbg.cli.one_run
from idbg import cli
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored from the start, and then stays so
from idbg.session.session import Session
idbg.cli.one_run.Session = functools.partial(Session, command=(sys.executable, {str(FAKE_CHILD)!r}))
sys.exit(cli.main())
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, a worker without torch, and no settings of the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    fake = functools.partial(Session, command=(sys.executable, str(FAKE_CHILD)))
    monkeypatch.setattr(idbg.cli.one_run, "Session", fake)
    return tmp_path


def program(folder: Path, how: str) -> str:
    (folder / f"{how}.py").write_text("")
    return f"{how}.py"


def started(folder: Path, how: str) -> subprocess.Popen[str]:
    """`idbg run` in a process of its own, once its program runs."""
    command = [sys.executable, "-c", MAIN, "run", program(folder, how), "--json"]
    process = subprocess.Popen(
        command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, PYTHONPATH=PATH)
    )
    assert process.stderr is not None
    while "behaving" not in process.stderr.readline():
        pass
    return process


PATH = os.pathsep.join([str(Path(idbg.cli.__file__).parents[2]), os.environ.get("PYTHONPATH", "")])


@pytest.mark.parametrize(
    ("how", "flags", "status"),
    [
        ("print", [], 0),
        ("violate", [], 0),
        ("violate", ["--strict"], 1),
        ("violate", ["--warn"], 0),
        ("fail", [], 1),
        ("fail", ["--warn"], 1),
        ("segfault", ["--warn"], 1),
        ("misuse", [], 1),
        ("no backend", [], 2),
    ],
)
def test_the_exit_status_says_what_came_of_the_run(folder: Path, how: str, flags: list[str], status: int) -> None:
    assert cli.main(["run", program(folder, how.replace(" ", "_")), *flags]) == status


def test_mock_strict_off_means_warn_and_the_command_line_wins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOCK_STRICT", "0")
    assert cli.main(["run", program(folder, "violate")]) == 0
    assert cli.main(["run", program(folder, "violate"), "--strict"]) == 1
    monkeypatch.setenv("MOCK_STRICT", "1")
    assert cli.main(["run", program(folder, "violate")]) == 1
    assert cli.main(["run", program(folder, "violate"), "--warn"]) == 0


def test_json_is_all_there_is_on_stdout(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    cli.main(["run", program(folder, "print"), "--json", "--", "--json", "-x"])
    written = capfdbinary.readouterr()
    report = json.loads(written.out)
    assert report["schema"] == "idbg.run/1"
    assert report["verdict"] == "compiled"
    assert report["output"] == "hello from stdout\n"
    assert report["program"]["argv"] == ["--json", "-x"]
    assert b"hello from stdout" in written.err


def test_without_json_the_programs_stdout_is_ours(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    cli.main(["run", program(folder, "print")])
    written = capfd.readouterr()
    assert written.out.startswith("hello from stdout\n") and "hello from stdout" not in written.err
    assert "print.py" in written.out.splitlines()[-2] + written.out.splitlines()[-1]


def test_text_is_for_people_and_says_where_the_session_is(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    cli.main(["run", program(folder, "print"), "--output", "there"])
    written = capfd.readouterr()
    assert "print.py" in written.out
    (session,) = (folder / "there").iterdir()
    assert f"session: {session}" in written.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope.py"], "no file nope.py"),
        (["prnit.py"], "did you mean print.py?"),
        ([""], "no program is named"),
        (["-m", ""], "no program is named"),
        (["print.py:nope"], "print.py defines no 'nope'"),
        (["print.py", "--device", "banana"], "there is no device 'banana'"),
        (["print.py", "--device", "cudaa:0"], "did you mean cuda?"),
        (["print.py", "--accelerator", "\udcff.toml"], "is not UTF-8"),
        (["."], ". is a folder"),
        (["notes.txt"], "is not a Python file"),
        (["print.py:no-name"], "is not the name of a function"),
        (["-m", "no_such_package.mod"], "there is no module no_such_package"),
        (["-m", "print.py"], "this is not a module's name"),
        (["print.py", "--accelerator", "mok"], "did you mean mock?"),
        (["print.py", "--accelerator", "bad.toml"], "bad.toml:2: "),
        (["print.py", "--output", "notes.txt"], "cannot write to the output folder notes.txt"),
        (["print.py", "--option", "x"], "an option is NAME=VALUE"),
    ],
)
def test_what_cannot_be_run_is_said_in_a_sentence_and_a_hint(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    program(folder, "print")
    (folder / "notes.txt").write_text("")
    (folder / "bad.toml").write_text("name = 'x'\nnmae = 'y'\n")
    assert cli.main(["run", *arguments]) == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert said in written.err
    assert "Traceback" not in written.err


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_full_disk_behind_stdout_is_one_sentence(folder: Path, flags: list[str]) -> None:
    command = [sys.executable, "-c", MAIN, "run", program(folder, "print_megabytes"), *flags]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, text=True, stdout=full, stderr=subprocess.PIPE, env=dict(os.environ, PYTHONPATH=PATH)
        )
    assert done.returncode == 1
    assert "idbg: cannot write to stdout: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


def test_strict_and_warn_exclude_each_other(folder: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["run", program(folder, "print"), "--strict", "--warn"])
    assert caught.value.code == 2


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_cancels_the_run_and_leaves_no_process(folder: Path, number: signal.Signals, status: int) -> None:
    process = started(folder, "sleep")
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == status
    assert (json.loads(out)["schema"], json.loads(out)["status"]) == ("idbg.error/1", status)
    assert not left_behind(folder)


def test_a_second_ctrl_c_kills_what_does_not_stop(folder: Path) -> None:
    process = started(folder, "ignore_SIGINT")
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not left_behind(folder)


def test_a_reader_that_leaves_is_no_error(folder: Path) -> None:
    process = started(folder, "chatter")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    with process.stderr:
        errors = process.stderr.read()
    assert process.wait(60) == 141
    assert "Traceback" not in errors and "BrokenPipe" not in errors


def left_behind(folder: Path) -> list[str]:
    """Command lines of processes that still stand in our folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd") == str(folder):
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return [line for line in found if "fake_child" in line]


def test_a_session_that_is_removed_meanwhile_is_no_success(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Removed(Session):
        def wait(self, timeout: float | None = None) -> bool:
            done = super().wait(timeout)
            shutil.rmtree(self.folder)
            return done

    monkeypatch.setattr(
        idbg.cli.one_run, "Session", functools.partial(Removed, command=(sys.executable, str(FAKE_CHILD)))
    )
    assert cli.main(["run", program(folder, "print")]) == 1
    err = capsys.readouterr().err
    assert "no session is kept" in err and "session: " not in err
    assert list((folder / "debug_artifacts").iterdir()) == []
