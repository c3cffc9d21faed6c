"""How fast is the source viewer with 20,000 lines? Prints each figure beside that of Textual's TextArea.

    python tests/benchmarks/bench_source.py [LINES]

Each widget runs alone in a real pty of 100x32; what it writes for a key is counted until it falls silent. Run by hand.
"""

import os
import pty
import select
import statistics
import struct
import sys
import termios
import time
from collections.abc import Callable
from fcntl import ioctl

from textual.app import App, ComposeResult
from textual.widget import Widget
from textual.widgets import TextArea

from idbg_tui.widgets.code import CodeView

ROWS, COLUMNS = 32, 100
QUIET = 0.12  # seconds without output that end an answer
KEYS = 25
BLOCK = '''def kernel_{0}(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    """Adds what was computed before,
    over all of its elements."""
    xoffset = tl.program_id(0) * XBLOCK  # one block
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    tmp0 = tl.load(in_ptr0 + (x0 + 64 * x1), xmask, eviction_policy="evict_last")
    tmp1 = tmp0 * 0.5 + {0}
    tl.store(out_ptr0 + x2, tmp1, None)
'''


def text_of(lines: int) -> str:
    count = BLOCK.count("\n")
    return "".join(BLOCK.format(number) for number in range(lines // count))


class One(App[None]):
    """One widget on the whole screen; prints the seconds that loading took as its title, which goes to the terminal."""

    CSS = "Screen > * { border: none; padding: 0; }"

    def __init__(self, widget: Widget, load: Callable[[], object]) -> None:
        super().__init__()
        self.animation_level = "none"
        self._widget, self._load = widget, load

    def compose(self) -> ComposeResult:
        yield self._widget

    def on_mount(self) -> None:
        self._widget.focus()
        self.call_after_refresh(self._load_now)

    def _load_now(self) -> None:
        began = time.perf_counter()
        self._load()
        took = time.perf_counter() - began
        os.write(1, f"\x1b]0;{took:.6f}\x07".encode())


def show(which: str, lines: int) -> None:
    """The child: never returns to the bench."""
    text = text_of(lines)
    if which == "code":
        code = CodeView()
        One(code, lambda: code.load(text, "triton")).run()
    else:
        area = TextArea(show_line_numbers=True, soft_wrap=False)
        area.cursor_blink = False  # a blink is output without a key
        One(area, lambda: area.load_text(text)).run()


class Terminal:
    def __init__(self, which: str, lines: int) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
            os.execv(sys.executable, [sys.executable, __file__, "--show", which, str(lines)])
        ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))

    def read(self, quiet: float) -> tuple[float, bytes]:
        """Seconds to the first byte, and all that comes until `quiet` seconds of silence."""
        began, first, seen = time.perf_counter(), 0.0, b""
        while select.select([self.fd], [], [], quiet if seen else 3.0)[0]:
            try:
                chunk = os.read(self.fd, 1 << 16)
            except OSError:
                break
            first = first or time.perf_counter() - began
            seen += chunk
        return first, seen

    def press(self, keys: bytes, times: int) -> tuple[float, float]:
        """Median milliseconds to the first byte, and median bytes, for one key."""
        answers = []
        for _ in range(times):
            os.write(self.fd, keys)
            answers.append(self.read(QUIET))
        return statistics.median(a for a, _ in answers) * 1000, statistics.median(len(b) for _, b in answers)

    def close(self) -> None:
        os.write(self.fd, b"\x11")  # ctrl+q
        self.read(1.0)
        os.waitpid(self.pid, 0)


def measure(which: str, lines: int) -> dict[str, tuple[float, float]]:
    """Name of a figure -> (milliseconds, bytes)."""
    terminal = Terminal(which, lines)
    _, start = terminal.read(1.0)
    loaded = float(start.split(b"\x1b]0;")[1].split(b"\x07")[0])
    found = {
        "load": (loaded * 1000, 0.0),
        "cursor key": terminal.press(b"\x1b[B", KEYS),
        "page key": terminal.press(b"\x1b[6~", KEYS),
        "scroll key": terminal.press(b"\x1b[B", KEYS),
    }
    terminal.close()
    return found


def main(lines: int) -> None:
    ours, theirs = measure("code", lines), measure("area", lines)
    print(f"{lines} lines, {COLUMNS}x{ROWS}; medians of {KEYS} keys")
    print(f"{'':12} {'source viewer':>22} {'TextArea':>22}   bound")
    bounds = {"scroll key": "9 kB", "cursor key": "2 kB"}
    for name, (ms, size) in ours.items():
        other_ms, other_size = theirs[name]
        left, right = f"{ms:7.1f} ms {size:8.0f} B", f"{other_ms:7.1f} ms {other_size:8.0f} B"
        print(f"{name:12} {left:>22} {right:>22}   {bounds.get(name, '')}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--show"]:
        show(sys.argv[2], int(sys.argv[3]))
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 20_000)
