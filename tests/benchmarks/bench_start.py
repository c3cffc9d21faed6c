"""How soon is the screen there? From the command to the first paint, beside `import textual.app`, as a ratio.

    python tests/benchmarks/bench_start.py [TIMES]

Bounds: twice the import; `idbg --help` 0.3 s. The commands alternate in one run. The first paint is the title of the
graph pane arriving at the terminal; no torch is in the process. Both are given in seconds and in seconds of the
processor: on a busy machine only the second ratio means something. Bytecode is written first, as pip does.
"""

import compileall
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.harness.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]


class Took(NamedTuple):
    wall: float
    cpu: float


def of_command(command: list[str]) -> Took:
    began, before = time.perf_counter(), os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Took(time.perf_counter() - began, cpu)


def cpu_of(pid: int) -> float:
    """Seconds of the processor that a process has used, from /proc (proc_pid_stat(5), fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def first_paint(folder: str) -> Took:
    (Path(folder) / "settings.toml").touch()
    command = [sys.executable, "-m", "idbg_tui", "examples/mlp_train.py", "--backend", "mock", "--output", folder]
    began = time.perf_counter()
    terminal = Terminal(command, cwd=ROOT, env={"IDBG_SETTINGS": f"{folder}/settings.toml"})
    seen = b""
    while b"Graph" not in seen:
        select.select([terminal.fd], [], [], 10)
        seen += os.read(terminal.fd, 1 << 16)
    painted = Took(time.perf_counter() - began, cpu_of(terminal.pid))
    terminal.press("q")
    terminal.wait()
    terminal.close()
    return painted


def main(times: int) -> None:
    for package in ("core/idbg", "idbg_tui"):
        compileall.compile_dir(ROOT / package, quiet=1)
    imports, paints, helps = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(times):
            imports.append(of_command([sys.executable, "-c", "import textual.app"]))
            paints.append(first_paint(folder))
            helps.append(of_command([sys.executable, "-m", "idbg", "--help"]))
    for clock in Took._fields:
        imported, painted, helped = (
            [getattr(took, clock) * 1000 for took in some] for some in (imports, paints, helps)
        )
        reference, paint = statistics.median(imported), statistics.median(painted)
        print(f"{clock}:")
        print(f"  import textual.app  {reference:5.0f} ms   ({min(imported):.0f} to {max(imported):.0f}, n {times})")
        print(f"  first paint         {paint:5.0f} ms   ({min(painted):.0f} to {max(painted):.0f}, n {times})")
        print(f"  ratio               {paint / reference:5.2f}      (bound 2.00)")
        print(f"  idbg --help         {statistics.median(helped):5.0f} ms   (bound 300)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
