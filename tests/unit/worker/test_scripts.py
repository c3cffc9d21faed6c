"""A script sees and does in a run what it does with `python FILE`: compared with that, line by line."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import idbg
from tests.harness.warm import COLD

# torch holds the globals of a function that it compiled for ever: a module lets Python's end be seen
COMPILES = "import torch\nmodel = torch.nn.Linear(3, 3)\ntorch.compile(model, backend='eager')(torch.ones(3))\n"
# What these scripts need of torch in plain Python, which takes seconds to import the whole
STAND_IN = """\
class nn:
    Linear = lambda *sizes: None

def compile(model, backend):
    return lambda x: x

def ones(size):
    pass
"""
SURROUNDINGS = """\
import os, sys
print(sys.stdin.read())
print(sorted(name for name in os.environ if name.startswith("IDBG")), os.environ.get("PYTHONPATH"), os.nice(0))
print(type(__builtins__), type(__loader__), __annotations__, __file__, __name__, __package__, __spec__)
"""
SEEN = """\
import subprocess, sys, threading
print(sys.flags.safe_path, threading.active_count(), [thread.name for thread in threading.enumerate()])
print(sys.path[0], sys.argv, subprocess._args_from_interpreter_flags())
"""
ENDS = """\
import atexit, threading, time

class Loud:
    def __del__(self):
        print("del")

loud = Loud()
atexit.register(print, "first")

@atexit.register
def second():
    print("second")

@atexit.register
def broken():
    raise ValueError("in a handler")

atexit.register(print, "never")
atexit.unregister(print)
atexit.register(lambda: print("third"))

def late():
    time.sleep(1)
    print("thread")

"""
LAST = "sys.stdout.flush()\nthreading.Thread(target=late).start()\n"


def both(folder: Path, text: str, *, whole: bool = False) -> tuple[tuple[int, str], tuple[int, str], dict[str, Any]]:
    """(exit status, stdout) of plain Python, of `idbg run`, and the latter's report. `whole`: plain Python imports
    torch, and no stand-in.
    """
    script = folder / "script.py"
    script.write_text(text)
    # unbuffered: from a buffer, Python loses what is printed as its last objects go; a run of ours does not
    environ = {**os.environ, "PYTHONPATH": str(Path(idbg.__file__).parents[1]), "PYTHONUNBUFFERED": "1"}

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        command, given = [sys.executable, *arguments], "fed\nby hand"
        return subprocess.run(
            command, input=given, text=True, capture_output=True, cwd=folder, env=environ | variables, timeout=300
        )

    stand_in = folder / "torch.py"
    if not whole:
        stand_in.write_text(STAND_IN)
    plain = run(str(script), **COLD)
    stand_in.unlink(missing_ok=True)
    ours = run("-m", "idbg", "run", str(script), "--backend", "eager", "--json")
    assert ours.stdout, ours.stderr
    report = json.loads(ours.stdout)
    return (plain.returncode, plain.stdout), (ours.returncode, report["output"]), report


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "status"),
    [("", 0), ("sys.exit(3)", 3), ("sys.exit()", 0), ("sys.exit('no')", 1), ("os._exit(0)", 0), ("os._exit(4)", 4)],
)
def test_a_script_ends_as_with_plain_python(tmp_path: Path, end: str, status: int, request: pytest.FixtureRequest):
    if end:
        request.getfixturevalue("warm")
    text = SURROUNDINGS + ENDS + COMPILES + LAST + end
    plain, ours, report = both(tmp_path, text, whole=not end)
    assert ours == plain
    assert ours[0] == status
    assert (report["verdict"], report["error"], report["exit_status"]) == (
        "failed" if status else "compiled",
        None,
        status,
    )
    assert report["frames"]
    assert end != "sys.exit('no')" or "no\nTraceback" in report["stderr"]


@pytest.mark.slow
def test_exit_handlers_run_also_when_the_script_raises(tmp_path: Path, warm: None):
    plain, ours, report = both(tmp_path, "import sys\n" + ENDS + COMPILES + LAST + "raise KeyError('mine')")
    assert ours == plain
    assert ours[0] == 1
    assert "mine" in report["error"]["message"]
    assert "in a handler" in report["stderr"]


CLOSES = (
    COMPILES
    + """
import os, sys
os.closerange(3, 256)
print("still here")
"""
)
FULL = (
    COMPILES
    + """
import sys
sys.stderr = None
sys.stdout = open("/dev/full", "w")
print("lost")
"""
)


@pytest.mark.slow
def test_a_script_that_closes_what_is_not_its_own_runs_to_its_end(tmp_path: Path) -> None:
    plain, ours, report = both(tmp_path, CLOSES)
    assert plain == ours == (0, "still here\n")
    assert report["verdict"] == "compiled" and report["frames"]


@pytest.mark.slow
def test_output_that_cannot_be_written_is_the_end_that_python_gives_it(tmp_path: Path, warm: None) -> None:
    plain, ours, report = both(tmp_path, FULL)
    assert plain[0] == ours[0] == 120
    assert "could not be written: [Errno 28]" in report["stderr"]


@pytest.mark.slow
def test_neither_our_flags_nor_our_threads_are_seen(tmp_path: Path):
    plain, ours, _ = both(tmp_path, SEEN + COMPILES + SEEN, whole=True)
    assert ours == plain and "False 1 ['MainThread']" in plain[1]
