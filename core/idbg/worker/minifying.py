"""How does the worker find the smallest script that shows a failure?"""

import hashlib
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from msgspec.structs import replace

from idbg import __version__
from idbg.config import places
from idbg.engine.compat.builds.scratch import private
from idbg.engine.failures.describe import is_refusal
from idbg.engine.minify.forks.client import Forks
from idbg.engine.minify.oracle import Oracle
from idbg.engine.minify.problem import CapturedRun, Problem, ends_process, of_a_violation, problem_of, undisclosed
from idbg.engine.minify.result import ResultFolder
from idbg.engine.minify.running import TryRunner
from idbg.engine.minify.search import Search
from idbg.engine.minify.user_level import search as user_level
from idbg.engine.minify.user_level.failure_pattern import wanted_of
from idbg.engine.minify.user_level.script_runs import Workspace
from idbg.engine.repro import violation_of
from idbg.engine.repro.failed_compile import NoGraph
from idbg.schema import events
from idbg.schema.errors import BadInput, IdbgError, exception_text
from idbg.schema.programs import Failure, Program
from idbg.schema.repros import Minified, MinifyProgress, Signature, Sought
from idbg.worker.protocol import Compile, Minify

if TYPE_CHECKING:
    from idbg.worker.jobs import Jobs

HANG_SECONDS = 60.0
"""What a try may take that is to hang, where nobody says."""


def minify(request: Minify, jobs: "Jobs") -> events.MinifyEnded:
    """The search, with its progress told by `jobs.emit`. It ends well also where it is interrupted."""
    scratch = Path(tempfile.mkdtemp(prefix="minify-", dir=private.folder))
    try:
        return events.MinifyEnded(run=request.run, minified=_minified(request, jobs, scratch))
    except (Exception, KeyboardInterrupt) as error:  # the worker's border: no search may end the session
        return events.MinifyEnded(run=request.run, failure=_failure(error))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _minified(request: Minify, jobs: "Jobs", scratch: Path) -> Minified:
    seen = _seen(request, jobs)
    asked, failed = request.sought.kind, seen.error is not None
    with forks_of(request.program, scratch) as forks:
        try:
            problem = _problem(request, seen, jobs)
            problem = problem if request.keep_data else undisclosed(problem)
        except NoGraph:
            whole = _of_program(request, seen, forks, scratch, jobs.emit)
            return _unshown(whole, wanted_of(request.sought, seen.error, seen.run).signature, asked)
        found = search(request, problem, forks, scratch, jobs.emit).run()
        if found.signature.kind != "none" or problem.signature.kind == "none":
            return found
        if asked == "check" or (asked == "failure" and failed):
            whole = _of_program(request, seen, forks, scratch, jobs.emit)  # no graph alone fails so
            return _unshown(whole, problem.signature, asked)
        return _unshown(found, problem.signature, asked)


def _unshown(found: Minified, signature: Signature, asked: str) -> Minified:
    """What the run itself showed fails, though no script shows it; of a user's command that passes, what was found."""
    if found.signature.kind != "none" or asked == "check":
        return found
    note = found.note or "the run failed so, and no graph of it does by itself"
    return replace(found, signature=signature, failed=0, note=note)


def _of_program(
    request: Minify, seen: CapturedRun, forks: Forks, scratch: Path, emit: Callable[[events.SessionEvent], None]
) -> Minified:
    """The search in the program's own source. Raises ValueError where what is sought is not of the program."""
    wanted = wanted_of(request.sought, seen.error, seen.run)
    place = Workspace(
        forks, Path(request.folder), scratch / "program", known(request, wanted.signature), request.keep_data
    )

    def tell(progress: MinifyProgress) -> None:
        emit(events.MinifyProgressed(run=request.run, progress=progress))

    return user_level.reduced_program(request.program, request.target, wanted, place, request.budget, tell)


def whole_program(seen: CapturedRun, compiled: Compile, folder: Path) -> Path:
    """Write the program itself as a script that tells whether it fails as the run did, and return its path.

    Raises ValueError, ProgramError, OutputError.
    """
    scratch = Path(tempfile.mkdtemp(prefix="repro-", dir=private.folder))
    try:
        with forks_of(compiled.program, scratch) as forks:
            wanted = wanted_of(Sought("failure"), seen.error, seen.run)
            return user_level.whole_program(
                compiled.program, compiled.target, wanted, Workspace(forks, folder, scratch)
            )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _problem(request: Minify, seen: CapturedRun, jobs: "Jobs") -> Problem:
    """What is to be searched for. Raises NoGraph, ValueError or BadInput where it cannot be."""
    sought, rules = request.sought, request.target.rules
    if sought.kind == "violation" and sought.node is not None:
        return of_a_violation(seen, violation_of(seen.capture, sought.node, sought.rule, rules), rules)
    if seen.error is not None and sought.kind == "failure" and is_refusal(seen.error):
        refused = next(one for one in seen.capture.violations if one.severity == "reject")
        return of_a_violation(seen, refused, rules)
    return problem_of(sought, request.failure, seen, request.target, request.budget.try_seconds or HANG_SECONDS)


def search(
    request: Minify, problem: Problem, forks: Forks, scratch: Path, emit: Callable[[events.SessionEvent], None]
) -> Search:
    """The search for this problem, by the request's budget."""
    oracle = Oracle(TryRunner.within(request.budget, forks), scratch)
    signature = problem.signature
    name = f"minified-{signature.type or signature.kind}"
    result = ResultFolder(Path(request.folder), name, scratch, oracle.large)

    def tell(progress: MinifyProgress) -> None:
        emit(events.MinifyProgressed(run=request.run, progress=progress))

    return Search(problem, oracle, result, known(request, problem.signature), request.budget, tell)


def forks_of(program: Program, scratch: Path) -> Forks:
    """Processes that find what the program finds: its folder, and the modules beside it."""
    folder = str(Path(program.cwd, program.path).parent) if not program.module else program.cwd
    return Forks(Path(program.cwd or "."), [folder], scratch / "tries")


def known(request: Minify, signature: Signature) -> Path:
    """Where the answers of earlier searches for the same are kept: the same program, versions and failure."""
    program = request.program
    parts = (__version__, torch.__version__, sys.version, program, request.target, request.sought, signature)
    name = hashlib.sha256(repr((*parts, request.keep_data)).encode()).hexdigest()[:32]
    return places.cache() / "minify" / f"{name}.jsonl"


def _seen(request: Minify, jobs: "Jobs") -> CapturedRun:
    """What the run left behind. Where this process does not hold it (the run killed the one that did), the program is
    captured again; with what killed it nothing is compiled, as graphs are all that is wanted.
    """
    holder, kills = jobs, False
    if jobs.last is None or jobs.last.run != request.run or jobs.run is None:
        holder = jobs.quiet()
        ends = request.failure is not None and ends_process(request.failure)
        kills = ends or request.sought.kind == "hang"
        target = replace(request.target, backend="eager", options={}, own_backend=False) if kills else request.target
        comparison = None if kills else request.comparison
        with _at_most(request.budget.seconds if kills else 0.0):
            holder.compile(Compile(request.run, request.program, target, request.folder, comparison))
        if isinstance(holder.error, KeyboardInterrupt):
            raise holder.error
        if isinstance(holder.error, _Over):
            raise BadInput(
                f"the program has not ended in {request.budget.seconds:g} s with nothing compiled (--seconds)",
                hint="no compiler makes it hang: fix the program",
            )
    if holder.last is None or holder.run is None:
        failure = holder.run.failure if holder.run else None
        raise BadInput(
            f"the program cannot be run again: {failure.message if failure else 'why is not known'}",
            hint="run it, and fix what it says",
        )
    return CapturedRun(holder.last, holder.error, holder.run, again=kills)


class _Over(BaseException):
    """The time is over: nothing that a program catches."""


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raises _Over wherever Python is, if it has not ended by then; 0: it may take as long as it takes."""

    def over(number: int, frame: object) -> None:
        raise _Over

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _failure(error: BaseException) -> Failure:
    if isinstance(error, IdbgError):
        return error.failure()
    if isinstance(error, KeyboardInterrupt):
        return Failure(kind="cancelled", message="cancelled before anything had failed", hint="ask again")
    return Failure(
        kind="idbg", type=type(error).__name__, message=f"nothing can be made smaller: {exception_text(error)}"
    )
