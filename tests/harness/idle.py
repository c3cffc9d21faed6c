"""When has the app under a pilot done what it had to do?

Textual's own answer sleeps 20 ms at a time, twice for each key, and takes a process that the machine did not run for
one that had nothing to do. This one asks the event loop as well, so a key needs no long sleep: half the time of the
screen's tests went there.
"""

import asyncio
from functools import partial
from time import monotonic, process_time

import textual.app
import textual.pilot

STEP = 0.005  # seconds
AT_REST = 0.0005  # seconds of CPU in a step, of all threads: waking up takes less


async def idle(min_sleep: float = 0.02, max_sleep: float = 1.0, *, steps: int) -> None:
    """Sleep until nothing waited in the event loop, and no thread worked, for so many steps in a row."""
    loop, began, rests = asyncio.get_running_loop(), monotonic(), 0
    while (elapsed := monotonic() - began) < max_sleep and (rests < steps or elapsed < min_sleep):
        spent = process_time()
        await asyncio.sleep(STEP)
        waiting = len(loop._ready)  # type: ignore[attr-defined]
        rests = 0 if waiting or process_time() - spent > AT_REST else rests + 1


def ask_the_loop() -> None:
    """Every pilot of this process asks `idle`: shortly between keys, past a frame of the screen (17 ms) after them."""
    setattr(textual.app, "wait_for_idle", partial(idle, steps=2))  # noqa: B010
    setattr(textual.pilot, "wait_for_idle", partial(idle, steps=4))  # noqa: B010
