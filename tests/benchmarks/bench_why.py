"""How long does the pane "Why" take to lay out 10,000 guards and 1,000 frames, to filter them, and to move in them?

    python tests/benchmarks/bench_why.py [GUARDS] [FRAMES]

Headless, at 160x45, over a recorded session to which made-up decisions are added. Milliseconds from the key to the end
of its repaint. Bound: a letter of the filter in 100 ms.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from idbg.schema import events
from idbg_tui.panes.why.pane import WhyPane
from idbg_tui.panes.why.views import ViewName
from tests.harness.recorded import app_of
from tests.harness.screen import WIDE, settle
from tests.harness.why_states import guarded

KEYS = ("j", "G", "g", "/", "w", "e", "i", "7", "backspace", "escape", "f", "f")
VIEWS: tuple[ViewName, ...] = ("guards", "frames", "breaks", "recompiles")


async def main(guards: int, frames: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        app = app_of("mlp_train", Path(folder))
        async with app.run_test(size=WIDE) as pilot:
            await settle(pilot)
            made = guarded(guards, frames=frames)[1:-1]
            began = time.perf_counter()
            app.state.apply([event for event in made if not isinstance(event, events.RunStarted)])
            app.show()
            await pilot.press("0")
            print(
                f"{guards:,} guards, {frames:,} frames: told and shown in {1000 * (time.perf_counter() - began):.0f} ms"
            )
            pane = app.query_one(WhyPane)
            for view in VIEWS:
                began = time.perf_counter()
                pane.choose_view(view)
                await pilot.pause()
                spent = [f"shown {1000 * (time.perf_counter() - began):.0f}"]
                for key in KEYS:
                    began = time.perf_counter()
                    await pilot.press(key)
                    spent.append(f"{key} {1000 * (time.perf_counter() - began):.0f}")
                print(f"{view:10} {len(pane.lines.items):>7,} rows, ms: {', '.join(spent)}")


if __name__ == "__main__":
    asyncio.run(main(*(int(each) for each in (sys.argv[1:] or ("10000", "1000")))))
