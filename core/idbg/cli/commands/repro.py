"""Write a script that reproduces a violation, a failed compile or a wrong result of a program or a saved session."""

import argparse
import time
from pathlib import Path

from msgspec.structs import replace

from idbg.cli import exits, output, selection, sessions
from idbg.cli.commands.run import is_unusable
from idbg.config import places
from idbg.config.arguments import Request, request_of, settle
from idbg.config.arguments import add_arguments as add_program_arguments
from idbg.schema.diff import Comparison
from idbg.schema.errors import BadInput
from idbg.schema.repros import Budget, Sought
from idbg.schema.runs import Run
from idbg.schema.session_repros import SessionRepro
from idbg.schema.violations import Violation
from idbg.views import repros as view

HELP = "write a script that reproduces one violation, a failed compile or a wrong result; list those of a session"
ABOUT = """\
Write a script that reproduces one violation, a failed compile or a wrong result, and try it; or list the violations of
a program or of a saved session. Without --violation, --rule or --node it is the failed compile, or, with --wrong and of
a session whose comparison failed, the wrong result. A script in which nothing fails is not kept.

A saved session is not changed: its program runs again, for its target and with the last rules. `idbg minify` makes the
script as small as it can be.
"""
EXAMPLES = (
    ("idbg repro examples/mlp_train.py --accelerator tpu --list", "the violations, with their numbers"),
    ("idbg repro examples/mlp_train.py --accelerator tpu --violation 1", "a script of one"),
    ("idbg repro debug_artifacts/SESSION", "the failed compile, or the wrong result, of a session"),
)
EXITS = {
    exits.DONE: "nothing fails (any more), or --list",
    exits.FAILED: "the script reproduced the failure in a fresh process",
    exits.UNDECIDED: "no script reproduced it",
}
SEE = ("minify", "replay", "check")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser, instead=sessions.SESSION)
    add_violation(parser)
    parser.add_argument("--wrong", action="store_true", help="the wrong result, compared as idbg diff")
    parser.add_argument("--list", action="store_true", help="list the violations with their numbers, and the repros")


def add_violation(parser: argparse._ActionsContainer) -> None:
    """The flags that name a violation. `selection.violation` reads them."""
    parser.add_argument("--violation", metavar="N", type=int, help="the run's Nth violation (idbg repro FILE --list)")
    parser.add_argument("--rule", metavar="NAME", default="", help="the severest violation of this rule")
    parser.add_argument(
        "--node", metavar="NAME", default="", help="the severest violation at this node (minify: or what feeds it)"
    )


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    folder = sessions.saved(args)
    if folder is not None:
        return _of_session(args, argv, folder)
    path = places.expanded(args.program)
    if path.suffix == "" and not args.module and not path.exists() and ":" not in args.program:
        sessions.find(args.program, args.output)  # raises: it names neither
    if args.wrong and args.backend is None:
        args.default_backend = "inductor"
    return _write(args, settle(args, argv), None, Comparison(per_kernel=True) if args.wrong else None)


def _of_session(args: argparse.Namespace, argv: tuple[str, ...], folder: Path) -> int:
    """Raises BadInput where the session has no run, or the command line names another target."""
    names = ("backend", "accelerator", "device", "strict", "dynamic")
    if argv or args.option or args.module or any(getattr(args, name) is not None for name in names):
        raise BadInput(
            "a session runs for its own target, with its own arguments",
            hint="to choose others, name the program's file in place of the session",
        )
    with sessions.opened(folder) as session:
        last = sessions.last_run(session.history, folder)
        if args.list:
            _report(args, last, session.history.repros)
            return exits.DONE
        before = comparison = None
        if args.wrong or (last.diff is not None and last.diff.verdict == "failed"):
            comparison = replace(last.comparison or Comparison(), per_kernel=True)
        if selection.names_violation(args):
            before, comparison = selection.violation(last, args), None
        elif comparison is None:
            _check_named(last)
        target = session.target
    return _write(args, request_of(args, last.program, target), before, comparison)


def _write(args: argparse.Namespace, request: Request, before: Violation | None, comparison: Comparison | None) -> int:
    """Run the program, write and try the repro, and report. `before`: the violation of the saved session;
    `comparison`: the one that finds the wrong result.
    """
    from idbg.cli.one_run import open_session, run_in

    with open_session(request) as session:
        done = run_in(session, comparison)
        found = _violation(args, done, before) if comparison is None else None
        if done.diff is not None and done.diff.verdict == "failed":
            session.minify(Sought("wrong"), Budget(first=True))
        elif found is not None:
            session.export_repro(found.node, found.rule)
        elif done.cause is not None and not is_unusable(done) and not args.list and before is None:
            session.export_repro(None)
        session.wait()
        kept = session.history.repros
    repro = next((each for each in reversed(kept) if each.origin in ("written", "minified")), None)
    _report(args, done, kept, repro, before)
    output.session(session.folder)
    return repro_status(done, repro)


def repro_status(run: Run, repro: SessionRepro | None) -> int:
    """The exit status of a run and its repro; also of `idbg minify`."""
    if repro is not None:
        return exits.FAILED if repro.reproduced else exits.UNDECIDED
    return exits.BAD_USAGE if is_unusable(run) else exits.DONE


def _violation(args: argparse.Namespace, done: Run, before: Violation | None) -> Violation | None:
    """The violation to reproduce; None for the failed compile, and where it is gone."""
    if args.list or is_unusable(done):
        return None
    if before is not None:
        return _again(done, before)
    if selection.names_violation(args):
        return selection.violation(done, args)
    _check_named(done)
    return None


def _check_named(done: Run) -> None:
    """Raises BadInput where a violation has to be named."""
    if done.failure is None and done.cause is None and done.violations:
        raise BadInput(
            "the compile did not fail, but rules are broken: name a violation",
            hint="--violation N, --rule NAME or --node NAME; --list has their numbers",
        )


def _again(done: Run, before: Violation) -> Violation | None:
    """The same violation in a later run: at the same node, else at a node of the same name and stage."""
    alike = [each for each in done.violations if each.rule == before.rule and each.node.name == before.node.name]
    same = [each for each in alike if each.node == before.node]
    return next(iter([*same, *(each for each in alike if each.node.graph.stage == before.node.graph.stage)]), None)


def _report(
    args: argparse.Namespace,
    done: Run,
    kept: list[SessionRepro],
    repro: SessionRepro | None = None,
    before: Violation | None = None,
) -> None:
    from idbg.reports import repros_json

    def text() -> str:
        if args.list:
            return "\n".join(view.listed(done, kept, time.time()))
        if repro is not None:
            return "\n".join(view.written_lines(repro))
        if before is not None and not is_unusable(done):
            return f"run again, {done.program.label} does not break {before.rule} at {before.node.name} any more"
        return nothing_fails(done)

    output.report(lambda: repros_json.repros_report(done, kept, repro), text)


def nothing_fails(done: Run) -> str:
    """The sentence of a run without a failure; of input that cannot be run the report that says why."""
    if is_unusable(done):
        from idbg.reports import text

        return "\n".join(text.run_report(done))
    return f"nothing fails: {done.program.label} compiles and runs with {done.backend}"
