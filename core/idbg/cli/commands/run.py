"""What does one run of a program come to, as JSON for a machine or as text for a person?"""

import argparse
import sys
from pathlib import Path

from idbg.cli import BAD_USAGE, FAILED, fail_on, printing
from idbg.cli.one_run import one_run
from idbg.config import places
from idbg.config.arguments import add_arguments as add_program_arguments
from idbg.config.arguments import settle
from idbg.schema.runs import Run

HELP = "compile and run a program once, and report what came of it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which program is compiled for which target, and whether that is told as text or as JSON."""
    parser.epilog = EXITS
    add_program_arguments(parser)
    parser.add_argument("--json", action="store_true", help="the report as JSON on stdout, and nothing else there")
    fail_on.add_argument(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Compile, run and tell; the exit status is as `EXITS` has it."""
    asked = settle(args, argv, strict=True)
    done, folder = one_run(asked.program, asked.target, places.expanded(asked.settings.output))
    _report(done, as_json=args.json, folder=folder)
    happened = fail_on.happened(done, args.fail_on)
    return status(done) or (FAILED if happened else 0)


EXITS = """\
exit status: a script's own, where it ends with another than 0; else 0, or 1 if the run failed, nothing was compiled,
strict rules were broken, or what --fail-on names happened; 2 for bad usage
"""


def never_began(run: Run) -> bool:
    """Whether there was nothing to run: what was asked for cannot be had."""
    failure = run.failure
    return failure is not None and failure.kind == "input" and failure.type == "BadInput" and not run.frames


def is_unusable(run: Run) -> bool:
    """Whether what the user gave us cannot be run: there is nothing of it that could be shown again."""
    return run.failure is not None and run.failure.kind == "input" and not run.frames


def status(run: Run) -> int:
    """The exit status that says what came of the run."""
    if run.verdict == "failed" and never_began(run):
        return BAD_USAGE
    if run.exit_status:
        return run.exit_status
    if run.verdict not in ("clean", "violations"):
        return FAILED
    rejected = any(violation.severity == "reject" for violation in run.violations)
    return FAILED if rejected and run.target.strict else 0


def _report(run: Run, *, as_json: bool, folder: Path) -> None:
    with printing():
        if as_json:
            from idbg.reports import json

            sys.stdout.buffer.write(json.encode(json.run_report(run)) + b"\n")
            return
        from idbg.reports import text

        print(text.render(text.run_report(run)))
    print(f"session: {folder}", file=sys.stderr)
