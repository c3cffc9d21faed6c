"""Run a repro's script in a process of its own, which is ended with all processes that it started."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from idbg.config.environment import SCRATCH, importable
from idbg.replay.edit import SIGNS
from idbg.schema.faults import signal_name
from idbg.schema.repros import Answer

ALONE = "idbg.engine.program.main_file"
"""Runs a script as `python FILE` would, while its compilers write so that what is killed half-way lands nowhere."""
SECONDS = 300.0
KEPT = 20_000  # characters of what a script printed
_NO_BACKEND = ("InvalidBackend", "BackendNotFound")  # what torch raises of a name that it does not know


class ReplayOutcome(NamedTuple):
    """How a script ended: `status` is None if it was stopped; `line` is the output line that shows it."""

    answer: Answer
    status: int | None
    line: str
    seconds: float


def outcome(script: Path, scratch: Path, *, seconds: float = SECONDS, python: str = "") -> ReplayOutcome:
    """Run the script and read its answer; `python`: by another interpreter. `scratch` is a folder that is ours: what
    its compilers have not finished goes there. Raises OSError where the interpreter cannot be started.
    """
    began = time.monotonic()
    with tempfile.TemporaryFile(dir=scratch) as printed:
        process = subprocess.Popen(
            [python, str(script)] if python else [sys.executable, "-P", "-m", ALONE, "[]", str(script)],
            env=_environment(scratch, python),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _end(process)
        printed.seek(max(printed.tell() - KEPT, 0) if printed.seek(0, os.SEEK_END) else 0)
        text = printed.read().decode(errors="replace")
    answer, line = read(status, text)
    line = line if status is not None else f"it took longer than {seconds:g} s, and was stopped"
    return ReplayOutcome(answer, status, line, time.monotonic() - began)


def read(status: int | None, printed: str) -> tuple[Answer, str]:
    """The answer from an exit status and the output, and the line that shows it."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    shown = next((line for line in lines if line.startswith(SIGNS)), "")
    other = next((line.removeprefix("OTHER ") for line in lines if line.startswith("OTHER ")), "")
    if status == 1 and shown:
        return "same", shown
    if status == 0:
        return "gone", last if last.startswith("right") else ""
    if status == 2 and not other.startswith(_NO_BACKEND):
        return "different", other or last
    if status is not None and status < 0:
        return "different", f"killed by {signal_name(-status)}"
    return "not run", other or last


def _environment(scratch: Path, python: str) -> Mapping[str, str]:
    """Another interpreter's compilers, which idbg does not control, get a private cache."""
    if python:
        return {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor")}
    return {**importable(), SCRATCH: str(scratch / "builds")}


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End its whole group, also if it has ended itself and left other processes."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
