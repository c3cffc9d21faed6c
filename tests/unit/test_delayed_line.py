"""The line of the benchmarks is late by half a round trip in either direction, and loses nothing."""

import os
import pty
import time
import tty

from tests.harness.delayed_line import DelayedLine

ROUND_TRIP = 0.06


def read(fd: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += os.read(fd, size)
    return data


def test_bytes_are_late_in_either_direction_and_in_order() -> None:
    far, program = pty.openpty()
    tty.setraw(program)
    line = DelayedLine(far, ROUND_TRIP)
    began = time.perf_counter()
    os.write(line.fd, b"ab")
    os.write(line.fd, b"c")
    assert read(program, 3) == b"abc"
    assert time.perf_counter() - began >= ROUND_TRIP / 2
    os.write(program, b"answer")
    assert read(line.fd, 6) == b"answer"
    assert time.perf_counter() - began >= ROUND_TRIP
    line.close()
    os.close(program)
    os.close(far)
