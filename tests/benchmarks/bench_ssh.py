"""What does a key cost on an SSH line: bytes and time until the screen is whole, beside a budget for each kind of key.

    python tests/benchmarks/bench_ssh.py [KEYS]

`idbg-tui` on a recorded session in a pseudo-terminal of 120x40, behind a line with a round trip of 50 ms: every byte
is 25 ms under way in either direction. Each key is pressed KEYS times, when the screen is whole, and then again in a
rhythm of 70 ms, as by somebody who types: the other panes follow meanwhile. Budgets: 2 kB for a step of the cursor,
12 kB for a page or another pane, 0 while nothing is pressed; 95 % of the keys answered within the round trip and 30 ms.
The milliseconds are those beyond the round trip; those of the processor are of the whole program, and depend less on
what else the machine does. References: `less` on 2,000 rows, and Textual's own OptionList of 435, alone on the screen.
"""

import os
import select
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.harness.delayed_line import DelayedLine
from tests.harness.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
SIZE = {"columns": 120, "rows": 40}
CURSOR, PAGE = 2_000, 12_000  # bytes
ROUND_TRIP, ANSWER = 50.0, 30.0  # milliseconds
AT_REST, RHYTHM = 0.25, 0.07  # seconds: without output until the next key, and between keys
QUERIES = (b"\x1b[6n", b"\x1b[c", b"\x1b[>c", b"$p", b"\x1b]10;?", b"\x1b]11;?")
# pane, keys that take turns, budget
STEPS = (
    ("graph", "1", "jjjkkk", CURSOR),
    ("source", "2", "jjjkkk", CURSOR),
    ("findings", "4", "kkjj", CURSOR),
    ("log", "7", "kkkjjj", CURSOR),
    ("graph, half a page", "1", "\x04\x15", PAGE),
    ("graph, top and bottom", "1", "Gg", PAGE),
    ("log, half a page", "7", "\x15\x04", PAGE),
    ("another pane", "7", "4567", PAGE),
    ("fold and unfold all", "1", "f", PAGE),
)
OPTIONS = """
from textual.app import App
from textual.widgets import OptionList
class Options(App):
    def on_mount(self):
        self.animation_level = "none"
    def compose(self):
        yield OptionList(*(f"option {number} " + "x" * 40 for number in range(435)))
Options().run()
"""


class Answer(NamedTuple):
    """What came back for a key: milliseconds beyond the round trip until the first and the last byte of it."""

    size: int
    first: float
    last: float
    queries: int


class Line(NamedTuple):
    """A program at the far end of a line."""

    terminal: Terminal
    delayed: DelayedLine
    pid: int

    def processor(self) -> float:
        """Milliseconds of the processor that the program has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        self.delayed.close()
        self.terminal.fd = self.delayed.far
        self.terminal.close()


def line_to(argv: Sequence[str], environment: dict[str, str]) -> Line:
    terminal = Terminal(argv, cwd=ROOT, env=environment, **SIZE)
    delayed = DelayedLine(terminal.fd, ROUND_TRIP / 1000)
    terminal.fd = delayed.fd
    return Line(terminal, delayed, terminal.pid)


def press(terminal: Terminal, key: str) -> Answer:
    """Press a key, and read until the screen is whole."""
    before, began = len(terminal.raw), time.perf_counter()
    os.write(terminal.fd, key.encode())
    times = []
    wait = 2.0
    while select.select([terminal.fd], [], [], wait)[0]:
        times.append((time.perf_counter() - began) * 1000 - ROUND_TRIP)
        terminal.pump(0)
        wait = AT_REST
    answer = bytes(terminal.raw[before:])
    first, last = (times[0], times[-1]) if times else (0.0, 0.0)
    return Answer(len(answer), first, last, sum(answer.count(query) for query in QUERIES))


def type_on(terminal: Terminal, keys: Sequence[str], times: int) -> list[float]:
    """Press keys in a rhythm; of each, milliseconds beyond the round trip until something came."""
    began = time.perf_counter()
    pressed: list[float] = []
    came: list[float] = []
    while (now := time.perf_counter() - began) < times * RHYTHM + 1.0:
        if len(pressed) < times and now >= len(pressed) * RHYTHM:
            os.write(terminal.fd, keys[len(pressed) % len(keys)].encode())
            pressed.append(time.perf_counter())
        due = len(pressed) * RHYTHM if len(pressed) < times else times * RHYTHM + 1.0
        if select.select([terminal.fd], [], [], max(due - now, 0))[0]:
            came.append(time.perf_counter())
            terminal.pump(0)
    answers = [next((at for at in came if at - key > ROUND_TRIP / 1000), None) for key in pressed]
    return [(at - key) * 1000 - ROUND_TRIP for key, at in zip(pressed, answers, strict=True) if at is not None]


def p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def report(name: str, line: Line, keys: Sequence[str], times: int, budget: int) -> float:
    """Print what a key costs; the p95 of its first answer."""
    before = line.processor()
    answers = [press(line.terminal, keys[number % len(keys)]) for number in range(times)]
    processor = (line.processor() - before) / times
    typed = p95(type_on(line.terminal, keys, times))
    sizes, first = [answer.size for answer in answers], p95([answer.first for answer in answers])
    print(
        f"{name:24} {statistics.median(sizes):>7,.0f} {max(sizes):>7,} bytes, {max(sizes) / budget:5.2f} of the budget;"
        f" p95 {first:5.1f} ms, {first / ANSWER:5.2f} of the budget; typed on {typed:5.1f} ms; all panes"
        f" {p95([answer.last for answer in answers]):5.1f} ms; processor {processor:5.1f} ms; the terminal was queried"
        f" {sum(answer.queries for answer in answers)} times",
        flush=True,
    )
    return first


def screen(folder: Path, times: int) -> dict[str, float]:
    """The p95 of each kind of key."""
    shutil.copy(ROOT / "tests" / "recordings" / "resnet.jsonl", folder / "events.jsonl")
    (folder / "settings.toml").touch()
    environment = {"IDBG_SETTINGS": str(folder / "settings.toml"), "XDG_DATA_HOME": str(folder)}
    line = line_to([sys.executable, "-m", "idbg_tui", str(folder)], environment)
    line.terminal.until("435 nodes", 60)
    line.terminal.settle(1.0, 20)
    found = {}
    for name, pane, keys, budget in STEPS:
        press(line.terminal, pane)
        found[name] = report(name, line, keys, times, budget)
    line.terminal.settle(1.0, 20)
    before = len(line.terminal.raw)
    line.terminal.settle(60, 5)
    print(f"idle for 5 s: {len(line.terminal.raw) - before} bytes (budget 0)")
    line.close()
    return found


def references(folder: Path, times: int) -> float:
    """Print what the same keys cost elsewhere; the p95 of a step in an OptionList."""
    (folder / "rows").write_text("\n".join(f"row {number} " + "x" * 100 for number in range(2000)))
    line = line_to(["less", str(folder / "rows")], {})
    line.terminal.settle(0.3, 5)
    report("less, a row", line, "jjjkkk", times, CURSOR)
    report("less, half a page", line, "du", times, PAGE)
    line.close()
    line = line_to([sys.executable, "-c", OPTIONS], {})
    line.terminal.until("option 0", 60)
    line.terminal.settle(0.5, 5)
    down, up = "\x1b[B", "\x1b[A"
    first = report("OptionList, a row", line, (down, down, down, up, up, up), times, CURSOR)
    line.close()
    return first


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    with tempfile.TemporaryDirectory() as name:
        ours, textual = screen(Path(name), times), references(Path(name), times)
    print(f"a step in the graph / in an OptionList of Textual, alone on the screen: {ours['graph'] / textual:.2f}")


if __name__ == "__main__":
    main()
