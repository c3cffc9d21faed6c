"""Do the worker's request for the smallest script that shows a failure."""

import hashlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from msgspec.structs import replace

from idbg import __version__
from idbg.config import places
from idbg.engine.compat.builds.scratch import private
from idbg.engine.failures.describe import is_refusal
from idbg.engine.minify.forks.client import Forks
from idbg.engine.minify.oracle import Oracle
from idbg.engine.minify.problem import CapturedRun, Problem, of_a_violation, problem_of, undisclosed
from idbg.engine.minify.running import TryRunner
from idbg.engine.minify.search import GraphSearch
from idbg.engine.minify.user_level import search as user_level
from idbg.engine.minify.user_level.failure_pattern import pattern_of
from idbg.engine.minify.user_level.script_runs import Workspace
from idbg.engine.repro import violation_of
from idbg.engine.repro.failed_compile import NoGraph
from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.repros import Minified, MinifyProgress, Signature, Sought
from idbg.worker.protocol import Compile, Minify

HANG_SECONDS = 60.0
"""The limit of a try that is expected to hang, if the budget has none."""


def minify(
    request: Minify, emit: Callable[[SessionEvent], None], captured_run: Callable[[Minify], CapturedRun]
) -> Minified:
    """Search for the smallest script; `emit` gets the progress. If interrupted, the result is that so far."""
    with _scratch("minify-") as folder, forks_of(request, scratch := Path(folder)) as forks:
        captured = captured_run(request)
        kind, error = request.sought.kind, captured.error
        in_program = kind == "check" or (kind == "failure" and error is not None and not is_refusal(error))

        def show(progress: MinifyProgress) -> None:
            emit(events.MinifyProgressed(run=request.run, progress=progress))

        def of_program() -> Minified:
            pattern = pattern_of(request.sought, captured.error, captured.run)
            answers = known(request, pattern.signature)
            workspace = Workspace(forks, Path(request.folder), scratch / "program", answers, request.keep_data)
            return user_level.reduced_program(request.program, request.target, pattern, workspace, request.budget, show)

        try:
            problem = _problem(request, captured)
            signature = problem.signature
            name = f"minified-{signature.type or signature.kind}"
            oracle = Oracle(TryRunner.within(request.budget, forks), scratch, Path(request.folder), name)
            found = GraphSearch(problem, oracle, known(request, signature), request.budget, show).run()
        except ValueError as refused:  # no script can hold the graph
            if not in_program and not isinstance(refused, NoGraph):
                raise
            signature = pattern_of(request.sought, error, captured.run).signature
            return _unshown(of_program(), signature, kind)
        if found.signature.kind != "none" or signature.kind == "none":
            return _without_passing(found) if request.budget.first else found
        if in_program:  # no graph fails so by itself
            found = of_program()
        return _unshown(found, signature, kind)


def _unshown(found: Minified, signature: Signature, kind: str) -> Minified:
    """The result with the run's failure, if no script shows it; unchanged for a user's command that passes."""
    if found.signature.kind != "none" or kind == "check":
        return found
    note = found.note or "the run failed so, and no graph of it does by itself"
    return replace(found, signature=signature, failed=0, note=note)


def _without_passing(found: Minified) -> Minified:
    """The result without its script where that passes in a fresh process."""
    if found.reproduced is not False or found.status != 0:
        return found
    shutil.rmtree(Path(found.path).parent, ignore_errors=True)
    note = f"it failed in a forked process, and does not in a fresh one ({found.tried} tries): X searches for another"
    return replace(found, path="", note=note)


def whole_program(captured: CapturedRun, compiled: Compile, folder: Path) -> Path:
    """Write the program itself as a script that checks whether it fails as the run did, and return its path.

    Raises ValueError, ProgramError, OutputError.
    """
    with _scratch("repro-") as scratch, forks_of(compiled, Path(scratch)) as forks:
        pattern = pattern_of(Sought("failure"), captured.error, captured.run)
        workspace = Workspace(forks, folder, Path(scratch), state="failed")
        return user_level.whole_program(compiled.program, compiled.target, pattern, workspace)


def _scratch(prefix: str) -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix=prefix, dir=private.folder, ignore_cleanup_errors=True)


def _problem(request: Minify, captured: CapturedRun) -> Problem:
    """The problem to search. Raises NoGraph, ValueError or BadInput."""
    sought, rules = request.sought, request.target.rules
    seconds = request.budget.try_seconds or HANG_SECONDS
    if sought.kind == "violation" and sought.node is not None:
        violation = violation_of(captured.capture, sought.node, sought.rule, rules)
        problem = of_a_violation(captured, violation, rules)
    elif captured.error is not None and sought.kind == "failure" and is_refusal(captured.error):
        refused = next(one for one in captured.capture.violations if one.severity == "reject")
        problem = of_a_violation(captured, refused, rules)
    else:
        problem = problem_of(sought, request.failure, captured, request.target, seconds)
    return problem if request.keep_data else undisclosed(problem)


def forks_of(request: Minify | Compile, scratch: Path) -> Forks:
    """Processes with the program's folder and modules, and the backend's package."""
    program = request.program
    folder = str(Path(program.cwd, program.path).parent) if not program.module else program.cwd
    return Forks(Path(program.cwd or "."), [folder], scratch / "tries", backend=request.target.backend)


def known(request: Minify, signature: Signature) -> Path:
    """The file of the answers of earlier searches for the same failure, of the same program and versions."""
    program = request.program
    parts = (__version__, torch.__version__, sys.version, program, request.target, request.sought, signature)
    name = hashlib.sha256(repr((*parts, request.keep_data)).encode()).hexdigest()[:32]
    return places.cache() / "minify" / f"{name}.jsonl"
