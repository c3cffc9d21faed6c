"""How soon does a command answer? Each one's --help, and those that need no torch, beside `python -c pass` and
`import argparse` in one run, as a ratio.

    python tests/benchmarks/bench_cli.py [TIMES]

Bounds: `idbg --help` 0.3 s, each 0.25 s. The commands alternate, so that a busy machine slows all of them alike; the
CPU seconds beside the wall's do not know who else is busy.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from idbg.cli import verbs

ROOT = Path(__file__).resolve().parents[2]
IDBG = [sys.executable, "-m", "idbg"]
REFERENCES = {"python -c pass": "pass", "python -c 'import argparse'": "import argparse"}
NO_TORCH = (
    ["info"],
    ["list"],
    ["config"],
    ["accelerators"],
    ["accelerators", "show", "tpu"],
    ["completion", "bash"],
    ["completion", "--words", "session"],
    ["help", "run"],
    ["run", "there_is_none.py"],
    ["show", "mlp"],
    ["report", "mlp", "--json"],
    ["analyze", "mlp"],
    ["clean", "--dry-run"],
)
BOUND, HELP_BOUND = 0.25, 0.3  # seconds


def measured(command: list[str], folder: str) -> tuple[float, float]:
    """Seconds by the wall, and of the CPU."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environ(folder))
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def environ(folder: str) -> dict[str, str]:
    sources = os.pathsep.join([str(ROOT / "core"), str(ROOT)])
    return {**os.environ, "PYTHONPATH": sources, "XDG_CONFIG_HOME": folder, "XDG_DATA_HOME": folder}


def main(times: int) -> int:
    commands = {name: [sys.executable, "-c", code] for name, code in REFERENCES.items()}
    commands |= {"idbg --help": [*IDBG, "--help"]}
    commands |= {f"idbg {name} --help": [*IDBG, name, "--help"] for name in verbs.names()}
    commands |= {f"idbg {' '.join(words)}": [*IDBG, *words] for words in NO_TORCH}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as folder:
        session = Path(folder, "debug_artifacts", "mlp")
        session.mkdir(parents=True)
        (session / "events.jsonl").write_bytes((ROOT / "tests" / "recordings" / "mlp_train.jsonl").read_bytes())
        for number in range(times + 1):
            for name, command in commands.items():
                one = measured(command, folder)
                if number:  # the first compiles what Python keeps
                    found[name].append(one)
    over = 0
    reference = statistics.median(wall for wall, _ in found["python -c 'import argparse'"])
    print(f"{'':36} {'wall':>7}  {'least':>7}  {'cpu':>7}   of import argparse   (n {times})")
    for name, pairs in found.items():
        wall, cpu = statistics.median(w for w, _ in pairs), min(c for _, c in pairs)
        least = min(w for w, _ in pairs)
        bound = HELP_BOUND if name == "idbg --help" else BOUND
        over += least > bound
        flag = f"  over {bound:g} s" if wall > bound else ""
        told = "  ".join(f"{seconds * 1000:4.0f} ms" for seconds in (wall, least, cpu))
        print(f"{name:36} {told}   {wall / reference:5.1f}{flag}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
