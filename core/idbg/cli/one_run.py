"""Run a program in a session: progress goes to stderr, and a signal ends the run in order."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from idbg.cli import output
from idbg.cli.progress import Progress
from idbg.cli.signals import Stopped, raise_on_signal
from idbg.config import settings
from idbg.config.arguments import Request
from idbg.schema.diff import Comparison
from idbg.schema.runs import Run
from idbg.session.session import Session


def run_once(
    request: Request,
    comparison: Comparison | None = None,
    then: Callable[[Session, Run], None] | None = None,
    stdout: TextIO | None = None,
) -> tuple[Run, Path]:
    """Run the program once. Returns the finished run and the session's folder.

    `then` may start more work on the session; it is waited for. `stdout`: see `open_session`. Raises
    SystemExit(128 + N) after signal N.
    """
    with open_session(request, stdout) as session:
        run = run_in(session, comparison)
        if then is not None:
            then(session, run)
            session.wait()
            run = session.history.runs[run.number]
        return run, session.folder


def run_in(session: Session, comparison: Comparison | None = None) -> Run:
    """Run the session's program once more."""
    number = session.run(comparison=comparison)
    session.wait()
    return session.history.runs[number]


@contextmanager
def open_session(request: Request, stdout: TextIO | None = None) -> Iterator[Session]:
    """A new session that reports its progress on stderr.

    What the program writes goes to stderr too; its stdout goes to `stdout` where that is set. Raises
    SystemExit(128 + N) after signal N, once the current work has stopped.
    """
    with (
        raise_on_signal(),
        Session(
            request.program, request.target, output=request.output, alone=True, keeping=request.settings.keeping
        ) as session,
        _reported(session, stdout),
    ):
        yield session


@contextmanager
def resumed_session(folder: Path) -> Iterator[Session]:
    """A saved session that goes on, as `open_session` is. Raises OutputError where nothing can be added to it."""
    keeping = settings.load(os.environ).keeping
    with raise_on_signal(), Session.resume(folder, keeping=keeping) as session, _reported(session):
        yield session


@contextmanager
def _reported(session: Session, stdout: TextIO | None = None) -> Iterator[None]:
    """While it lasts, the session's progress goes to stderr, and a signal stops what it does."""
    runs = session.history.runs
    progress = Progress(
        output.bar(), lambda number: session.usual_seconds(runs[number]) if number in runs else None, stdout=stdout
    )
    if not runs:  # of a session that goes on, all of it was reported before
        for event in session.events:
            progress(event)
    session.subscribe(progress)
    try:
        yield
    except Stopped:
        _stop(session, progress)
        raise
    finally:
        progress.clear()


def wait_for_search(session: Session) -> int:
    """Wait for a search. The first signal stops it and keeps the result so far, a second signal kills it.

    Returns the signal's exit status, or 0.
    """
    try:
        session.wait()
        return 0
    except Stopped as stopped:
        output.note("idbg: stopping: the smallest failing script is kept (press again to stop at once)")
        status = stopped.status
    try:
        session.cancel()
        session.wait()
    except Stopped:
        session.cancel()
        session.wait()
    return status


def print_run(run: Run) -> None:
    """Print the report of a run: the text, or the JSON with --json."""
    from idbg.reports import json, text

    output.report(lambda: json.run_report(run), lambda: "\n".join(text.run_report(run)))


def _stop(session: Session, progress: Progress) -> None:
    """Cancel the session's run. After a second signal `close` kills the worker."""
    progress.clear()
    output.note("idbg: stopping")
    try:
        session.cancel()
        session.wait()
    except Stopped:
        pass
