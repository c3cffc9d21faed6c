"""`idbg kernel` tries an edited source in a saved session, and keeps what came of it there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """
import torch

def program():
    return lambda x: torch.relu(x) * 3.25 + 1, (torch.randn(64, 64),)
"""


def idbg(folder: Path, *args: str) -> tuple[int, str, str]:
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}/core:{ROOT}"}
    command = [sys.executable, "-m", "idbg", *args]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environ, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_a_source_is_written_edited_and_tried_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(PROGRAM)
    assert idbg(tmp_path, "run", "model.py", "--backend", "inductor")[0] == 0
    assert idbg(tmp_path, "kernel", "last", "fused", "--write", "k.cpp")[0] == 0
    source = (tmp_path / "k.cpp").read_text()
    broken = source.replace("3.25)", "3.25")
    (tmp_path / "broken.cpp").write_text(broken)
    line = next(number for number, text in enumerate(broken.splitlines(), 1) if "3.25;" in text)
    status, out, _ = idbg(tmp_path, "kernel", "last", "fused", "--edit", "broken.cpp")
    assert status == 1 and out.startswith(f"broken.cpp:{line}: ")

    (tmp_path / "crash.cpp").write_text(source.replace("{", "{ *(volatile int*)8 = 1;", 1))
    status, out, _ = idbg(tmp_path, "kernel", "last", "fused", "--edit", "crash.cpp")
    assert status == 1 and "SIGSEGV" in out

    (tmp_path / "same.cpp").write_text(source.replace("3.25", "6.5 / 2"))
    status, out, _ = idbg(tmp_path, "kernel", "last", "fused", "--edit", "same.cpp", "--json")
    tried = json.loads(out)
    assert status == 0 and (tried["file"], tried["version"]["version"]) == ("same.cpp", 3)
    assert tried["version"]["verdict"] == "agrees" and tried["version"]["max_abs"] == 0

    known = json.loads(idbg(tmp_path, "kernel", "last", "fused", "--json")[1])
    assert [each["verdict"] for each in known["versions"]] == ["failed", "failed", "agrees"]
    assert len(list((tmp_path / "debug_artifacts").iterdir())) == 1  # all of it is one session

    (tmp_path / "model.py").unlink()
    status, out, err = idbg(tmp_path, "kernel", "last", "fused", "--edit", "same.cpp")
    assert (status, out) == (2, "") and "no file model.py" in err and "Traceback" not in err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--edit", "nosuch.cpp"), "cannot read nosuch.cpp"),
        (("--edit", "latin.cpp"), "not UTF-8"),
        (("--edit", "/dev/zero"), "cannot read /dev/zero"),
        (("--edit", "model.py", "--write", "k.cpp"), "not allowed with"),
    ],
)
def test_a_file_that_cannot_be_tried_is_refused_in_one_sentence(tmp_path: Path, flags: tuple[str, ...], said: str):
    (tmp_path / "latin.cpp").write_bytes(b"\xe9")
    status, out, err = idbg(tmp_path, "kernel", "last", "k", *flags)
    assert (status, out) == (2, "") and said in err and "Traceback" not in err
