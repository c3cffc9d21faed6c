"""How does a program run once from a terminal: progress on stderr, and an orderly end when a signal asks for it?"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from idbg.cli import output
from idbg.cli.progress import Progress
from idbg.cli.signals import Stopped, signals_raise
from idbg.config import settings
from idbg.schema.diff import Comparison
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run
from idbg.session.session import Session


def one_run(
    program: Program,
    target: Target,
    kept_in: Path,
    comparison: Comparison | None = None,
    then: Callable[[Session, Run], None] | None = None,
    stdout: TextIO | None = None,
) -> tuple[Run, Path]:
    """The finished run, and its session's folder; `then` may ask the session for more about the run, which is waited
    for. `stdout` as of `a_session`. Raises SystemExit(128 + N) where signal N ended it.
    """
    with a_session(program, target, kept_in, stdout) as session:
        number = session.run(comparison=comparison)
        session.wait()
        if then is not None:
            then(session, session.history.runs[number])
            session.wait()
        return session.history.runs[number], session.folder


@contextmanager
def a_session(program: Program, target: Target, kept_in: Path, stdout: TextIO | None = None) -> Iterator[Session]:
    """A session that tells on stderr how far it is, and passes on what the program writes: to stderr too, or, of its
    stdout, to this one. Raises SystemExit(128 + N) where signal N ended it, once what was
    done then has stopped.
    """
    keeping = settings.load(os.environ).keeping
    with signals_raise(), Session(program, target, output=kept_in, alone=True, keeping=keeping) as session:
        runs = session.history.runs
        progress = Progress(
            output.bar(), lambda number: session.usual_seconds(runs[number]) if number in runs else None, stdout=stdout
        )
        for event in session.events:
            progress(event)
        session.subscribe(progress)
        try:
            yield session
        except Stopped:
            _stop(session, progress)
            raise
        finally:
            progress.clear()


def searched(session: Session) -> int:
    """Wait for a search. A signal stops it, and what it has found by then is kept; a second one kills it. Gives the
    exit status that tells of the signal, 0 where none came.
    """
    try:
        session.wait()
        return 0
    except Stopped as stopped:
        output.note("idbg: stopping: the smallest script that fails is kept (once more: at once)")
        status = stopped.status
    try:
        session.cancel()
        session.wait()
    except Stopped:
        session.cancel()
        session.wait()
    return status


def _stop(session: Session, progress: Progress) -> None:
    """Cancel the session's run; a second signal meanwhile leaves it to `close`, which kills the worker."""
    progress.clear()
    output.note("idbg: stopping")
    try:
        session.cancel()
        session.wait()
    except Stopped:
        pass
