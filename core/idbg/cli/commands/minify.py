"""What is the smallest script that shows a program's failure again?"""

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
from idbg.cli import chosen, exits, output
from idbg.cli.commands.diff import add_reference, check_numbers, held_against
from idbg.cli.commands.run import is_unusable
from idbg.config import places
from idbg.config.arguments import add_arguments as add_program_arguments
from idbg.config.arguments import settle
from idbg.format.file_names import from_here
from idbg.reports import bundle
from idbg.schema.diff import Comparison
from idbg.schema.errors import BadInput, OutputError
from idbg.schema.events import WorkerStarted
from idbg.schema.repros import CALLS, SECONDS, Budget, Sought
from idbg.schema.runs import Run
from idbg.schema.session_repros import SessionRepro
from idbg.views.attribution import launch_named
from idbg.views.repros import result_lines, status_words

if TYPE_CHECKING:
    from idbg.session.session import Session

log = logging.getLogger(__name__)
HELP = "find the smallest script that shows a program's failure again"
ABOUT = """\
Find the smallest script that shows a program's failure again.

What is looked for, where no option says so: how the run failed; else the severest rule that strict mode stopped it for;
else, compared with eager, what is wrong in its numbers; else the severest rule that it breaks. Ctrl+C stops the search
and keeps the smallest script that fails; the same command again goes on from there.
"""
EXAMPLES = (
    ("idbg minify train.py", "whatever fails in it"),
    ("idbg minify examples/mlp_train.py --rule dtype --accelerator tpu", "the severest violation of a rule"),
    ("idbg minify train.py --break train.py:12 --markdown --zip", "a graph break, with a report and all in one file"),
    (
        'idbg minify train.py --check "python fails.py" --seconds 600',
        "whatever a command of yours says, in ten minutes",
    ),
)
EXITS = {
    exits.DONE: "nothing fails",
    exits.FAILED: "there is a script, and it failed so again in a fresh process",
    exits.UNDECIDED: "something fails, and no script was seen to show it",
}
SEE = (
    "repro",
    "replay",
    "bisect",
)


REPRODUCED, NOTHING, UNSHOWN = 1, 0, 3


_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which program for which target, which of its failures, and what the search may take."""
    add_program_arguments(
        parser, backend_words="inductor; aot where a rule is named, or with --strict or --accelerator"
    )
    what = parser.add_argument_group("failure")
    what.add_argument("--violation", metavar="N", type=int, help="the run's Nth violation (idbg repro FILE --list)")
    what.add_argument("--rule", metavar="NAME", default="", help="the severest violation of this rule")
    what.add_argument(
        "--node", metavar="NAME", default="", help="the violation at this node; one that breaks no rule: what feeds it"
    )
    what.add_argument(
        "--wrong", metavar="KERNEL", nargs="?", const="", help="wrong numbers (of this kernel), compared as idbg diff"
    )
    what.add_argument("--break", dest="graph_break", metavar="FILE:LINE", nargs="?", const="", help="a graph break")
    what.add_argument("--recompile", metavar="FILE:LINE", nargs="?", const="", help="a recompile")
    what.add_argument(
        "--check", metavar="COMMAND", help="this command fails, given a script's path as its last argument"
    )
    add_reference(parser.add_argument_group("comparison"))
    _add_budget(parser.add_argument_group("search"))
    parser.add_argument("--no-data", action="store_true", help="no value of the program's goes into the script")
    parser.add_argument(
        "--markdown", action="store_true", help="also a report for PyTorch's issue form beside the script"
    )
    parser.add_argument("--zip", action="store_true", help="also the script with all that it needs as one file")


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
        help="at most S seconds a try (what the whole takes, x5)",
    )
    search.add_argument(
        "--memory", metavar="BYTES", default="0", help="at most so much a try, 4G as well (half of all)"
    )


@dataclass(frozen=True)
class Searched:
    """The run that was looked into, what the search came to (None: nothing fails), and a signal's exit status."""

    run: Run
    repro: SessionRepro | None
    stopped: int
    folder: Path


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Run, search, tell, and give the exit status as `EXITS` has it. Raises BadInput before anything runs."""
    from idbg.cli.one_run import a_session, searched

    _check_one(args)
    budget, against = _budget(args), replace(held_against(args), per_kernel=True)
    if args.backend is None and not _is_about_rules(args):
        args.default_backend = "inductor"
    asked = settle(args, argv, strict=True)
    with a_session(asked.program, asked.target, places.expanded(asked.settings.output)) as session:
        done, sought = _failing(session, args, against)
        stopped = 0
        if sought is not None:
            session.minify(sought, budget, keep_data=not args.no_data)
            stopped = searched(session)
        repro = session.history.repros[-1] if sought is not None else None
        found = Searched(done, repro, stopped, session.folder)
    _report(found, as_json=args.json)
    _write_files(args, found, session.history.worker)
    return status(found)


def _write_files(args: argparse.Namespace, found: Searched, worker: WorkerStarted | None) -> None:
    """The report and the packed script that were asked for, named on stderr. Raises OutputError."""
    repro = found.repro
    if repro is None or repro.minified is None or not repro.path:
        return
    versions = f"idbg {__version__}" + (f", torch {worker.torch}, Python {worker.python}" if worker else "")
    script = Path(repro.path)
    try:
        if args.markdown:
            report = script.with_name("report.md")
            report.write_text(bundle.report_of(repro.minified, versions), encoding="utf-8")
            output.note(f"report: {from_here(str(report))}")
    except OSError as error:
        raise OutputError(f"no report can be written: {error.strerror or error}", hint="free some space") from error
    if args.zip:
        output.note(f"packed: {from_here(str(bundle.packed(script, versions)))}")


def status(found: Searched) -> int:
    """The exit status that says what came of it."""
    if found.stopped:
        return found.stopped
    if found.repro is None:
        return exits.BAD_USAGE if is_unusable(found.run) else NOTHING
    if found.repro.minified is not None and found.repro.minified.signature.kind == "none":
        return NOTHING
    return REPRODUCED if found.repro.reproduced else UNSHOWN


# ------------------------------------------------------------- what is asked for


def _check_one(args: argparse.Namespace) -> None:
    """Raises BadInput where two failures are asked for at once."""
    named = {
        "--violation": args.violation is not None,
        "--rule or --node": bool(args.rule or args.node),
        "--wrong": args.wrong is not None,
        "--break": args.graph_break is not None,
        "--recompile": args.recompile is not None,
        "--check": args.check is not None,
    }
    given = [name for name, there in named.items() if there]
    if len(given) > 1:
        raise BadInput(f"{' and '.join(given)} ask for different failures", hint="ask for one at a time")
    if args.check is not None and not _words(args.check):
        raise BadInput("--check names no command", hint='for example --check "python check.py"')


def _words(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        raise BadInput(f"--check {command}: {error}", hint="quote it as for a shell") from error


def _placed(words: tuple[str, ...]) -> tuple[str, ...]:
    """The command with the files of this folder by their whole path: a script is run from any."""
    program, *rest = words
    first = os.path.abspath(program) if os.sep in program else program
    return first, *(os.path.abspath(word) if os.path.isfile(word) else word for word in rest)


def _is_about_rules(args: argparse.Namespace) -> bool:
    return bool(args.violation is not None or args.rule or args.node or args.strict or args.accelerator)


def _budget(args: argparse.Namespace) -> Budget:
    check_numbers(args, calls=1, seconds=0.001, try_seconds=0.0)
    match = re.fullmatch(r"(\d+)([kmg]?)i?b?", args.memory.strip().lower())
    if match is None:
        raise BadInput(f"--memory {args.memory} is no number of bytes", hint="for example 4G, 512M or 1073741824")
    return Budget(args.calls, args.seconds, args.try_seconds, int(match[1]) * _UNITS[match[2]])


def _failing(session: "Session", args: argparse.Namespace, against: Comparison) -> tuple[Run, Sought | None]:
    """The run that fails, and which of its failures to look for; None where nothing does. Raises BadInput where what
    was named is not there.
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
        return Sought("check", command=_placed(_words(args.check)))
    if args.graph_break is not None:
        return Sought("break", place=args.graph_break)
    if args.recompile is not None:
        return Sought("recompile", place=args.recompile)
    if args.violation is not None or args.rule:
        return _of_rule(done, args)
    if args.node:
        broken = any(chosen.is_at(each.node, args.node) for each in done.violations)
        return _of_rule(done, args) if broken else Sought("node", chosen.node(done, args.node))
    return None


def _of_rule(done: Run, args: argparse.Namespace) -> Sought:
    found = chosen.violation(done, args.violation, args.rule, args.node)
    if len(done.violations) > 1:
        number = chosen.number_of(done, found)
        output.note(f"idbg: violation {number} of {len(done.violations):,} (another: --violation N)")
    return Sought("violation", found.node, found.rule)


def _compared(session: "Session", against: Comparison, kernel: str) -> tuple[Run, Sought | None]:
    """The run, held against its reference: what is wrong with it, a side's failure, or None."""
    done = _ran(session, against)
    if done.cause is not None:
        return done, None if is_unusable(done) else Sought()
    if kernel and done.diff is not None:
        return done, Sought("wrong", launch=launch_named(done.diff, kernel))
    wrong = done.diff is not None and done.diff.verdict == "failed"
    return done, Sought("wrong") if wrong else None


def _hung(session: "Session", seconds: float) -> Run | None:
    """Run the program: the run, if it does not end within so many seconds and had to be stopped."""
    number = session.run()
    if session.wait(seconds):
        return None
    log.warning("it has not ended after %g s (--timeout): it hangs", seconds)
    session.cancel()
    session.wait()
    return session.history.runs[number]


def _ran(session: "Session", against: Comparison | None = None) -> Run:
    number = session.run(comparison=against)
    session.wait()
    return session.history.runs[number]


# ------------------------------------------------------------- what is told


def _report(found: Searched, *, as_json: bool) -> None:
    if as_json:
        from idbg.reports import repros_json

        output.say_json(repros_json.encode(repros_json.minify_report(found.run, found.repro)))
    else:
        for line in _lines(found):
            output.say(line)
    output.session(found.folder)


def _lines(found: Searched) -> list[str]:
    repro = found.repro
    if repro is None:
        return _nothing(found.run)
    lines = list(result_lines(repro.minified)) if repro.minified is not None else []
    if repro.failure is not None and not (repro.stopped and repro.minified is not None):
        lines.append(f"{status_words(repro)}: {repro.failure.message}")
        lines += [f"  {repro.failure.hint}"] if repro.failure.hint else []
    if repro.minified is None and repro.path:
        lines.append(f"the smallest script that has failed so far, not run in a fresh process: {repro.path}")
    return lines


def _nothing(done: Run) -> list[str]:
    if is_unusable(done):
        from idbg.reports import text

        return ["\n".join(text.run_report(done))]
    if not done.graphs:
        return [f"nothing fails: {done.program.label} ran, and nothing in it was compiled"]
    numbers = "" if done.diff is None else f", its numbers agree with {done.diff.reference}"
    rules = ", and it breaks no rule" if done.checked_rules else " (no rules were asked: --accelerator NAME does)"
    return [f"nothing fails: {done.program.label} compiles and runs with {done.backend}{numbers}{rules}"]
