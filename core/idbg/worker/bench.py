"""The process that measures one row's task and tells the answer: `python -m idbg.worker.bench TASK SUBJECT FD FD`.

The first descriptor is never written to: its end says that the host is gone. The answer, a line of JSON, goes to the
second.
"""

import os
import signal
import sys
import threading
from typing import cast, get_args

import msgspec

from idbg.bench.records import Subject, Task
from idbg.engine import compat_scratch
from idbg.worker.child import forget_ours
from idbg.worker.main import end, flush


def main() -> None:
    task, subject, host_fd, answer_fd = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    assert task in get_args(Task)
    for fd in (host_fd, answer_fd):
        os.set_inheritable(fd, False)
    forget_ours()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the host decides
    compat_scratch.begin()
    threading.Thread(target=_watch, args=(host_fd,), daemon=True).start()

    from idbg.engine.bench.measure import answer

    found = answer(msgspec.json.decode(subject, type=Subject), cast("Task", task))
    flush()
    with os.fdopen(answer_fd, "wb") as pipe:
        pipe.write(msgspec.json.encode(found) + b"\n")


def _watch(fd: int) -> None:
    os.read(fd, 1)
    end()


if __name__ == "__main__":
    main()
