"""Deliver the session's events to the screen's loop, in order and in batches."""

import time
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from contextvars import copy_context

from idbg.schema.events import SessionEvent
from idbg.session.session import Session

BATCH = 0.04  # seconds: events that arrive within it are shown at once, not one by one
APART = 4  # times as long as it took to show a batch: so long is the next one waited for, as keys come first


class Inbox:
    """Subscribes to a session; calls `deliver` on the loop, at most 25 times a second, with all that came; less often
    where that takes long, as of a large session that is being read.

    `past` is what had happened before; it is not delivered again.
    """

    def __init__(
        self, session: Session, loop: AbstractEventLoop, deliver: Callable[[list[SessionEvent]], None]
    ) -> None:
        self._loop = loop
        self._context = copy_context()  # the app's: a timer that is started in another one does not find the app
        self._deliver = deliver
        self._received: deque[SessionEvent] = deque()
        self._waking = False
        self._closed = False
        self._pause = BATCH
        self._unsubscribe = session.subscribe(self._receive)
        self.past = list(session.events)
        # an event may be in `past` and still be on its way to the listener
        self._known = {id(event) for event in self.past}

    def close(self) -> None:
        """Deliver nothing more."""
        self._closed = True
        self._unsubscribe()

    def _receive(self, event: SessionEvent) -> None:
        self._received.append(event)
        if not self._waking and not self._closed:
            self._waking = True
            self._loop.call_soon_threadsafe(self._wait)

    def _wait(self) -> None:
        self._loop.call_later(self._pause, self._drain, context=self._context)

    def _drain(self) -> None:
        self._waking = False
        batch = []
        while self._received:
            event = self._received.popleft()
            if id(event) not in self._known:
                batch.append(event)
        if batch and not self._closed:
            began = time.perf_counter()
            self._deliver(batch)
            self._pause = max(BATCH, APART * (time.perf_counter() - began))
