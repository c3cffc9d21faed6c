"""How does a signal that asks us to end become something that can be waited for, and tidied up after?"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Stopped(BaseException):
    """A signal asked us to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 128 + number


@contextmanager
def signals_raise() -> Iterator[None]:
    """Ctrl+C, SIGTERM and SIGHUP raise Stopped while this lasts."""

    def stop(number: int) -> None:
        raise Stopped(number)

    try:
        with signals_told(stop):
            yield
    except Stopped as stopped:
        raise SystemExit(stopped.status) from None


@contextmanager
def signals_told(told: Callable[[int], None]) -> Iterator[None]:
    """While it lasts, `told` hears of each signal that asks us to end."""

    def tell(number: int, frame: FrameType | None) -> None:
        told(number)

    heard = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        heard.append(signal.SIGHUP)
    before = {number: signal.signal(number, tell) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
