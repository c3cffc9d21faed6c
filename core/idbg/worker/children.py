"""Capture the processes that the worker's program starts, each into a log of its own in the session's folder."""

import faulthandler
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from idbg.engine.capture.run import RunCapture
from idbg.engine.compat.forks import forget_threads
from idbg.startup.sitecustomize import capture as startup
from idbg.startup.sitecustomize.passing import captured


@contextmanager
def children_captured(session: str, capture: RunCapture, silence: Callable[[], None]) -> Iterator[None]:
    """While it lasts, processes that the program starts are captured; with no `session`, they are not.

    `silence` is called in a fork of this process: its events are not the worker's.
    """
    if not session:
        yield
        return
    known = captured(session)

    def forked() -> None:
        capture.is_paused = True
        faulthandler.disable()  # it writes to the worker's file
        forget_threads()
        silence()

    capture.children = lambda: len(captured(session) - known)
    startup.pass_on(session, forked=forked)
    try:
        yield
    finally:
        startup.stop()
