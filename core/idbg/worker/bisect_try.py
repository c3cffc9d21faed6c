"""The process that makes one try of a search for the guilty: `python -m idbg.worker.bisect_try CACHE warm|cold FD FD`.

A program that crashes, hangs or ends its process takes this process and no other. CACHE is Inductor's cache here. The
first descriptor gives what is to be tried, one line of JSON; its end says that the host is gone. The answer goes to the
second, likewise. What was applied lies in CACHE while it goes on: of a process that dies it is all that is left. A warm
one imports torch before it is told what to try.
"""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
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
from idbg.schema.repros import Signature
from idbg.schema.runs import Run
from idbg.worker.child import forget_ours
from idbg.worker.main import end, flush, leave_stacks
from idbg.worker.protocol import Compile

if TYPE_CHECKING:
    from idbg.engine.compat.bisector import Applications

UNTRIED = 125
"""The exit status by which a command says that nothing can be tried: git's."""


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
    asked = msgspec.json.decode(line, type=Try)
    threading.Thread(target=_watch, args=(host_fd,), daemon=True).start()
    if asked.level.backend == PYTHON:
        os.environ["TORCHDYNAMO_DISABLE"] = "1"  # torch reads it as it compiles

    def tell(answer: Answer) -> None:
        with os.fdopen(os.dup(answer_fd), "wb") as pipe:
            pipe.write(msgspec.json.encode(answer) + b"\n")

    try:
        if asked.command:
            tell(_commanded(asked, cache))
        elif asked.seed is not None:
            tell(_drawn(asked.seed))
        else:
            os.chdir(asked.program.cwd or ".")
            leave_stacks(scratch.private.folder)
            _ran(asked, tell, cache / PROGRESS_FILE)
    except IdbgError as error:
        tell(Answer(cannot=error.in_one_line))
    flush()
    _leave()


def _warm_up() -> None:
    """Import what a try needs. Nothing here may compute, or ask for a device."""
    import idbg.engine.compat.bisector
    import idbg.worker.jobs  # noqa: F401


def _ran(asked: Try, tell: Callable[[Answer], None], beside: Path) -> None:
    """Run the program at its level; `tell` is told before the process ends, also where the program ends it."""
    import torch

    from idbg.engine.bisection.levels import at_level, target_at
    from idbg.engine.bisection.verdicts import answer_of
    from idbg.engine.compat import bisector
    from idbg.worker.jobs import Jobs

    run = Run(1, asked.program, asked.target, time.time(), asked.comparison)
    beside.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    parts = bisector.parts() if asked.parts else ()

    def so_far(heard: "Applications", answer: Answer) -> Answer:
        return msgspec.structs.replace(
            answer,
            counts=dict(heard.counts),
            last=heard.last,
            before=heard.before,
            after=heard.after,
            parts=parts,
            torch=str(torch.__version__),
        )

    written: object = None  # graphs are large, and what comes after the last application tells nothing more

    def applied(heard: "Applications") -> None:
        nonlocal written
        known = (heard.last, bool(heard.before), bool(heard.after))
        if heard.last is not None and written == known:
            return
        written = known
        os.pwrite(file, msgspec.json.encode(so_far(heard, Answer())), 0)  # it only grows: each is over the one before

    repros = tempfile.mkdtemp(dir=beside.parent)  # goes with the search: we may be ended as soon as we have answered
    with at_level(asked.level, asked.settings, applied) as heard:
        applied(heard)

        def ended(event: SessionEvent) -> None:
            run.apply(event)
            if isinstance(event, events.RunEnded):
                tell(so_far(heard, answer_of(run, uncompiled=asked.level.backend == PYTHON)))

        target = target_at(asked.level, asked.target)
        ended(Jobs(ended).compile(Compile(1, asked.program, target, repros, asked.comparison)))


def _commanded(asked: Try, cache: Path) -> Answer:
    """What a command of the user's says of the level: torch itself reads which one from the environment."""
    level, environ = asked.level, dict(os.environ)
    counts: dict[str, int] = {}
    parts: tuple[BackendParts, ...] = ()
    if asked.parts or level.backend:
        from idbg.engine.compat import bisector

        parts = bisector.parts() if asked.parts else ()
        environ |= bisector.environment(level, cache) if level.backend != PYTHON else {}
    done = subprocess.run(asked.command, cwd=asked.cwd or None, env=environ, stdin=subprocess.DEVNULL, check=False)
    status = done.returncode
    if level.subsystem and level.applied is None:
        counts[level.subsystem] = bisector.counted(level, cache)
    last = Application(level.applied, bisector.applied_last(level, cache)) if level.applied else None
    answer = Answer(counts=counts, parts=parts, last=last, compiled=True)
    if status == UNTRIED:
        return Answer(cannot=f"{shlex.join(asked.command)} ends with {UNTRIED}: it cannot be tried")
    if status == 0:
        return answer
    how = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    return msgspec.structs.replace(answer, signature=Signature("check"), words=f"{asked.command[0]}: {how}")


def _drawn(seed: int) -> Answer:
    from idbg.engine.bisection.option_fuzzer import drawn

    return Answer(drawn=drawn(seed))


def _watch(fd: int) -> None:
    os.read(fd, 1)
    end()


def _leave() -> NoReturn:
    """Without Python's end: a thread of the program's, or what a library does at exit, is no part of the try."""
    os._exit(0)


if __name__ == "__main__":
    main()
