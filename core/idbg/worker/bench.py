"""The process that measures one row's task: `python -m idbg.worker.bench TASK CASE FD FD`.

The first descriptor is never written to: its end says that the host is gone. Each step as it begins, and last the
answer, go to the second: a line of JSON each.
"""

import os
import signal
import sys
from typing import cast, get_args

import msgspec

from idbg.engine.compat.builds import scratch
from idbg.schema.bench import IMPORT, BenchCase, BenchStep, Task, TaskResult
from idbg.worker.child import forget_ours
from idbg.worker.main import end_with_host, flush


def main() -> None:
    """Do the task of the command line, and end with the process."""
    task, case, host_fd, answer_fd = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    assert task in get_args(Task)
    for fd in (host_fd, answer_fd):
        os.set_inheritable(fd, False)
    forget_ours()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the host decides
    scratch.begin()
    end_with_host(host_fd)

    with os.fdopen(answer_fd, "wb") as pipe:

        def write(line: BenchStep | TaskResult) -> None:
            pipe.write(msgspec.json.encode(line) + b"\n")
            pipe.flush()

        def tell(name: str, words: str = "", /) -> None:
            write(BenchStep.at(cast("Task", task), name, words))

        tell(IMPORT)
        from idbg.engine.bench.measure import answer

        result = answer(msgspec.json.decode(case, type=BenchCase), cast("Task", task), tell)
        flush()
        write(result)


if __name__ == "__main__":
    main()
