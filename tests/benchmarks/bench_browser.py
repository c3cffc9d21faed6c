"""How fast is the graph browser with 100,000 nodes? Prints each figure beside its bound; run by hand, in no test run.

    python tests/benchmarks/bench_browser.py [NODES]

The program runs in a real pty, on a saved session made here; keys are pressed as a user presses them, and what the
program writes is counted until it falls silent.
"""

import contextlib
import os
import pty
import select
import statistics
import struct
import sys
import tempfile
import termios
import time
from fcntl import ioctl
from pathlib import Path

from idbg.analysis.outline import outline
from idbg.schema import event_log, events
from idbg.schema.graphs import Frame, Graph, GraphId, Node, TensorMeta
from idbg.schema.programs import Program, Target
from idbg_tui.panes.graph.node_search import NodeSearch
from tests.harness.event_lines import events_of

SIZE = (45, 160)
OWN, ALL = 0.03, 0.15  # seconds of silence that end the browser's own answer, and that of the panes that follow it
RULES = 'name = "bench"\n[[rules]]\nkind = "unsupported_ops"\ndeny = ["tanh"]\n'
OPS = ("mm", "add.Tensor", "relu", "view", "mul.Tensor", "tanh", "permute", "sum.dim_IntList")


def big_graph(count: int) -> Graph:
    """A stack of layers as a large model has it: 80 nodes a layer, 100 shapes."""
    nodes: list[Node] = []
    for index in range(count):
        layer, place = divmod(index, 80)
        op = OPS[index % len(OPS)]
        nodes.append(
            Node(
                name=f"{op.partition('.')[0]}_{index}",
                op="call_function",
                target=f"aten.{op}" if "." in op else f"aten.{op}.default",
                inputs=(nodes[-1].name,) if nodes else (),
                tensors=(TensorMeta("float32", (8, 64 + index % 100), (64 + index % 100, 1), "cpu"),),
                module=f"layers.{layer}.{'attention' if place < 40 else 'mlp'}.{place // 10}",
                file="/home/user/model.py",
                line=10 + place,
            )
        )
    return Graph(GraphId("0/0", "inference"), tuple(nodes), "")


def write_session(folder: Path, graph: Graph) -> None:
    program, target = Program("model.py"), Target(rules=RULES, accelerator="bench")
    log: list[events.SessionEvent] = [
        events.SessionOpened(version="0.1.0", program=program, folder=str(folder)),
        events.RunStarted(run=1, program=program, target=target),
        events.FrameStarted(run=1, frame=Frame("0/0", "forward")),
        events.GraphCaptured(run=1, graph=graph),
        events.RunEnded(run=1, verdict="violations", seconds=1.0),
    ]
    text = b"".join(event_log.encode(event) + b"\n" for event in log)
    (folder / "events.jsonl").write_bytes(text)


class Terminal:
    """The program in a pty; `press` sends keys and gives (seconds to the first answer, bytes of it, bytes in all)."""

    def __init__(self, folder: Path) -> None:
        self.started = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
            os.execv(sys.executable, [sys.executable, "-m", "idbg_tui", str(folder)])
        ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))

    def read(self, quiet: float, limit: float = 60.0) -> tuple[float, bytes]:
        """What it writes until it has been silent for `quiet` seconds, and when the first byte of it came."""
        began, first, seen = time.perf_counter(), 0.0, b""
        while time.perf_counter() - began < limit:
            ready, _, _ = select.select([self.fd], [], [], quiet)
            if not ready:
                break
            chunk = os.read(self.fd, 1 << 16)
            first = first or time.perf_counter() - began
            seen += chunk
        return first, seen

    def until(self, text: bytes, limit: float = 60.0) -> float:
        """Seconds since the start until `text` was written."""
        seen = b""
        while text not in seen and time.perf_counter() - self.started < limit:
            if select.select([self.fd], [], [], 0.5)[0]:
                seen += os.read(self.fd, 1 << 16)
        return time.perf_counter() - self.started

    def press(self, keys: bytes) -> tuple[float, int, int]:
        os.write(self.fd, keys)
        first, own = self.read(OWN)
        _, others = self.read(ALL)
        return first, len(own), len(own) + len(others)

    def answer(self) -> tuple[float, float]:
        """Seconds from now to the first and to the last byte of an answer."""
        began, times = time.perf_counter(), [0.0]
        while select.select([self.fd], [], [], 0.5)[0]:
            os.read(self.fd, 1 << 16)
            times.append(time.perf_counter() - began)
        return times[min(1, len(times) - 1)], times[-1]

    def end(self) -> None:
        os.write(self.fd, b"q")
        with contextlib.suppress(OSError):  # Linux reports the end of a pty as an error
            while os.read(self.fd, 1 << 16):
                pass
        os.waitpid(self.pid, 0)


def line(what: str, value: float, unit: str, bound: float | None = None) -> None:
    judged = "" if bound is None else f"at most {bound:>6.0f}   {'ok' if value <= bound else 'TOO MUCH'}"
    print(f"{what:<52} {value:>9.1f} {unit:<6} {judged}")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    graph = big_graph(count)
    began = time.perf_counter()
    outline(graph)
    line("outline built", (time.perf_counter() - began) * 1e3, "ms", 300)
    search = NodeSearch(graph)
    search.prepare()
    for query in ("tanh", "mlp relu_99", "f32[8,99] view", "rlu9", "zzzz"):
        began = time.perf_counter()
        found = len(search.find(query))
        line(f"filter {query!r}: {found:,} found", (time.perf_counter() - began) * 1e3, "ms", 100)
    with tempfile.TemporaryDirectory() as name:
        write_session(Path(name), graph)
        began = time.perf_counter()
        loaded = len(events_of((Path(name) / "events.jsonl").read_bytes().splitlines(True)))
        print(f"reading {loaded} events takes {time.perf_counter() - began:.2f} s of the opening")
        terminal = Terminal(Path(name))
        line("open: from the command to the nodes", terminal.until(f"{count:,} nodes".encode()), "s", 2)
        terminal.read(1.0)
        for label, key, times, bound in (
            ("cursor down", b"j", 60, 2000),
            ("cursor up", b"k", 30, 2000),
            ("half a page down", b"\x04", 10, None),
            ("next violation", b"v", 10, None),
        ):
            answers = [terminal.press(key) for _ in range(times)]
            times_ms = sorted(seconds * 1e3 for seconds, _, _ in answers)
            line(f"{label}: first answer, median", statistics.median(times_ms), "ms", 50)
            line(f"{label}: first answer, 95 %", times_ms[int(len(times_ms) * 0.95)], "ms", 50)
            line(f"{label}: bytes, median", statistics.median(own for _, own, _ in answers), "bytes", bound)
            line(f"{label}: bytes, mean", statistics.mean(own for _, own, _ in answers), "bytes", bound)
            line(f"{label}: bytes with all panes that follow, mean", statistics.mean(a for *_, a in answers), "bytes")
        terminal.press(b"/")
        for letter in "tanh":
            os.write(terminal.fd, letter.encode())
            first, last = terminal.answer()
            line(f"filter: {letter} typed, first answer", first * 1e3, "ms", 100)
            line(f"filter: {letter} typed, all panes have followed", last * 1e3, "ms")
        terminal.press(b"\x1b")
        terminal.end()


if __name__ == "__main__":
    main()
