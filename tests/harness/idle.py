"""Wait until the app under a pilot is idle: nothing waits in its event loop, and no thread works for it.

Textual's own function sleeps 20 ms at a time, twice for each key, and takes a process that the machine did not run for
an idle one. This one looks at what waits, so a test continues as soon as nothing does, however busy the machine is.
"""

import asyncio
import threading
from asyncio import AbstractEventLoop
from time import process_time
from typing import Any

import textual.app
import textual.pilot
import textual.screen
from textual._context import active_app
from textual.app import App
from textual.message_pump import MessagePump
from textual.pilot import Pilot, WaitForScreenTimeout

SOON = 0.02  # seconds: timers that are due by then are waited for
FRAME = 60.0
"""Seconds between two frames. One is painted once nothing else is to be done: how many a test paints does not depend on
how busy the machine is."""
STEP = 0.005  # seconds
LONGEST, HELD_BACK = 30.0, 2.0  # seconds
AT_REST = 0.0005  # seconds of CPU in a step, of all threads: waking up takes less
STANDING = {"idbg-worker", "idbg-watchdog"}  # threads that live as long as the session: tests wait for what they report


async def idle(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """Sleep until nothing waits in the event loop, no timer is due soon, and no thread of the app works.

    `max_sleep` is seconds of CPU, so that a busy machine ends no wait too early.
    """
    loop, rests, end = asyncio.get_running_loop(), 0, process_time() + max_sleep
    earliest, latest = loop.time() + min_sleep, loop.time() + LONGEST
    while (now := loop.time()) < latest and process_time() < end:
        await asyncio.sleep(0)
        if loop._ready:  # type: ignore[attr-defined]
            continue
        due = _next_timer(loop)
        if due - now <= SOON:
            await asyncio.sleep(max(0.0, due - now))
        elif rests < 4 and _threads_work(loop):  # or wait for what a test holds back: then they use no CPU
            spent = process_time()
            await asyncio.sleep(STEP)
            rests = 0 if process_time() - spent > AT_REST else rests + 1
        elif _paint():
            continue
        elif now < earliest:
            await asyncio.sleep(earliest - now)
        elif not loop._ready:  # type: ignore[attr-defined]
            return


def _paint() -> bool:
    """Paint the next frame, if there is to be one."""
    app = active_app.get(None)
    screen = app._screen_stack[-1] if app is not None and app._running and app._screen_stack else None
    if screen is None or not screen._update_timer._active.is_set():
        return False
    screen._on_timer_update()
    return True


def _next_timer(loop: AbstractEventLoop) -> float:
    """When the next timer is due, in the loop's time."""
    timers: list[asyncio.TimerHandle] = loop._scheduled  # type: ignore[attr-defined]
    return min((timer.when() for timer in timers if not timer.cancelled()), default=float("inf"))


def _threads_work(loop: AbstractEventLoop) -> bool:
    """Whether a thread works for the screen: of the loop's executor, of the session's event bus or one of the app's."""
    executor = loop._default_executor  # type: ignore[attr-defined]
    if executor is not None and executor._idle_semaphore._value < len(executor._threads):
        return True
    for thread in threading.enumerate():
        if thread.name == "idbg-session":
            bus = getattr(getattr(thread, "_target", None), "__self__", None)
            if bus is not None and bus._waiting:
                return True
        elif thread.name.startswith("idbg-") and thread.name not in STANDING:
            return True
    return False


async def handled(pilot: Pilot[Any], timeout: float = LONGEST) -> bool:
    """Wait until the app and each widget of its screen has handled its messages; False once the app has failed.

    Textual's own function posts a message to each of them, 64 for each key: more than most keys cost. What is handled
    for long while nothing else waits is held back by the test itself, as a session that is being opened.
    """
    loop, app = asyncio.get_running_loop(), pilot.app
    begun, waiting = loop.time(), _waiting(app)
    while app._screen_stack and not app._exception_event.is_set():
        await asyncio.sleep(0)
        if loop._ready:  # type: ignore[attr-defined]
            continue
        waited = loop.time() - begun
        if not any(map(_handles, _pumps(app))) or (waited > HELD_BACK and not waiting.keys() & _waiting(app).keys()):
            return True
        if waited > timeout:
            raise WaitForScreenTimeout("a widget does not handle its messages")
        await asyncio.sleep(STEP)
    return False


def _pumps(app: App[Any]) -> list[MessagePump]:
    return [app, *app.screen.walk_children(with_self=True)] if app._screen_stack else []


def _waiting(app: App[Any]) -> dict[int, Any]:
    """The messages in the queues, by their identity."""
    queues: list[Any] = [pump._message_queue for pump in _pumps(app)]
    return {id(message): message for queue in queues for message in queue.values}


def _handles(pump: MessagePump) -> bool:
    """Whether messages wait, or one is being handled: only a pump without work waits for its next message."""
    queue: Any = pump._message_queue
    return not (pump._closing or pump._closed or (queue.empty() and queue.ready_event._waiters))


def ask_the_loop() -> None:
    """Every pilot of this process asks `idle` and `handled`, and no frame is waited for longer than it takes."""
    setattr(Pilot, "_wait_for_screen", handled)  # noqa: B010
    for module in (textual.app, textual.pilot):
        setattr(module, "wait_for_idle", idle)  # noqa: B010
    setattr(textual.screen, "UPDATE_PERIOD", FRAME)  # noqa: B010
