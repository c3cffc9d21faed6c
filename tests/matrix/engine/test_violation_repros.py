"""Of violations of every rule at nodes of every kind, the repro shows the same in a process without the program."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import violating

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
LEAST = 90  # violations
SHARE = 0.98  # of them reproduce


def lines(folder: Path, *how: str, given: str = "") -> list[dict[str, object]]:
    done = subprocess.run(
        [sys.executable, violating.__file__, str(folder), *how],
        input=given,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def test_nearly_all_violations_reproduce(tmp_path: Path) -> None:
    written = lines(tmp_path)
    assert len(written) >= LEAST
    assert {each["program"] for each in written} >= violating.PROGRAMS.keys() - {"branches"}
    scripts = [str(each["script"]) for each in written if each["script"]]
    ended = {each["script"]: each for each in lines(tmp_path, "run", given="\n".join(scripts))}
    wrong = [(each, ended.get(each["script"])) for each in written if not shows(ended.get(each["script"]))]
    assert len(wrong) <= (1 - SHARE) * len(written), wrong


def shows(ended: dict[str, object] | None) -> bool:
    return ended is not None and ended["status"] == 1 and "REPRODUCED" in str(ended["printed"])
