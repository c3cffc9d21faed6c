"""A run of a real program that holds the GIL ends when the user presses ctrl+c."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


@pytest.mark.parametrize("interrupts", [1, 2])
def test_ctrl_c_ends_a_run_whose_program_holds_the_gil(tmp_path: Path, interrupts: int) -> None:
    (tmp_path / "holds.py").write_text(
        "import ctypes, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})\n"
        "print('held', flush=True)\nctypes.PyDLL(None).sleep(600)\n"
    )
    command = [sys.executable, "-m", "idbg", "run", "holds.py", "--backend", "eager"]
    run = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    for line in run.stdout:
        if line.strip() == "held":
            break
    for _ in range(interrupts):
        run.send_signal(signal.SIGINT)
        time.sleep(0.3)
    assert run.wait(60) == 130  # not when the program ends by itself, after 600 s
    run.stdout.close()
