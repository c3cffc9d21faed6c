"""The process that makes one try of a bisection: `python -m idbg.worker.bisect_try CACHE warm|cold FD FD`.

A program that crashes, hangs or exits ends only this process. CACHE is Inductor's cache here. The first descriptor
gives the try as one line of JSON; its end says that the host is gone. The answer goes to the second, likewise. The
applications so far are written to CACHE: they are all that a process that dies leaves. A warm process imports torch
before it reads the try.
"""

import gc
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from idbg.engine.compat.builds import scratch
from idbg.schema import events
from idbg.schema.bisection import PROGRESS_FILE, PYTHON, Answer, Application, BackendParts, Try
from idbg.schema.errors import IdbgError
from idbg.schema.events import SessionEvent
from idbg.schema.faults import signal_name
from idbg.schema.repros import Signature
from idbg.schema.runs import Run
from idbg.worker.child import forget_ours
from idbg.worker.main import end, end_with_host, flush, leave_stacks
from idbg.worker.protocol import Compile

if TYPE_CHECKING:
    from idbg.engine.compat.bisector import Applications

UNTRIED = 125
"""The exit status of a command that cannot test this state, as for `git bisect run`."""


def main() -> None:
    """Make the try of the command line, and end with the process."""
    cache, is_warm, host_fd, answer_fd = Path(sys.argv[1]), sys.argv[2] == "warm", int(sys.argv[3]), int(sys.argv[4])
    for fd in (host_fd, answer_fd):
        os.set_inheritable(fd, False)
    os.nice(forget_ours())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the host decides
    scratch.begin()
    if is_warm:
        _warm_up()
    with os.fdopen(host_fd, "rb", closefd=False) as requests:
        line = requests.readline()
    if not line:
        end()
    attempt = msgspec.json.decode(line, type=Try)
    end_with_host(host_fd)
    if attempt.level.backend == PYTHON:
        os.environ["TORCHDYNAMO_DISABLE"] = "1"  # torch reads it as it compiles

    def answer_with(answer: Answer) -> None:
        with os.fdopen(os.dup(answer_fd), "wb") as pipe:
            pipe.write(msgspec.json.encode(answer) + b"\n")

    try:
        if attempt.command:
            answer_with(_commanded(attempt, cache))
        elif attempt.seed is not None:
            answer_with(_drawn(attempt.seed))
        else:
            os.chdir(attempt.program.cwd or ".")
            leave_stacks(scratch.private.folder)
            _ran(attempt, answer_with, cache / PROGRESS_FILE)
    except IdbgError as error:
        answer_with(Answer(cannot=error.in_one_line))
    flush()
    _leave()


def _warm_up() -> None:
    """Import what a try needs. Nothing here may compute, or initialize a device."""
    gc.disable()  # looking for garbage in what is imported takes a second
    import idbg.engine.compat.bisector
    import idbg.worker.jobs  # noqa: F401

    gc.freeze()
    gc.enable()


def _ran(attempt: Try, answer_with: Callable[[Answer], None], beside: Path) -> None:
    """Run the program at its level, and answer before the process ends, also if the program ends it."""
    import torch

    from idbg.engine.bisection import answer_of, at_level, target_at
    from idbg.engine.compat import bisector
    from idbg.worker.jobs import Jobs

    run = Run(1, attempt.program, attempt.target, time.time(), attempt.comparison)
    beside.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    parts = bisector.parts() if attempt.parts else ()

    def so_far(seen: "Applications", answer: Answer) -> Answer:
        return msgspec.structs.replace(
            answer,
            counts=dict(seen.counts),
            last=seen.last,
            before=seen.before,
            after=seen.after,
            parts=parts,
            torch=str(torch.__version__),
            own=next((name for name in run.backends if name != attempt.target.backend), ""),
        )

    written: object = None  # graphs are large: write them once

    def applied(seen: "Applications") -> None:
        nonlocal written
        known = (seen.last, bool(seen.before), bool(seen.after))
        if seen.last is not None and written == known:
            return
        written = known
        os.pwrite(file, msgspec.json.encode(so_far(seen, Answer())), 0)  # overwrites a shorter answer

    repros = tempfile.mkdtemp(dir=beside.parent)  # goes with the search: we may be ended as soon as we have answered
    with at_level(attempt.level, attempt.settings, applied) as seen:
        applied(seen)

        def ended(event: SessionEvent) -> None:
            run.apply(event)
            if isinstance(event, events.RunEnded):
                answer_with(so_far(seen, answer_of(run, uncompiled=attempt.level.backend == PYTHON)))

        target = target_at(attempt.level, attempt.target)
        ended(Jobs(ended).compile(Compile(1, attempt.program, target, repros, attempt.comparison)))


def _commanded(attempt: Try, cache: Path) -> Answer:
    """Run a command of the user at the level, which torch reads from the environment."""
    level, environ = attempt.level, dict(os.environ)
    counts: dict[str, int] = {}
    parts: tuple[BackendParts, ...] = ()
    if attempt.parts or level.backend:
        from idbg.engine.compat import bisector

        parts = bisector.parts() if attempt.parts else ()
        environ |= bisector.environment(level, cache) if level.backend != PYTHON else {}
    done = subprocess.run(attempt.command, cwd=attempt.cwd or None, env=environ, stdin=subprocess.DEVNULL, check=False)
    status = done.returncode
    if level.subsystem and level.applied is None:
        counts[level.subsystem] = bisector.counted(level, cache)
    last = Application(level.applied, bisector.applied_last(level, cache)) if level.applied else None
    answer = Answer(counts=counts, parts=parts, last=last, compiled=True)
    if status == UNTRIED:
        return Answer(cannot=f"{shlex.join(attempt.command)} ends with {UNTRIED}: it cannot be tried")
    if status == 0:
        return answer
    how = f"killed by {signal_name(-status)}" if status < 0 else f"exit status {status}"
    return msgspec.structs.replace(answer, signature=Signature("check"), words=f"{attempt.command[0]}: {how}")


def _drawn(seed: int) -> Answer:
    from idbg.engine.bisection import drawn

    return Answer(drawn=drawn(seed))


def _leave() -> NoReturn:
    """Exit without Python's shutdown: threads of the program and exit handlers are no part of the try."""
    os._exit(0)


if __name__ == "__main__":
    main()
