"""How much slower does a key get while resnet18 compiles? Keypress to first repaint, beside the same when idle.

    python tests/benchmarks/bench_keys.py [KEYS]

One run of `idbg-tui examples/resnet.py` in a pseudo-terminal with an empty Inductor cache: keys are pressed while it
compiles, from the moment that the first graph is on the screen, then as many when it is done. Bound: p95 at most twice
the idle p95.
"""

import os
import select
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.harness.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]

PAUSE = 0.06  # between keys: as fast as a key repeats


def press(terminal: Terminal, key: str) -> float:
    """Milliseconds from the key to the first byte of the answer."""
    while select.select([terminal.fd], [], [], 0)[0]:
        terminal.pump(0)
    began = time.perf_counter()
    os.write(terminal.fd, key.encode())
    select.select([terminal.fd], [], [], 5)
    answered = (time.perf_counter() - began) * 1000
    deadline = time.monotonic() + PAUSE
    while (left := deadline - time.monotonic()) > 0:
        terminal.pump(left)
    return answered


def report(what: str, samples: list[float]) -> float:
    p95 = statistics.quantiles(samples, n=20)[-1]
    figures = {"p50": statistics.median(samples), "p95": p95, "max": max(samples)}
    print(f"{what:10}", *(f"{name} {value:6.1f} ms  " for name, value in figures.items()), f"n {len(samples)}")
    return p95


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "settings.toml"
        settings.touch()
        env = {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/cache", "IDBG_SETTINGS": str(settings)}
        command = [sys.executable, "-m", "idbg_tui", "examples/resnet.py", "--output", f"{folder}/sessions"]
        terminal = Terminal(command, cwd=ROOT, env=env)
        terminal.until("convolution", 120)
        busy: list[float] = []
        while len(busy) < count and "kernels" not in terminal.text.splitlines()[0]:
            busy.append(press(terminal, "jk"[len(busy) // 10 % 2]))
        terminal.until(lambda screen: "kernels" in screen.splitlines()[0], 300)
        time.sleep(2)
        idle = [press(terminal, "jk"[number // 10 % 2]) for number in range(len(busy))]
        terminal.press("q")
        terminal.wait()
        terminal.close()
    ratio = report("compiling", busy) / report("idle", idle)
    print(f"p95 while compiling / idle p95: {ratio:.2f} (bound 2)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 120)
