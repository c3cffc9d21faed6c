"""A line that takes time: bytes reach a pseudo-terminal, and come back from it, as late as over SSH."""

import os
import socket
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue


class DelayedLine:
    """Relays bytes between a file descriptor and `fd`, each half of `round_trip` seconds late in either direction."""

    def __init__(self, far: int, round_trip: float) -> None:
        """`far` is the program's end; this object only reads and writes it."""
        self._near, self._relay = socket.socketpair()
        self._delay = round_trip / 2
        self.far = far
        self._carry(lambda: self._relay.recv(1 << 16), lambda data: os.write(far, data))
        self._carry(lambda: os.read(far, 1 << 16), self._relay.sendall)

    @property
    def fd(self) -> int:
        """The user's end."""
        return self._near.fileno()

    def close(self) -> None:
        """Hang up; the threads end with it."""
        self._relay.shutdown(socket.SHUT_RDWR)
        self._near.close()

    def _carry(self, read: Callable[[], bytes], write: Callable[[bytes], object]) -> None:
        under_way: SimpleQueue[tuple[float, bytes]] = SimpleQueue()

        def take() -> None:
            data = b"."
            while data:
                try:
                    data = read()
                except OSError:  # the program ended, or the line was closed
                    data = b""
                under_way.put((time.perf_counter() + self._delay, data))

        def hand_on() -> None:
            while True:
                due, data = under_way.get()
                if not data:
                    return
                time.sleep(max(due - time.perf_counter(), 0))
                try:
                    write(data)
                except OSError:
                    return

        for work in (take, hand_on):
            threading.Thread(target=work, daemon=True).start()
