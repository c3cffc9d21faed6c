"""What does a key cost on an SSH line: bytes and time until the screen is whole, beside a budget for each kind of key.

    python tests/benchmarks/bench_ssh.py [KEYS]

`idbg-tui` on a recorded session in a pseudo-terminal of 120x40, each key pressed KEYS times. Budgets: 2 kB for a step
of the cursor, 12 kB for a page or another pane, 0 while nothing is pressed; 95 % of the keys repainted within 30 ms and
the line's round trip. A round trip adds itself once, as the program asks the terminal nothing while keys are pressed:
counted too. The reference is `less` on a file of 2,000 rows.
"""

import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.harness.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
SIZE = {"columns": 120, "rows": 40}
CURSOR, PAGE = 2_000, 12_000  # bytes
ROUND_TRIP, REPAINT = 50.0, 30.0  # milliseconds
QUIET = 0.04  # seconds without output: the screen is whole
QUERIES = (b"\x1b[6n", b"\x1b[c", b"\x1b[>c", b"$p", b"\x1b]10;?", b"\x1b]11;?")
# pane, keys that take turns, budget
STEPS = (
    ("graph", "1", "jjjkkk", CURSOR),
    ("source", "2", "jjjkkk", CURSOR),
    ("findings", "4", "jjk", CURSOR),
    ("log", "7", "kkkjjj", CURSOR),
    ("graph, half a page", "1", "\x04\x15", PAGE),
    ("graph, top and bottom", "1", "Gg", PAGE),
    ("log, half a page", "7", "\x15\x04", PAGE),
    ("another pane", "1", "4567", PAGE),
    ("fold and unfold all", "1", "f", PAGE),
)


def press(terminal: Terminal, key: str) -> tuple[int, tuple[float, float], bytes]:
    """Bytes of the answer, milliseconds until its first and its last one, and the answer."""
    before, began = len(terminal.raw), time.perf_counter()
    os.write(terminal.fd, key.encode())
    first, last, ends = 0.0, 0.0, time.monotonic() + 0.5
    while time.monotonic() < ends:
        had = len(terminal.raw)
        terminal.pump(QUIET)
        if len(terminal.raw) > had:
            last, ends = (time.perf_counter() - began) * 1000, time.monotonic() + QUIET
            first = first or last
    answer = bytes(terminal.raw[before:])
    return len(answer), (first, last), answer


def measured(terminal: Terminal, keys: str, times: int) -> tuple[list[int], list[tuple[float, float]], int]:
    """Bytes and milliseconds of each key, and how often the terminal was asked something."""
    sizes, seconds, queries = [], [], 0
    for number in range(times):
        size, took, answer = press(terminal, keys[number % len(keys)])
        sizes.append(size)
        seconds.append(took)
        queries += sum(answer.count(query) for query in QUERIES)
    return sizes, seconds, queries


def line(name: str, sizes: list[int], took: list[tuple[float, float]], budget: int) -> None:
    p95, whole = (statistics.quantiles(times, n=20)[-1] for times in zip(*took, strict=True))
    print(
        f"{name:24} {statistics.median(sizes):>8,.0f} {max(sizes):>8,} bytes, {max(sizes) / budget:5.2f} of the budget;"
        f" p95 {p95:5.1f} ms, {p95 / REPAINT:5.2f} of the budget, {p95 + ROUND_TRIP:5.1f} ms over the line,"
        f" {whole:5.1f} ms until every pane has followed"
    )


def screen(folder: Path, times: int) -> None:
    shutil.copy(ROOT / "tests" / "recordings" / "resnet.jsonl", folder / "events.jsonl")
    (folder / "settings.toml").touch()
    environment = {"IDBG_SETTINGS": str(folder / "settings.toml"), "XDG_DATA_HOME": str(folder)}
    terminal = Terminal([sys.executable, "-m", "idbg_tui", str(folder)], cwd=ROOT, env=environment, **SIZE)
    terminal.until("435 nodes", 60)
    terminal.settle(1.0, 20)
    queries = 0
    for name, pane, keys, budget in STEPS:
        press(terminal, pane)
        sizes, took, asked = measured(terminal, keys, times)
        line(name, sizes, took, budget)
        queries += asked
    before = len(terminal.raw)
    terminal.settle(60, 5)
    print(f"idle for 5 s: {len(terminal.raw) - before} bytes (budget 0); the terminal was asked {queries} times")
    terminal.close()


def reference(folder: Path, times: int) -> None:
    (folder / "rows").write_text("\n".join(f"row {number} " + "x" * 100 for number in range(2000)))
    terminal = Terminal(["less", str(folder / "rows")], cwd=folder, env={}, **SIZE)
    terminal.settle(0.3, 5)
    for name, keys, budget in (("less, a row", "jjjkkk", CURSOR), ("less, half a page", "du", PAGE)):
        sizes, took, _ = measured(terminal, keys, times)
        line(name, sizes, took, budget)
    terminal.close()


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    with tempfile.TemporaryDirectory() as name:
        screen(Path(name), times)
        reference(Path(name), times)


if __name__ == "__main__":
    main()
