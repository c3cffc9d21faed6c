"""How is torch listened to without standing in its way?"""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import ParamSpec

from idbg.engine.capture.run import RunCapture
from idbg.schema import events

P = ParamSpec("P")
Listening = Callable[[RunCapture], AbstractContextManager[None]]


def harmless(capture: RunCapture, what: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Make a listener of a function that must not fail in torch's hands: if it does, it is said once that `what` ("the
    guards") is not all there, and the user's compile goes on.
    """
    said = False

    def safe(function: Callable[P, None]) -> Callable[P, None]:
        @functools.wraps(function)
        def heard(*args: P.args, **kwargs: P.kwargs) -> None:
            nonlocal said
            if capture.deaf:
                return
            try:
                function(*args, **kwargs)
            except Exception as error:  # what only listens must not break the compile that it listens to
                if not said:
                    said = True
                    text = f"{what} are not all there: {type(error).__name__}: {error} (the compile itself goes on)"
                    capture.emit(events.Noted(level="warning", text=text))

        return heard

    return safe
