"""Run a small job of gloo ranks under `idbg run`, and read what it reports."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SETUP = """
import datetime, os, signal, sys, time
import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds={timeout}))
rank = dist.get_rank()
"""


@dataclass(frozen=True)
class JobReport:
    """What a job reported: `record` is the JSON of its ranks."""

    status: int
    record: dict[str, Any]
    folder: Path
    output: str

    def differences(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.record["differences"] if each["kind"] == kind]


def run_job(body: str, folder: Path, ranks: int = 2, timeout: int = 60, *options: str) -> JobReport:
    """Run the script as ranks under `idbg run`; `body` comes after the process group is there."""
    script = folder / "train.py"
    script.write_text(SETUP.format(timeout=timeout) + body)
    return run_script(script, folder, ranks, *options)


def compare_job(body: str, folder: Path, ranks: int = 2) -> JobReport:
    """The same under `idbg diff`, which compares the numbers of each rank."""
    script = folder / "train.py"
    script.write_text(SETUP.format(timeout=60) + body)
    return compare_script(script, folder, ranks)


def compare_script(script: Path, folder: Path, ranks: int = 2) -> JobReport:
    return run_command([sys.executable, "-m", "idbg", "diff", "--nproc-per-node", str(ranks), str(script)], folder)


def run_script(script: Path, folder: Path, ranks: int = 2, *options: str) -> JobReport:
    command = [sys.executable, "-m", "idbg", "run", "--nproc-per-node", str(ranks), *options, str(script)]
    return run_command(command, folder)


def run_command(command: list[str], folder: Path) -> JobReport:
    outer = {"RANK": "0", "WORLD_SIZE": "1", "SLURM_PROCID": "0"}  # of a pod or a batch step: none of the job's
    environ = {**os.environ, **outer, "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": str(folder / "ind")}
    at = command.index("idbg") + 2
    whole = [*command[:at], "--json", "--output", str(folder / "kept"), *command[at:]]
    done = subprocess.run(whole, cwd=folder, env=environ, capture_output=True, text=True, timeout=400)
    assert done.stdout.startswith("{"), done.stdout[-2000:] + done.stderr[-4000:]
    record = json.loads(done.stdout)
    assert "ranks" in record, record
    sessions = [each for each in (folder / "kept").iterdir() if each.is_dir()]
    assert len(sessions) == 1
    return JobReport(done.returncode, record["ranks"], sessions[0], done.stderr)
