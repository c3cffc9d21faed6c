"""Programs of tests/real_programs behave under idbg as they do without it: those that need no other package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import compatibility

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("program", ["adam.py", "nested.py", "reduce_overhead.py"])
def test_a_real_program_is_unchanged_and_right(program: str) -> None:
    row = compatibility.measure(program, "cpu")
    assert row.note == ""
    assert row.plain is not None and row.run is not None and row.diff is not None
    assert row.run.status == row.plain.status == 0
    assert row.run.same_output, row.run
    assert row.diff.same_output, row.diff
    counts = [(each.graphs, each.breaks) for each in (row.plain, row.run, row.diff)]
    assert counts[0] == counts[1] == counts[2]
    assert row.diff.verdict == "passed", row.diff


def test_a_compared_program_goes_on_with_the_random_numbers_of_its_run(tmp_path: Path) -> None:
    command = [str(compatibility.FOLDER / "dropout.py")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    plain, diff = (
        subprocess.run([sys.executable, *idbg, *command], cwd=tmp_path, env=env, capture_output=True, text=True)
        for idbg in ([], ["-m", "idbg", "diff"])
    )
    assert (plain.returncode, diff.returncode) == (0, 0), diff.stderr
    assert len(plain.stdout.splitlines()) == 3
    assert compatibility.lacking(plain.stdout.splitlines(), diff.stderr) is None


def test_a_program_that_imports_its_function_runs() -> None:
    row = compatibility.measure("imported.py", "cpu")
    assert row.run is not None and row.diff is not None
    assert (row.run.verdict, row.diff.verdict) == ("compiled", "passed")


def test_a_program_that_fails_without_idbg_has_its_error_as_its_row() -> None:
    row = compatibility.measure("models.py no_such_model", "cpu")
    assert row.plain is None
    assert "KeyError: 'no_such_model'" in row.note
