"""A limit of the shell's is named with its size, and where there is none nothing is said."""

import subprocess
import sys
from pathlib import Path

import pytest

import idbg

SAID = "from idbg.format.limits import memory_limit; print(memory_limit())"


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ("ulimit -v unlimited", ""),
        ("ulimit -v 4194304", "the shell limits each process to 4 GiB of memory (ulimit -v, -d)"),
        ("ulimit -v 4194304; ulimit -d 2097152", "the shell limits each process to 2 GiB of memory (ulimit -v, -d)"),
    ],
)
def test_the_limit_of_memory_is_named(limits: str, said: str) -> None:
    command = ["sh", "-c", f'{limits}; exec "$0" -c "$1"', sys.executable, SAID]
    root = str(Path(idbg.__file__).parents[1])
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": root}, check=True)
    assert done.stdout.strip() == said
