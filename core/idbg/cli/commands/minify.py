"""Find the smallest script that reproduces a program's failure."""

import argparse
import logging
import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from idbg import __version__
from idbg.cli import exits, output, parsing, selection
from idbg.cli.commands.diff import add_reference, reference_of
from idbg.cli.commands.repro import add_violation, nothing_fails, repro_status
from idbg.cli.commands.run import is_unusable
from idbg.config.arguments import add_arguments as add_program_arguments
from idbg.config.arguments import settle
from idbg.format.file_names import from_here
from idbg.reports import bundle
from idbg.schema.diff import Comparison
from idbg.schema.errors import BadInput, output_errors
from idbg.schema.events import WorkerStarted
from idbg.schema.repros import CALLS, SECONDS, Budget, Sought
from idbg.schema.runs import Run
from idbg.schema.session_repros import SessionRepro
from idbg.views.attribution import launch_named
from idbg.views.repros import result_lines, status_words

if TYPE_CHECKING:
    from idbg.session.session import Session

log = logging.getLogger(__name__)
HELP = "find the smallest script that reproduces a program's failure"
ABOUT = """\
Find the smallest script that reproduces a program's failure.

Without an option that names a failure, the search looks for the first of these: how the run failed; the severest rule
for which strict mode stopped it; wrong numbers, compared with eager; the severest rule that it breaks. Ctrl+C stops the
search and keeps the smallest script that fails; the same command again continues from there.
"""
EXAMPLES = (
    ("idbg minify train.py", "whatever fails in it"),
    ("idbg minify examples/mlp_train.py --rule dtype --accelerator tpu", "the severest violation of a rule"),
    ("idbg minify train.py --break train.py:12 --markdown --zip", "a graph break, with a report and a zip file"),
    (
        'idbg minify train.py --check "python fails.py" --seconds 600',
        "a failure that your own command decides, in ten minutes",
    ),
)
EXITS = {
    exits.DONE: "nothing fails",
    exits.FAILED: "there is a script, and it reproduced the failure in a fresh process",
    exits.UNDECIDED: "something fails, and no script reproduced it",
}
SEE = ("repro", "replay", "bisect")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(
        parser, backend_words="inductor; aot where a rule is named, or with --strict or --accelerator"
    )
    what = parser.add_argument_group("failure")
    add_violation(what)
    what.add_argument(
        "--wrong", metavar="KERNEL", nargs="?", const="", help="wrong numbers (of this kernel), compared as idbg diff"
    )
    what.add_argument("--break", dest="graph_break", metavar="FILE:LINE", nargs="?", const="", help="a graph break")
    what.add_argument("--recompile", metavar="FILE:LINE", nargs="?", const="", help="a recompile")
    what.add_argument(
        "--check", metavar="COMMAND", help="this command fails; a script's path is appended as its last argument"
    )
    add_reference(parser.add_argument_group("comparison"))
    _add_budget(parser.add_argument_group("search"))
    parser.add_argument("--no-data", action="store_true", help="put no values of the program into the script")
    parser.add_argument(
        "--markdown", action="store_true", help="also write a report for PyTorch's issue form beside the script"
    )
    parser.add_argument("--zip", action="store_true", help="also pack the script with all that it needs into one file")


def _add_budget(search: argparse._ArgumentGroup) -> None:
    search.add_argument("--calls", metavar="N", type=int, default=CALLS, help=f"at most N tries ({CALLS})")
    search.add_argument(
        "--seconds", metavar="SECONDS", type=float, default=SECONDS, help=f"at most S seconds in all ({SECONDS:g})"
    )
    search.add_argument(
        "--try-seconds",
        metavar="SECONDS",
        type=float,
        default=0.0,
        help="at most S seconds per try (5 times what the whole takes)",
    )
    search.add_argument("--memory", metavar="BYTES", default="0", help="at most so much per try, as 4G (half of all)")


@dataclass(frozen=True)
class Searched:
    """The run, the result of the search (None: nothing fails), and the exit status of a signal."""

    run: Run
    repro: SessionRepro | None
    stopped: int


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    from idbg.cli.one_run import open_session, wait_for_search
    from idbg.reports import repros_json

    _check_one(args)
    budget, against = _budget(args), replace(reference_of(args), per_kernel=True)
    if args.backend is None and not (selection.names_violation(args) or args.strict or args.accelerator):
        args.default_backend = "inductor"
    with open_session(settle(args, argv, strict=True)) as session:
        done, sought = _failing(session, args, against)
        stopped = 0
        if sought is not None:
            session.minify(sought, budget, keep_data=not args.no_data)
            stopped = wait_for_search(session)
        found = Searched(done, session.history.repros[-1] if sought is not None else None, stopped)
    output.report(
        lambda: repros_json.minify_report(found.run, found.repro),
        lambda: "\n".join(_lines(found)),
    )
    output.session(session.folder)
    _write_files(args, found, session.history.worker)
    return status(found)


def _write_files(args: argparse.Namespace, found: Searched, worker: WorkerStarted | None) -> None:
    """Write the files of --markdown and --zip, and note their names. Raises OutputError."""
    repro = found.repro
    if repro is None or repro.minified is None or not repro.path:
        return
    versions = f"idbg {__version__}" + (f", torch {worker.torch}, Python {worker.python}" if worker else "")
    script = Path(repro.path)
    if args.markdown:
        report = script.with_name("report.md")
        with output_errors("no report can be written", "free some space"):
            report.write_text(bundle.report_of(repro.minified, versions), encoding="utf-8")
        output.note(f"report: {from_here(str(report))}")
    if args.zip:
        output.note(f"packed: {from_here(str(bundle.packed(script, versions)))}")


def status(found: Searched) -> int:
    """The exit status."""
    if found.stopped:
        return found.stopped
    minified = found.repro.minified if found.repro is not None else None
    if minified is not None and minified.signature.kind == "none":
        return exits.DONE
    return repro_status(found.run, found.repro)


# ------------------------------------------------------------- the failure to look for


def _check_one(args: argparse.Namespace) -> None:
    """Raises BadInput where two failures are named."""
    named = {
        "--violation": args.violation is not None,
        "--rule or --node": bool(args.rule or args.node),
        "--wrong": args.wrong is not None,
        "--break": args.graph_break is not None,
        "--recompile": args.recompile is not None,
        "--check": args.check is not None,
    }
    flags = [name for name, is_there in named.items() if is_there]
    if len(flags) > 1:
        raise BadInput(f"{' and '.join(flags)} name different failures", hint="name one")
    if args.check is not None and not _words(args.check):
        raise BadInput("--check names no command", hint='for example --check "python check.py"')


def _words(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        raise BadInput(f"--check {command}: {error}", hint="quote it as for a shell") from error


def _absolute(words: tuple[str, ...]) -> tuple[str, ...]:
    """The command with absolute paths: scripts run in other folders."""
    program, *rest = words
    first = os.path.abspath(program) if os.sep in program else program
    return first, *(os.path.abspath(word) if os.path.isfile(word) else word for word in rest)


def _budget(args: argparse.Namespace) -> Budget:
    parsing.check_least(args, calls=1, seconds=0.001, try_seconds=0.0)
    match = re.fullmatch(r"(\d+)([kmg]?)i?b?", args.memory.strip().lower())
    if match is None:
        raise BadInput(f"--memory {args.memory} is no number of bytes", hint="for example 4G, 512M or 1073741824")
    return Budget(args.calls, args.seconds, args.try_seconds, int(match[1]) * _UNITS[match[2]])


def _failing(session: "Session", args: argparse.Namespace, against: Comparison) -> tuple[Run, Sought | None]:
    """The run that fails, and which of its failures to look for; None where nothing fails.

    Raises BadInput where the named failure is not there.
    """
    if args.wrong is not None:
        return _compared(session, against, args.wrong)
    if (hung := _hung(session, args.timeout)) is not None:
        return hung, Sought("hang")
    done = session.history.last
    assert done is not None
    if (named := _named(done, args)) is not None:
        return done, named
    if done.cause is not None:
        return done, None if is_unusable(done) else Sought()
    if done.stopped:
        return done, _of_rule(done, args)
    compared, sought = _compared(session, against, "")
    if sought is None and compared.violations:
        sought = _of_rule(compared, args)
    return compared, sought


def _named(done: Run, args: argparse.Namespace) -> Sought | None:
    """The failure that the command line names; None where it names none."""
    if args.check is not None:
        return Sought("check", command=_absolute(_words(args.check)))
    if args.graph_break is not None:
        return Sought("break", place=args.graph_break)
    if args.recompile is not None:
        return Sought("recompile", place=args.recompile)
    if args.violation is not None or args.rule:
        return _of_rule(done, args)
    if args.node:
        broken = any(selection.is_at(each.node, args.node) for each in done.violations)
        return _of_rule(done, args) if broken else Sought("node", selection.node(done, args.node))
    return None


def _of_rule(done: Run, args: argparse.Namespace) -> Sought:
    found = selection.violation(done, args)
    if len(done.violations) > 1:
        number = selection.number_of(done, found)
        output.note(f"idbg: violation {number} of {len(done.violations):,} (another: --violation N)")
    return Sought("violation", found.node, found.rule)


def _compared(session: "Session", against: Comparison, kernel: str) -> tuple[Run, Sought | None]:
    """The compared run, and its failure: a side's, wrong numbers, or None."""
    from idbg.cli.one_run import run_in

    done = run_in(session, against)
    if done.cause is not None:
        return done, None if is_unusable(done) else Sought()
    if kernel and done.diff is not None:
        return done, Sought("wrong", launch=launch_named(done.diff, kernel))
    wrong = done.diff is not None and done.diff.verdict == "failed"
    return done, Sought("wrong") if wrong else None


def _hung(session: "Session", seconds: float) -> Run | None:
    """Run the program. Returns the run if it did not end within so many seconds and was stopped."""
    number = session.run()
    if session.wait(seconds):
        return None
    log.warning("it has not ended after %g s (--timeout): it hangs", seconds)
    session.cancel()
    session.wait()
    return session.history.runs[number]


# ------------------------------------------------------------- the report


def _lines(found: Searched) -> list[str]:
    repro = found.repro
    if repro is None:
        return [_nothing(found.run)]
    lines = list(result_lines(repro.minified)) if repro.minified is not None else []
    if repro.failure is not None and not (repro.stopped and repro.minified is not None):
        lines.append(f"{status_words(repro)}: {repro.failure.message}")
        lines += [f"  {repro.failure.hint}"] if repro.failure.hint else []
    if repro.minified is None and repro.path:
        lines.append(f"the smallest failing script so far, not run in a fresh process: {repro.path}")
    return lines


def _nothing(done: Run) -> str:
    if is_unusable(done):
        return nothing_fails(done)
    if not done.graphs:
        return f"nothing fails: {done.program.label} ran, and nothing in it was compiled"
    numbers = "" if done.diff is None else f", its numbers agree with {done.diff.reference}"
    rules = ", and it breaks no rule" if done.checked_rules else " (no rules were checked: use --accelerator NAME)"
    return f"{nothing_fails(done)}{numbers}{rules}"
