"""`idbg replay`: the answer of each script in each variant, in processes of their own, and what it exits with."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import idbg.cli
from idbg import cli
from idbg.replay.replay import read_answer

PATH = os.pathsep.join([str(Path(idbg.cli.__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
SIGN = "import sys\nSIGN = 'REPRODUCED'\n"
SAME = SIGN + "print('REPRODUCED LoweringException no lowering')\nsys.exit(1)\n"
GONE = SIGN + "sys.exit(0)\n"
OTHER = SIGN + "print('OTHER RuntimeError: out of memory')\nsys.exit(2)\n"
COMPILE = """
import sys
import traceback

import torch

def program(x):
    return x.sin().tan() + 1

def main():
    try:
        torch.compile(program, backend="inductor", options={"cpp_wrapper": False})(torch.ones(4))
    except Exception as error:
        traceback.print_exc()
        if "tan" in str(error):
            print("REPRODUCED RuntimeError tan")
            return 1
        print(f"OTHER {type(error).__name__}: {error}".partition(chr(10))[0])
        return 2
    return 0

from torch._inductor import lowering
def refuse(*args):
    raise RuntimeError("no tan here")
lowering.lowerings[torch.ops.aten.tan.default] = refuse

if __name__ == "__main__":
    sys.exit(main())
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def script(name: str, text: str) -> str:
    path = Path(name) / "repro.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("text", "status", "answer", "said"),
    [
        (SAME, 1, "same", "REPRODUCED LoweringException no lowering"),
        (GONE, 0, "gone", ""),
        (OTHER, 3, "different", "RuntimeError: out of memory"),
        (SIGN + "import no_such_package\n", 3, "not run", "ModuleNotFoundError: No module named 'no_such_package'"),
        (SIGN + "import os\nos.kill(os.getpid(), 11)\n", 3, "different", "killed by SIGSEGV"),
        (SIGN + "import time\ntime.sleep(60)\n", 3, "not run", "it took longer than 1 s, and was stopped"),
    ],
)
def test_an_answer_is_what_the_script_was_seen_to_do(
    text: str, status: int, answer: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["replay", script("a", text), "--timeout", "1" if "sleep" in text else "60", "--json"]) == status
    report = json.loads(capsys.readouterr().out)
    (row,) = report["replays"]
    assert (report["schema"], row["answer"], row["said"], row["change"]) == ("idbg.replay/1", answer, said, "")


@pytest.mark.parametrize(
    ("status", "printed", "answer"),
    [
        (1, "Traceback\nRuntimeError: x\n", "not run"),
        (1, "WRONG: buf0 is off\n", "same"),
        (0, "right: buf0\n", "gone"),
        (2, "OTHER InvalidBackend: Invalid backend: 'nope'\n", "not run"),
        (2, "usage: python\n", "different"),
        (-9, "", "different"),
        (None, "REPRODUCED x\n", "not run"),
    ],
)
def test_nothing_is_the_same_that_did_not_say_so(status: int | None, printed: str, answer: str) -> None:
    assert read_answer(status, printed)[0] == answer


def test_a_folder_of_repros_is_a_table_and_one_that_is_the_same_decides(capsys: pytest.CaptureFixture[str]) -> None:
    script("kept/a", SAME)
    script("kept/b", GONE)
    script("kept/b/passing", GONE)  # what a search leaves beside its script is asked only by name
    assert cli.main(["replay", "kept"]) == 1
    told = capsys.readouterr().out
    a, b = told.split("kept/b/repro.py\n")
    assert "the same failure in 1 of 2 runs" in a and "kept/a/repro.py\n" in a
    assert "✘ as it is  same" in a and "LoweringException no lowering" in a
    assert "✔ as it is  gone" in b and "passing" not in told


def test_variants_are_sorted_by_a_column_and_an_unknown_one_is_refused_before_anything_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failing, passing = script("kept/a", SAME), script("kept/b", GONE)
    assert cli.main(["replay", failing, passing, "--backend", "eager", "--sort", "variant:down"]) in (1, 3)
    told = capsys.readouterr().out
    assert told.index("backend eager") < told.index("as it is")
    assert cli.main(["replay", failing, "--sort", "speed"]) == 2
    said = capsys.readouterr()
    assert "the columns are variant, answer, exit, took" in said.err and said.out == ""


def test_another_python_runs_it_and_one_that_cannot_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    path = script("a", SIGN + f"print('REPRODUCED')\nsys.exit(1 if sys.executable == {sys.executable!r} else 0)\n")
    link = Path("other/bin/python")
    link.parent.mkdir(parents=True)
    link.symlink_to(sys.executable)
    assert cli.main(["replay", path, "--python", "other", "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)["replays"]
    assert [(row["change"], row["answer"]) for row in rows] == [("", "same"), ("python", "gone")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope.py"], "there is no nope.py"),
        (["empty"], "there is no repro.py in empty"),
        (["mine.py"], "mine.py is no repro of idbg's"),
        (["a/repro.py", "--python", "/no/python"], "there is no Python /no/python"),
        (["a/repro.py", "--accelerator", "mok"], "did you mean mock?"),
        (["a/repro.py", "--option", "x"], "an option is NAME=VALUE"),
        (["a/repro.py", "--timeout", "0"], "--timeout is 0"),
        (["a/repro.py", "--", "x"], "a repro takes no arguments"),
    ],
)
def test_bad_usage_is_one_clear_sentence(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    script("a", SAME)
    Path("empty").mkdir()
    Path("mine.py").write_text("print('hello')\n")
    assert cli.main(["replay", *arguments]) == 2
    told = capsys.readouterr()
    assert said in told.err and told.out == "" and "Traceback" not in told.err


def test_ctrl_c_ends_what_runs_and_tells_what_is_known() -> None:
    script("kept/a", SAME)
    sleeping = script(
        "kept/b", SIGN + "import os, time\nprint(os.getpid(), file=open('pid', 'w'), flush=True)\ntime.sleep(60)\n"
    )
    command = [sys.executable, "-m", "idbg", "replay", "kept"]
    environ = dict(os.environ, PYTHONPATH=PATH)
    process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ)
    deadline = time.monotonic() + 60
    while not (Path("pid").exists() and Path("pid").read_text().strip()):
        assert time.monotonic() < deadline, sleeping
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "✘ as it is  same" in out
    with pytest.raises(ProcessLookupError):
        os.kill(int(Path("pid").read_text()), 0)


def test_a_full_disk_is_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    path = script("a", f"{GONE}\ntorch.compile(print)\n")
    monkeypatch.setattr(Path, "write_text", full)
    assert cli.main(["replay", path, "--backend", "eager"]) == 3
    told = capsys.readouterr()
    assert re.search(r"as it is +gone", told.out) and "Traceback" not in told.err
    assert f"{path} cannot be replayed: No space left on device" in told.out


@pytest.mark.slow
@pytest.mark.usefixtures("warm")
def test_a_failed_compile_is_gone_with_another_backend_and_the_file_stays(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = script("a", COMPILE)
    arguments = ["--backend", "eager", "nope", "--option", "epilogue_fusion=false", "--json"]
    assert cli.main(["replay", path, *arguments]) == 1
    rows = json.loads(capsys.readouterr().out)["replays"]
    told = {f"{row['change']} {row['value']}".strip(): row["answer"] for row in rows}
    assert told == {
        "": "same",
        "backend eager": "gone",
        "backend nope": "not run",
        "options epilogue_fusion=false": "same",
    }, rows
    assert rows[1]["note"] == "without its options"
    assert Path(path).read_text() == COMPILE and [each.name for each in Path("a").iterdir()] == ["repro.py"]
