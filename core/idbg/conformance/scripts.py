"""Find the smallest script of a failure of the kit: the minifier, in a session of the program."""

from pathlib import Path

from idbg.schema.bench import BenchCase
from idbg.schema.conformance import ConformanceRow, MinimalScript
from idbg.schema.diff import Comparison
from idbg.schema.errors import IdbgError
from idbg.schema.programs import NO_ACCELERATOR, Target
from idbg.schema.repros import Budget, Sought
from idbg.schema.runs import Run
from idbg.session.session import Session
from idbg.views.blame import blame_sentence
from idbg.views.repros import tried_words

SECONDS = 60.0
"""The default limit of each search, and of the run before it."""


def minimal_script(row: ConformanceRow, case: BenchCase, output: Path, seconds: float = SECONDS) -> MinimalScript:
    """The result of the search for the script of a row that failed, within so many seconds after its run. Its session
    is in `output`.
    """
    target = Target(case.backend.name, options=case.options, options_for=case.options_for, accelerator=NO_ACCELERATOR)
    try:
        with Session(case.program, target, output=output, alone=True) as session:
            return _searched(session, seconds, compares=row.cause is None)
    except IdbgError as error:
        return MinimalScript(problem=error.in_one_line)


def _searched(session: Session, seconds: float, *, compares: bool) -> MinimalScript:
    folder = str(session.folder)
    number = session.run(comparison=Comparison(per_kernel=True) if compares else None)
    hangs = not session.wait(seconds)
    if hangs:
        session.cancel()
        session.wait()
    run = session.history.runs[number]
    sought = Sought("hang") if hangs else _failure_in(run)
    if sought is None:
        return MinimalScript(problem="the program does not fail in a session of its own", session=folder)
    diff = run.diff
    is_found = diff is not None and (diff.first_wrong_stage is not None or diff.culprit is not None)
    blame = blame_sentence(diff) if diff is not None and is_found and sought.kind == "wrong" else ""
    session.minify(sought, Budget(seconds=seconds))
    if not session.wait(3 * seconds):  # the budget ends it; loading what it needs is not in it
        session.cancel()
        session.wait()
    repros = session.history.repros
    shown = next((repro for repro in reversed(repros) if repro.reproduced and repro.path), None)
    if shown is not None:
        return MinimalScript(shown.path, shown.minified, session=folder, blame=blame)
    problem = tried_words(repros[-1]) if repros else "the search did not begin"
    return MinimalScript(problem=problem, session=folder, blame=blame)


def _failure_in(run: Run) -> Sought | None:
    """What failed in the run; None where nothing did."""
    if run.cause is not None:
        return Sought()
    return Sought("wrong") if run.diff is not None and run.diff.verdict == "failed" else None
