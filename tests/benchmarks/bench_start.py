"""How soon is the screen there? From the command to the first paint, beside `import textual.app`, as a ratio.

    python tests/benchmarks/bench_start.py [TIMES]

Bounds: twice the import; `idbg --help` 0.3 s. The commands alternate in one run. The first paint is the title of the
graph pane arriving at the terminal; no torch is in the process.
"""

import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.harness.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]


def seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def first_paint(folder: str) -> float:
    (Path(folder) / "settings.toml").touch()
    command = [sys.executable, "-m", "idbg_tui", "examples/mlp_train.py", "--backend", "mock", "--output", folder]
    began = time.perf_counter()
    terminal = Terminal(command, cwd=ROOT, env={"IDBG_SETTINGS": f"{folder}/settings.toml"})
    seen = b""
    while b"Graph" not in seen:
        select.select([terminal.fd], [], [], 10)
        seen += os.read(terminal.fd, 1 << 16)
    painted = time.perf_counter() - began
    terminal.press("q")
    terminal.wait()
    terminal.close()
    return painted


def main(times: int) -> None:
    imports, paints, helps = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(times):
            imports.append(seconds([sys.executable, "-c", "import textual.app"]))
            paints.append(first_paint(folder))
            helps.append(seconds([sys.executable, "-m", "idbg", "--help"]))
    reference, paint = statistics.median(imports), statistics.median(paints)
    print(f"import textual.app  {reference * 1000:5.0f} ms   ({min(imports):.3f} to {max(imports):.3f}, n {times})")
    print(f"first paint         {paint * 1000:5.0f} ms   ({min(paints):.3f} to {max(paints):.3f}, n {times})")
    print(f"ratio               {paint / reference:5.2f}      (bound 2.00)")
    print(f"idbg --help         {statistics.median(helps) * 1000:5.0f} ms   (bound 300)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
