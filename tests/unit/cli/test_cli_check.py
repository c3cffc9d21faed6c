"""`idbg check`: one report on stdout, the rest on stderr, and an exit status that says whether anything takes it."""

import functools
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import idbg
import idbg.cli.one_run
from idbg import cli
from idbg.accelerators import registry
from idbg.session.session import Session

pytestmark = pytest.mark.usefixtures("warm")

ROOT = Path(__file__).parents[3]

# A worker without torch: it has captured what the recording of examples/mlp_train.py has, and then does as the
# program's name says.
CHILD = f"""
import os, sys, time
from idbg.schema import event_log, events
from idbg.schema.programs import Failure
from idbg.worker import protocol
from msgspec.structs import replace
requests, out = os.fdopen(int(sys.argv[1]), "rb"), int(sys.argv[2])
say = lambda event: os.write(out, event_log.encode(event) + b"\\n")
say(events.WorkerStarted(pid=os.getpid(), torch="9.9", python="3", devices=("cpu",), seconds=0.0))
for line in requests:
    request = protocol.decode(line)
    how, failure = os.path.basename(request.program.path), None
    print("hello from", how, "on", request.target.backend, flush=True)
    try:
        if how == "sleep.py":
            time.sleep(60)
        if how != "nothing.py":
            with open({str(ROOT / "tests/recordings/mlp_train.jsonl")!r}, "rb") as log:
                for event in map(event_log.decode, log):
                    if isinstance(event, events.FrameStarted | events.GraphCaptured):
                        say(replace(event, run=request.run))
        if how == "fail.py":
            failure = Failure(kind="user", type="ValueError", message="the program raised")
    except KeyboardInterrupt:
        failure = Failure(kind="cancelled", message="cancelled")
    say(events.RunEnded(run=request.run, verdict="failed" if failure else "clean", seconds=0.0, failure=failure))
"""
FLOAT16 = '[[rules]]\nkind = "dtype"\nallowed = ["float16"]\n'
PADS = '[[rules]]\nkind = "alignment"\nmultiple = 64\ndims = "last"\nseverity = "pad"\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, a worker without torch, and no settings of the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("plain", "fail", "nothing", "sleep"):
        (tmp_path / f"{name}.py").write_text("")
    (tmp_path / "fp16.toml").write_text(FLOAT16)
    (tmp_path / "pads.toml").write_text(PADS)
    (tmp_path / "any.toml").write_text('name = "any"\n')
    fake = functools.partial(Session, command=(sys.executable, "-c", CHILD))
    monkeypatch.setattr(idbg.cli.one_run, "Session", fake)
    return tmp_path


def asked(*names: str) -> list[str]:
    return [word for name in names for word in ("--accelerator", f"{name}.toml")]


@pytest.mark.parametrize(
    ("program", "accelerators", "status"),
    [
        ("plain", ["any"], 0),
        ("plain", ["pads"], 0),
        ("plain", ["fp16"], 1),
        ("plain", ["fp16", "pads"], 0),
        ("fail", ["any"], 1),
        ("nothing", ["any"], 1),
    ],
)
def test_the_exit_status_says_whether_anything_takes_it(program: str, accelerators: list[str], status: int) -> None:
    assert cli.main(["check", f"{program}.py", *asked(*accelerators)]) == status


def test_json_is_all_there_is_on_stdout(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert cli.main(["check", "plain.py", *asked("fp16", "pads", "fp16"), "--json", "--", "--json", "-x"]) == 0
    written = capfdbinary.readouterr()
    told = json.loads(written.out)
    assert told["schema"] == "idbg.check/1" and told["program"]["argv"] == ["--json", "-x"]
    assert [(each["name"], each["verdict"]) for each in told["accelerators"]] == [
        ("fp16.toml", "reject"),
        ("pads.toml", "pad"),
    ]
    assert b"hello from plain.py on mock" in written.err


def test_with_no_accelerator_named_all_presets_are_asked(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    cli.main(["check", "plain.py", "--json"])
    told = json.loads(capfdbinary.readouterr().out)
    assert sorted(each["name"] for each in told["accelerators"]) == sorted(registry.names())


@pytest.mark.parametrize(
    ("stage", "backend", "stages"),
    [
        ("aten", "mock", {"forward", "backward"}),
        ("dynamo", "eager", {"dynamo"}),
        ("post_grad", "inductor", {"post_grad"}),
    ],
)
def test_the_stage_says_which_graphs_and_the_program_goes_only_as_far(
    stage: str, backend: str, stages: set[str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    cli.main(["check", "plain.py", *asked("any"), "--stage", stage, "--json"])
    written = capfdbinary.readouterr()
    assert {graph["stage"] for graph in json.loads(written.out)["graphs"]} == stages
    assert f"on {backend}".encode() in written.err


def test_what_was_captured_before_a_failure_is_told_with_it(capfd: pytest.CaptureFixture[str]) -> None:
    cli.main(["check", "fail.py", *asked("fp16", "pads")])
    text = capfd.readouterr().out
    assert "the program raised" in text and "◇ pads.toml takes it with padding" in text


def test_text_is_for_people_and_says_where_the_session_is(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    cli.main(["check", "plain.py", *asked("fp16"), "--output", "there"])
    written = capfd.readouterr()
    assert written.out.startswith("✘ fp16.toml rejects it   plain.py")
    (session,) = (folder / "there").iterdir()
    assert f"session: {session}" in written.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope.py"], "no file nope.py"),
        (["plain.py", "--accelerator", "mok"], "did you mean mock?"),
        (["plain.py", *asked("any", "bad", "pads")], "bad.toml:2: "),
        (["plain.py", *asked("any", "none")], "there is no file none.toml"),
        (["plain.py", "--accelerator", ""], "there is no accelerator"),
        (["plain.py", "--accelerator", "\udcff.toml"], "is not UTF-8"),
        (["plain.py", "--device", "banana"], "there is no device 'banana'"),
        (["plain.py", "--sort", "banana"], "the columns are accelerator, verdict, reject"),
    ],
)
def test_what_cannot_be_checked_is_said_before_anything_runs(
    folder: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    (folder / "bad.toml").write_text("name = 'x'\nnmae = 'y'\n")
    assert cli.main(["check", *arguments]) == 2
    written = capfd.readouterr()
    assert (written.out, said in written.err) == ("", True)
    assert "hello" not in written.err and "Traceback" not in written.err
    assert not (folder / "debug_artifacts").exists()


def test_a_glob_that_matches_no_op_is_a_warning_at_its_line(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "odd.toml").write_text('[[rules]]\nkind = "unsupported_ops"\ndeny = ["convolutoin"]\n')
    assert cli.main(["check", "plain.py", *asked("odd")]) == 0
    assert 'idbg: odd.toml:3: no op of torch matches "convolutoin"' in capfd.readouterr().err


def test_an_unknown_stage_is_bad_usage() -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["check", "plain.py", "--stage", "joint"])
    assert caught.value.code == 2


MAIN = f"""
import functools, sys, idbg.cli.one_run
from idbg import cli
from idbg.session.session import Session
idbg.cli.one_run.Session = functools.partial(Session, command=(sys.executable, "-c", {CHILD!r}))
sys.exit(cli.main())
"""
ENVIRON = dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT / "core"), os.environ.get("PYTHONPATH", "")]))


def test_ctrl_c_ends_it_with_no_report() -> None:
    command = [sys.executable, "-c", MAIN, "check", "sleep.py", *asked("any"), "--json"]
    process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRON)
    assert process.stderr is not None
    while "hello" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, json.loads(out)["schema"]) == (130, "idbg.error/1")


def test_a_full_disk_behind_stdout_is_one_sentence() -> None:
    command = [sys.executable, "-c", MAIN, "check", "plain.py", *asked("any")]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, text=True, stdout=full, stderr=subprocess.PIPE, env=ENVIRON)
    assert done.returncode == 1
    assert "idbg: cannot write to stdout: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


def test_a_reader_that_leaves_is_no_error() -> None:
    command = [sys.executable, "-c", MAIN, "check", "plain.py", *asked("any")]
    process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRON)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    with process.stderr:
        errors = process.stderr.read()
    assert process.wait(60) == 141
    assert "Traceback" not in errors and "BrokenPipe" not in errors


def test_a_real_program_is_run_once_and_checked_against_each(folder: Path) -> None:
    """With torch, and as the Python API; no rules are in force while it runs."""
    (folder / "real.py").write_text(
        textwrap.dedent("""
        import torch

        def program():
            print("made")
            model = torch.nn.Sequential(torch.nn.Linear(10, 7), torch.nn.ReLU())
            return model, (torch.randn(4, 10),), lambda out: out.sum()
        """)
    )
    found = idbg.check("real.py", accelerators=["fp16.toml", "pads.toml", "any.toml"])
    assert found.failure is None and found.run.violations == []
    assert {graph.id.stage for graph in found.graphs} == {"forward", "backward"}
    assert [each.verdict for each in found.accelerators] == ["reject", "pad", "accept"]
    assert "".join(each.text for each in found.run.output).count("made") == 1
    assert found.accelerators[1].waste.wasted_bytes > 0


def test_the_python_api_refuses_a_stage_that_is_none() -> None:
    with pytest.raises(idbg.IdbgError, match="no stage 'joint'"):
        idbg.check("plain.py", stage="joint")
