"""`idbg bench`: rows measured in processes of their own, kept, gone on with, and compared."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from idbg import cli
from idbg.bench.history import BenchHistory

pytestmark = pytest.mark.usefixtures("warm")

GOOD = """
import torch
def program(batch: int = 4):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 5), torch.nn.Tanh()).eval(), (torch.randn(batch, 8),)
"""
WRONG = """
import torch
from tests.harness.traced import is_traced
def program():
    def model(x):
        return x + 1 if is_traced() else x + 2
    return model, (torch.ones(3),)
"""
DIES = """
import os, torch
def program():
    def model(x):
        print("the last words", flush=True)
        os._exit(7)
    return model, (torch.ones(3),)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, and nothing of the user's."""
    monkeypatch.chdir(tmp_path)
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    return tmp_path


def bench(*args: str) -> int:
    return cli.main(["bench", *args, "--database", "kept.sqlite", "--runs", "5"])


def rows(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, object]]:
    found = json.loads(capsys.readouterr().out)
    return {row["backend"]: row for row in found["rows"]}


@pytest.mark.slow
def test_a_program_is_measured_on_each_backend(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "model.py").write_text(GOOD)
    (folder / "rules.toml").write_text('name = "by 16"\n[[rules]]\nkind = "alignment"\nmultiple = 16\n')
    options = (
        "--accelerator",
        "rules.toml",
        "--backend",
        "mock",
        "--backend",
        "eager",
        "--batch",
        "6",
        "--json",
        "--csv",
        "rows.csv",
    )
    assert bench("model.py", *options, "--kernels") == 0
    told = json.loads(capsys.readouterr().out)
    found = {row["backend"]: row for row in told["rows"]}
    (kernels,) = told["kernels"]
    assert kernels["backend"] == "mock" and "no kernel of Inductor's ran" in kernels["reason"]
    assert list(found) == ["eager", "mock"]
    eager, mock = found["eager"], found["mock"]
    assert eager["cold_compile_s"] is None and eager["speedup"] is None and eager["diff"] is None
    assert mock["diff"] == "passed" and mock["graphs"] == 1 and mock["breaks"] == 0
    assert isinstance(mock["violations"], int) and mock["violations"] > 0  # 5 is no multiple of 16
    assert all(isinstance(mock[name], float) and mock[name] > 0 for name in ("cold_compile_s", "warm_compile_s"))
    latency, slower = eager["latency_ms"], mock["latency_ms"]
    assert isinstance(latency, dict) and isinstance(slower, dict) and len(latency["samples"]) == 5
    assert mock["speedup"] == latency["median"] / slower["median"]
    assert eager["items_per_s"] == 6 / latency["median"] * 1e3
    assert len((folder / "rows.csv").read_text().splitlines()) == 3
    assert bench("--compare", "--json") == 0  # of what was measured last, with nothing before it
    assert list(rows(capsys)) == ["eager", "mock"]


@pytest.mark.slow
def test_wrong_numbers_a_death_and_a_hang_are_no_pass(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "wrong.py").write_text(WRONG)
    (folder / "dies.py").write_text(DIES)
    (folder / "hangs.py").write_text(DIES.replace("os._exit(7)", "import time; time.sleep(1000)"))
    assert bench("wrong.py", "--backend", "aot_eager") == 1
    told = capsys.readouterr().out
    assert "PASS" not in told and "1 tensor wrong: out" in told
    assert bench("dies.py", "--backend", "eager", "--json") == 1
    assert rows(capsys)["eager"]["reason"] == "warm: the process exited with status 7: the last words"
    assert bench("hangs.py", "--backend", "eager", "--json", "--timeout", "8") == 1
    assert rows(capsys)["eager"]["reason"] == "warm: it took longer than 8 s, and was stopped"


@pytest.mark.slow
def test_an_interrupted_suite_keeps_its_rows_and_goes_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "model.py").write_text(GOOD)
    (folder / "slow.py").write_text(DIES.replace("os._exit(7)", "import time; time.sleep(1000)"))
    command = [sys.executable, "-m", "idbg", "bench", "model.py", "slow.py", "--backend", "eager", "--runs", "5"]
    process = subprocess.Popen(
        [*command, "--database", "kept.sqlite"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    told = ""
    while "slow.py" not in told:
        told += process.stderr.readline()
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "1 of 2 rows are kept; --resume continues" in rest
    assert not _running("slow.py")
    (folder / "slow.py").write_text(GOOD)
    assert bench("--resume", "--json") == 0
    history = BenchHistory(folder / "kept.sqlite")
    assert [row.program for row in history.rows(1)] == ["model.py", "slow.py"] and history.suites()[0].done
    assert cli.main(["bench", "--resume", "--database", "kept.sqlite"]) == 2


def _running(text: str) -> bool:
    """Whether a process still has this on its command line."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text in entry.read_text() and int(entry.parent.name) != os.getpid():
                return True
        except OSError:
            continue
    return False


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("model.py", "--batch", "0"), "--batch is 0"),
        (("model.py", "--device", "cpuu"), "there is no device 'cpuu'"),
        (("missing.py",), "missing.py"),
        (("--model", "nosuch"), "there is no model 'nosuch'"),
        ((), "no program is named"),
        (("--compare",), "nothing was measured yet"),
        (("--resume",), "no suite was interrupted"),
        (("model.py", "--compare", "nightly"), "there is no suite 'nightly'"),
    ],
)
def test_what_means_nothing_is_refused_before_anything_runs(
    folder: Path, capsys: pytest.CaptureFixture[str], args: tuple[str, ...], said: str
) -> None:
    (folder / "model.py").write_text(GOOD)
    assert bench(*args) == 2
    assert said in capsys.readouterr().err


def test_no_runs_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "model.py").write_text(GOOD)
    assert cli.main(["bench", "model.py", "--runs", "0"]) == 2
    assert "--runs is 0; " not in (told := capsys.readouterr().err) and "--runs is 0" in told


def test_the_rows_are_kept_in_the_folder_that_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "--resume", "--output", "kept"]) == 2
    assert (folder / "kept" / "bench.sqlite").is_file()
    with pytest.raises(SystemExit):
        cli.main(["bench", "--output", "kept", "--database", "rows.sqlite"])
    assert "not allowed with" in capsys.readouterr().err
