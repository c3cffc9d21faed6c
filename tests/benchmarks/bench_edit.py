"""How soon does the screen answer an edit of the rules over 100,000 nodes, and how soon is its cost known?

    python tests/benchmarks/bench_edit.py [NODES]

The app runs without a terminal on a saved session made here. An answer is all that is done before the next paint: the
check, the header and every pane. The bound is 50 ms, for an edit that comes while nothing is counted; what partitions
and padding cost follows beside it, unbounded.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from idbg.config.settings import Settings
from idbg.schema import events
from idbg.session.session import Session
from idbg_tui.app import IdbgApp
from idbg_tui.state import queries
from tests.benchmarks.bench_browser import big_graph, line, write_session

RULES = """name = "bench"
[[rules]]
kind = "unsupported_ops"
deny = ["tanh"]
severity = "fallback"
[[rules]]
kind = "alignment"
multiple = 16
severity = "pad"
[[rules]]
kind = "peak_memory"
max_bytes = 1000
"""
EDITS = {
    "alignment 16 to 32": RULES.replace("16", "32"),
    "alignment 32 to 8": RULES.replace("16", "8"),
    "another op denied": RULES.replace("tanh", "relu"),
    "a peak without the weights": RULES + "weights = false\n",
    "all taken back": RULES,
}


async def measure(folder: Path) -> None:
    app = IdbgApp(lambda: Session.open(folder), Settings())
    async with app.run_test(size=(160, 45)) as pilot:
        while app.state.graph is None:
            await pilot.pause(0.1)
        for place, (what, text) in enumerate({"the first rules": RULES, **EDITS}.items()):
            began = time.perf_counter()
            app._take([events.RulesEdited(text=text, origin="editor", at=10.0 * place)])
            answered = time.perf_counter()
            while queries.cost_questions(app.state):
                await pilot.pause(0.01)
            line(f"{what}: answered", (answered - began) * 1e3, "ms", 50 if place else None)
            line(f"{what}: its cost is known", time.perf_counter() - began, "s")
            await pilot.pause(1.0)  # what is counted ahead of the next edit is done


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as name:
        write_session(Path(name), big_graph(count))
        asyncio.run(measure(Path(name)))


if __name__ == "__main__":
    main()
