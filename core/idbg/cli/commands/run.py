"""Compile and run a program once, and report the result."""

import argparse
import sys

from idbg.cli import exits, fail_on, output
from idbg.config import launching
from idbg.config.arguments import add_arguments as add_program_arguments
from idbg.schema.errors import BadInput
from idbg.schema.programs import NO_ACCELERATOR, SUCCESSFUL
from idbg.schema.runs import Run

HELP = "compile and run a program once, and report the result"
ABOUT = """\
Compile a program for a target, run it once, and report the result: its graphs, the rules that it breaks and where, its
kernels, graph breaks and recompiles, and why it failed if it did. It compiles in its own process. Everything is kept as
a session, which idbg show, analyze, report and others read.

A program is a file whose program() returns a model and its inputs, or any script that calls torch.compile. Arguments
after -- are the script's own.

With --nproc-per-node the script runs as a job of several ranks, which torch's own launcher starts; without a program,
what follows -- is the whole command of a job: torchrun, mpirun, srun, gunicorn. Each process that it starts and that
compiles is captured as one of the session; ranks are compared: which one waits for whom, and where they differ first.
"""
EXAMPLES = (
    ("idbg run examples/mlp_train.py", "the report, as text; the last line says where the session is kept"),
    ("idbg run examples/mlp_train.py --accelerator tpu", "check an accelerator's rules"),
    (
        "idbg run train.py --backend inductor --fail-on break --fail-on recompile -- --epochs 1",
        "for CI: exit status 1 for a break or a recompile",
    ),
    ("idbg run train.py --fail-on break --baseline known.json", "1 only for a break that is not known yet"),
    ("idbg run -m package.train --json -q > run.json", "a module; only JSON"),
    ("idbg run --nproc-per-node 2 examples/distributed/ddp.py", "two ranks, compared with each other"),
    ("idbg run -- torchrun --nproc-per-node 2 train.py", "the same of a job that another command starts"),
)
EXITS = {
    exits.DONE: "it ran, and nothing stopped it",
    exits.FAILED: "it failed, nothing was compiled, strict rules were broken, "
    "or what --fail-on names happened, and is not known",
    exits.OWN: "a script's own status, where it ends with another than 0",
}
SEE = ("check", "analyze", "diff", "report", "show")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser, required=False)
    launching.add_arguments(parser)
    fail_on.add_arguments(parser, fail_on.OF_A_RUN, "a failure does, and with --strict what the rules reject")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    from idbg.cli.one_run import print_run, run_once
    from idbg.cli.sessions import processes_of
    from idbg.config.arguments import settle
    from idbg.render.text import text
    from idbg.session.summaries import read_whole
    from idbg.views.processes import view

    if launching.is_requested(args) or (args.program is None and argv):
        from idbg.cli.ranks import run_job

        return run_job(args, argv)
    if args.program is None:
        raise BadInput("no program is named", hint="idbg run FILE.py; idbg run -- torchrun ... for a whole command")
    request = settle(args, argv)
    policy = fail_on.requested(args)
    if args.strict and request.target.accelerator == NO_ACCELERATOR:
        output.note("--strict refuses nothing here: no accelerator is chosen (--accelerator NAME)")
    done, folder = run_once(request, stdout=None if args.json else sys.stdout)
    if done.children:  # how the last of them ended is known as the session is closed
        history = read_whole(folder)[1]
        done = history.runs[done.number]
    print_run(done)
    if done.children and not args.json:
        output.say(text(view(processes_of(folder, history), run=done)))
    output.session(folder)
    return status_with_policy(done, policy)


def status_with_policy(run: Run, policy: fail_on.Policy) -> int:
    """The exit status of the run, with --fail-on and --baseline. What its processes failed in counts where these name
    failures.
    """
    if run.verdict == "failed" and never_began(run):
        return exits.BAD_USAGE
    always = ("failure", "reject") if run.target.strict else ("failure",)
    fails, known = fail_on.judge(policy, run, always)
    if run.exit_status or not policy.path:
        return status(run) or (exits.FAILED if fails else exits.DONE)
    return exits.FAILED if fails or not (known or run.own_verdict in SUCCESSFUL) else exits.DONE


def never_began(run: Run) -> bool:
    """Whether nothing ran: what was requested is not there."""
    failure = run.failure
    return failure is not None and failure.kind == "input" and failure.type == "BadInput" and not run.frames


def is_unusable(run: Run) -> bool:
    """Whether the user's input cannot be run: there is no failure to reproduce."""
    return run.failure is not None and run.failure.kind == "input" and not run.frames


def status(run: Run) -> int:
    """The exit status of the run."""
    if run.verdict == "failed" and never_began(run):
        return exits.BAD_USAGE
    if run.exit_status:
        return run.exit_status
    if run.verdict == "waiting" or run.own_verdict not in SUCCESSFUL:  # what processes failed in, the program survived
        return exits.FAILED
    rejected = any(violation.severity == "reject" for violation in run.violations)
    return exits.FAILED if rejected and run.target.strict else exits.DONE
