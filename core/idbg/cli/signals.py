"""Turn SIGINT, SIGTERM and SIGHUP into an exception or a callback."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Stopped(BaseException):
    """A signal asks this process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 128 + number


@contextmanager
def raise_on_signal() -> Iterator[None]:
    """Raise Stopped in the block when a signal arrives. Out of the block it becomes SystemExit(128 + N)."""

    def stop(number: int) -> None:
        raise Stopped(number)

    try:
        with call_on_signal(stop):
            yield
    except Stopped as stopped:
        raise SystemExit(stopped.status) from None


@contextmanager
def call_on_signal(callback: Callable[[int], None]) -> Iterator[None]:
    """Call `callback` with the number of each signal that arrives during the block."""

    def handle(number: int, frame: FrameType | None) -> None:
        callback(number)

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
