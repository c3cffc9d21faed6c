"""A server that forks before it serves, as gunicorn does: the master has imported torch, each worker compiles.

Without gunicorn it forks by itself: `os.fork`, and os.waitpid(-1) in the master.
"""

import os
import signal
import sys

import torch


def handle(size: int) -> float:
    """One request."""

    def model(x: torch.Tensor) -> torch.Tensor:
        return (x * 3 + size).relu()

    return float(torch.compile(model, backend="eager")(torch.ones(size)).sum())


def worker(number: int, answers: int) -> None:
    os.write(answers, f"worker {number}: {handle(number + 1)}\n".encode())
    if number == 2:
        os.kill(os.getpid(), signal.SIGSEGV)
    sys.exit(number)


def main() -> None:
    reading, writing = os.pipe()
    workers = {}
    for number in range(3):
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            worker(number, writing)
        workers[pid] = number
    os.close(writing)
    ended = {}
    for _ in workers:
        pid, status = os.waitpid(-1, 0)
        ended[workers[pid]] = os.waitstatus_to_exitcode(status)
    with os.fdopen(reading) as answers:
        print("".join(sorted(answers)), end="")
    print([ended[number] for number in sorted(ended)], flush=True)


if __name__ == "__main__":
    main()
