"""What does one run of a program come to, as JSON for a machine or as text for a person?"""

import argparse
import sys
from pathlib import Path

from idbg.cli import exits, fail_on, output
from idbg.config.arguments import add_arguments as add_program_arguments
from idbg.schema.programs import NO_ACCELERATOR
from idbg.schema.runs import Run

HELP = "compile and run a program once, and report what came of it"
ABOUT = """\
Compile a program for a target, run it once, and report what came of it: its graphs, the rules that it breaks and where,
its kernels, graph breaks and recompiles, and why it failed if it did. It compiles in a process of its own. Everything
is kept as a session, which idbg show, analyze, report and others read.

A program is a file whose program() gives a model and its inputs, or any script that calls torch.compile. What stands
after -- is the script's own.
"""
EXAMPLES = (
    ("idbg run examples/mlp_train.py", "the report, as text; the last line says where the session is kept"),
    ("idbg run examples/mlp_train.py --accelerator tpu", "against an accelerator's rules"),
    (
        "idbg run train.py --backend inductor --fail-on break --fail-on recompile -- --epochs 1",
        "for CI: 1 if it breaks",
    ),
    ("idbg run train.py --fail-on break --baseline known.json", "1 only for a break that is not known yet"),
    ("idbg run -m package.train --json -q > run.json", "a module; as JSON alone"),
)
EXITS = {
    exits.DONE: "it ran, and nothing stopped it",
    exits.FAILED: "it failed, nothing was compiled, strict rules were broken, "
    "or what --fail-on names happened, and is not known",
    exits.OWN: "a script's own status, where it ends with another than 0",
}
SEE = ("check", "analyze", "diff", "report", "show")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which program is compiled for which target, and whether that is told as text or as JSON."""
    add_program_arguments(parser)
    fail_on.add_arguments(parser, fail_on.OF_A_RUN, "a failure does, and with --strict what the rules reject")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Compile, run and tell; the exit status is as `EXITS` has it."""
    from idbg.cli.one_run import one_run
    from idbg.config import places
    from idbg.config.arguments import settle

    asked = settle(args, argv, strict=False)
    watch = fail_on.asked(args)
    if args.strict and asked.target.accelerator == NO_ACCELERATOR:
        output.note("--strict refuses nothing here: no accelerator is chosen (--accelerator NAME)")
    kept_in, stdout = places.expanded(asked.settings.output), None if args.json else sys.stdout
    done, folder = one_run(asked.program, asked.target, kept_in, stdout=stdout)
    _report(done, as_json=args.json, folder=folder)
    return watched_status(done, watch)


def watched_status(run: Run, watch: fail_on.Watch) -> int:
    """The exit status that says what came of the run, and whether what is watched for happened."""
    from idbg.reports.diagnostics import diagnostics

    if run.verdict == "failed" and never_began(run):
        return exits.BAD_USAGE
    found = diagnostics(run)
    fails = fail_on.fails(watch, found, watch.of(run, ("failure", "reject") if run.target.strict else ("failure",)))
    if run.exit_status or not watch.path:
        return status(run) or (exits.FAILED if fails else 0)
    told = run.verdict in ("clean", "violations") or any(each.kind == "failure" for each in found)
    return exits.FAILED if fails or not told else 0


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
        return exits.BAD_USAGE
    if run.exit_status:
        return run.exit_status
    if run.verdict not in ("clean", "violations"):
        return exits.FAILED
    rejected = any(violation.severity == "reject" for violation in run.violations)
    return exits.FAILED if rejected and run.target.strict else 0


def _report(done: Run, *, as_json: bool, folder: Path) -> None:
    if as_json:
        from idbg.reports import json

        output.say_json(json.encode(json.run_report(done)))
    else:
        from idbg.reports import text

        output.say("\n".join(text.run_report(done)))
    output.session(folder)
