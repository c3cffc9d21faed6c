"""Which script shows one violation, or a failed compile, of a program or of a saved session again?"""

import argparse
import os
import time
from pathlib import Path

from idbg.cli import chosen, exits, output, sessions
from idbg.cli.commands.run import is_unusable
from idbg.config import places, settings
from idbg.config.arguments import add_arguments as add_program_arguments
from idbg.config.arguments import settle
from idbg.schema.errors import BadInput
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run
from idbg.schema.session_repros import SessionRepro
from idbg.schema.violations import Violation
from idbg.views import repros as told

HELP = "write a script that shows one violation, or a failed compile, again; list those of a session"
ABOUT = """\
Write a script that shows one violation, or a failed compile, again, and try it; or list the violations of a program or
of a saved session. Without --violation, --rule or --node it is the failed compile.

A saved session is not changed: its program runs again, for its target and with the rules that were in force last.
`idbg minify` makes the script as small as can be.
"""
EXAMPLES = (
    ("idbg repro examples/mlp_train.py --accelerator tpu --list", "the violations, with their numbers"),
    ("idbg repro examples/mlp_train.py --accelerator tpu --violation 1", "a script of one"),
    ("idbg repro debug_artifacts/SESSION", "the failed compile of a session"),
)
EXITS = {
    exits.DONE: "nothing fails (any more), or --list",
    exits.FAILED: "the script failed so again in a fresh process",
    exits.UNDECIDED: "no script was seen to show it",
}
SEE = (
    "minify",
    "replay",
    "check",
)


REPRODUCED, NOTHING, UNSHOWN = 1, 0, 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which program or session, which of its violations, and whether that is told as text or as JSON."""
    add_program_arguments(parser, instead=sessions.SESSION)
    parser.add_argument("--violation", metavar="N", type=int, help="the Nth violation, as --list has them")
    parser.add_argument("--rule", metavar="NAME", default="", help="the severest violation of this rule")
    parser.add_argument("--node", metavar="NAME", default="", help="the severest violation at this node")
    parser.add_argument(
        "--list", action="store_true", help="the violations with their numbers, and the repros there are"
    )


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """List, or write, try and tell; the exit status is as `EXITS` has it. Raises BadInput before anything runs."""
    folder = None if args.module else sessions.named(args.program, args.output)
    if folder is not None:
        return _of_session(args, argv, folder)
    given = places.expanded(args.program)
    if given.suffix == "" and not args.module and not given.exists() and ":" not in args.program:
        sessions.find(args.program, args.output)
    asked = settle(args, argv, strict=False)
    return _written(args, asked.program, asked.target, places.expanded(asked.settings.output), None)


# ------------------------------------------------------------- a saved session


def _of_session(args: argparse.Namespace, argv: tuple[str, ...], folder: Path) -> int:
    """Raises BadInput where it is no session, has no run, or its target is said once more."""
    given = ("backend", "accelerator", "device", "strict", "dynamic")
    if argv or args.option or args.module or any(getattr(args, name) is not None for name in given):
        raise BadInput(
            "a session is run for its own target, with its own arguments",
            hint="to choose others, name the program's file in place of the session",
        )
    with sessions.opened(folder) as saved:
        last = saved.history.last
        if last is None:
            raise BadInput(f"the session {folder} has no run: there is nothing to reproduce", hint="run it: idbg run")
        if args.list:
            _report(args, last, saved.history.repros)
            return NOTHING
        before = None
        if _names_one(args):
            before = chosen.violation(last, args.violation, args.rule, args.node)
        else:
            _check_named(last)
        target = saved.target
    return _written(args, last.program, target, places.expanded(_output(args)), before)


def _output(args: argparse.Namespace) -> str:
    return settings.load(os.environ, {"output": args.output} if args.output else {}).output


def _names_one(args: argparse.Namespace) -> bool:
    return args.violation is not None or bool(args.rule or args.node)


# ------------------------------------------------------------- a run


def _written(
    args: argparse.Namespace, program: Program, target: Target, kept_in: Path, before: Violation | None
) -> int:
    """Run the program, have the repro written and tried, and tell. `before`: the violation that a session had."""
    from idbg.cli.one_run import a_session

    with a_session(program, target, kept_in) as session:
        number = session.run()
        session.wait()
        done = session.history.runs[number]
        found = _sought(args, done, before)
        if found is not None:
            session.export_repro(found.node, found.rule)
        elif done.cause is not None and not is_unusable(done) and not args.list and before is None:
            session.export_repro(None)
        session.wait()
        kept, folder = session.history.repros, session.folder
    asked = [repro for repro in kept if repro.origin == "written"]
    repro = asked[-1] if asked else None
    _report(args, done, kept, repro, before)
    output.session(folder)
    if repro is not None:
        return REPRODUCED if repro.reproduced else UNSHOWN
    return exits.BAD_USAGE if is_unusable(done) else NOTHING


def _sought(args: argparse.Namespace, done: Run, before: Violation | None) -> Violation | None:
    """The violation to show; None where it is the failed compile, or it is there no more."""
    if args.list or is_unusable(done):
        return None
    if before is not None:
        return _again(done, before)
    if _names_one(args):
        return chosen.violation(done, args.violation, args.rule, args.node)
    _check_named(done)
    return None


def _check_named(done: Run) -> None:
    """Raises BadInput where a violation has to be named."""
    if done.failure is None and done.cause is None and done.violations:
        raise BadInput(
            "the compile did not fail, and breaks rules: say which violation",
            hint="--violation N, --rule NAME or --node NAME; --list has their numbers",
        )


def _again(done: Run, before: Violation) -> Violation | None:
    """The same violation in a later run: at the same node, else at one of its name at its stage."""
    alike = [each for each in done.violations if each.rule == before.rule and each.node.name == before.node.name]
    same = [each for each in alike if each.node == before.node]
    return next(iter([*same, *(each for each in alike if each.node.graph.stage == before.node.graph.stage)]), None)


# ------------------------------------------------------------- what is told


def _report(
    args: argparse.Namespace,
    done: Run,
    kept: list[SessionRepro],
    repro: SessionRepro | None = None,
    before: Violation | None = None,
) -> None:
    if args.json:
        from idbg.reports import repros_json

        output.say_json(repros_json.encode(repros_json.repros_report(done, kept, repro)))
    elif args.list:
        output.say("\n".join(told.listed(done, kept, time.time())))
    elif repro is not None:
        output.say("\n".join(told.written_lines(repro)))
    elif is_unusable(done):
        from idbg.reports import text

        output.say("\n".join(text.run_report(done)))
    elif before is not None:
        output.say(f"run again, {done.program.label} does not break {before.rule} at {before.node.name} any more")
    else:
        output.say(f"nothing fails: {done.program.label} compiles and runs with {done.backend}")
