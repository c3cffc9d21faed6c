"""Find the cause of a failure: a part of the compiler, a set of options, or a commit of the program."""

import argparse
import shlex
import time
from pathlib import Path

from msgspec.structs import replace

from idbg.accelerators.registry import rules_for
from idbg.bisect import options as option_sets
from idbg.bisect.job import bisected
from idbg.cli import exits, output, parsing, tables
from idbg.cli.bar import Activity
from idbg.cli.signals import call_on_signal
from idbg.config.arguments import add_arguments as add_program_arguments
from idbg.config.arguments import settle
from idbg.schema.bisection import TRY_SECONDS, Kind, OptionSet, Question, Tried
from idbg.schema.errors import BadInput
from idbg.schema.programs import Program, Target
from idbg.views import bisection as view
from idbg.views.bisection import OUTCOMES

HELP = "find the cause of a failure: a part of the compiler, options, or a commit"
ABOUT = """\
Find the cause of a failure: a part of the compiler, one of two sets of options, or a commit of the program. The
failure is that of `idbg run`; where the run succeeds, that of `idbg diff`; with --check, that of the command. Each try
runs in its own process, so a crash or a hang is a failure like others.
"""
EXAMPLES = (
    ("idbg bisect train.py", "which part of the compiler: backend, pass, lowering, kernel"),
    ("idbg bisect train.py --good v1.2 --bad HEAD", "which commit of the program"),
    (
        "idbg bisect train.py --option-bad max_autotune=true --option-bad epilogue_fusion=false",
        "which of these options",
    ),
)
EXITS = {
    exits.DONE: "nothing fails",
    exits.FAILED: "the cause was found",
}
SEE = ("minify", "diff", "replay")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser, required=False, backend="inductor")
    search = parser.add_argument_group("search (without any of these: which part of the compiler)")
    search.add_argument("--good", metavar="REVISION", help="a commit of the program at which it does not fail")
    search.add_argument("--bad", metavar="REVISION", help="a later one at which it does (HEAD)")
    search.add_argument(
        "--first-parent", action="store_true", help="of a merge, look only at the branch that was merged into"
    )
    for which in ("good", "bad"):
        search.add_argument(
            f"--option-{which}",
            metavar="NAME=VALUE",
            action="append",
            default=[],
            help=f"an option of the set with which it {'does not fail' if which == 'good' else 'fails'}: Inductor's, "
            "dynamo.NAME, functorch.NAME or target.NAME; repeat for more",
        )
    search.add_argument(
        "--config", metavar="FILE.toml", action="append", default=[], help="an option set as a file; twice, for both"
    )
    search.add_argument("--fuzz", metavar="N", type=int, help="draw N option sets as torch's ConfigFuzzer does")
    search.add_argument("--seed", metavar="N", type=int, default=0, help="the seed of the draws (0)")
    how = parser.add_argument_group("tries")
    tables.add_sort(how)
    how.add_argument(
        "--check",
        metavar="COMMAND",
        help="a command that fails, with the program's path as its last argument; status 125: undecided",
    )
    parsing.add_timeout(how, TRY_SECONDS, "a try that takes longer hangs")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    tables.check_sort(args.sort, ("try", "outcome", "time"))
    question = _question(args, argv)
    stop: list[int] = []
    with call_on_signal(stop.append):  # the current try ends, and everything is cleaned up
        found = bisected(question, _show_try, lambda: bool(stop))
    output.report(lambda: view.as_json(found), lambda: tables.text(view.view(found), args.sort, check=False))
    if stop:
        return exits.SIGNALLED + stop[0]
    return exits.FAILED if found.part or found.options or found.commit else exits.DONE


def _question(args: argparse.Namespace, argv: tuple[str, ...]) -> Question:
    parsing.check_least(args, timeout=0.001)
    kind, sets, names = _kind(args)
    command = tuple(shlex.split(args.check)) if args.check else ()
    if command and kind in ("options", "fuzz"):
        raise BadInput("--check cannot try options", hint="name the program instead: its options can be set")
    program, target = _program(args, argv, command)
    return Question(
        kind,
        program,
        target,
        command=command,
        sets=sets,
        names=names,
        draws=args.fuzz or 0,
        seed=args.seed,
        good=args.good or "",
        bad=args.bad or "HEAD",
        first_parent=args.first_parent,
        seconds=args.timeout,
    )


def _program(args: argparse.Namespace, argv: tuple[str, ...], command: tuple[str, ...]) -> tuple[Program, Target]:
    """The program and the target. With --check the program may be left out."""
    if args.program is None:
        if not command:
            raise BadInput("no program is named", hint="name a Python file, or a command with --check")
        return Program("", cwd=str(Path.cwd())), Target(backend=args.backend or args.default_backend)
    request = settle(args, argv)
    rules, _ = rules_for(request.target)
    return request.program, replace(request.target, rules=rules, strict=False)


def _kind(args: argparse.Namespace) -> tuple[Kind, tuple[OptionSet, ...], tuple[str, ...]]:
    """The kind of search, the option sets and their names. Raises BadInput for more than one kind."""
    flags = {
        "--good": args.good is not None or args.bad is not None,
        "--config": bool(args.config),
        "--option-good and --option-bad": bool(args.option_good or args.option_bad),
        "--fuzz": args.fuzz is not None,
    }
    named = [name for name, is_there in flags.items() if is_there]
    if len(named) > 1:
        raise BadInput(f"{named[0]} and {named[1]} are two searches", hint="run one after the other")
    match named:
        case ["--good"]:
            if args.good is None:
                raise BadInput("--bad needs a --good", hint="name a commit at which it does not fail")
            return "commits", (), ()
        case ["--config"]:
            if len(args.config) != 2:
                raise BadInput("--config is needed twice", hint="name the files of both option sets")
            return "options", tuple(option_sets.of_file(Path(file)) for file in args.config), tuple(args.config)
        case ["--fuzz"]:
            if args.fuzz < 1:
                raise BadInput(f"--fuzz is {args.fuzz}", hint="give the number of option sets, from 1 up")
            return "fuzz", (), ()
        case [_]:
            sets = (option_sets.of_texts(args.option_bad), option_sets.of_texts(args.option_good))
            return "options", sets, ("the bad options", "the good options")
        case _:
            return "compiler", (), ()


def _show_try(what: str, tried: Tried | None) -> None:
    """Write a line to stderr for each finished try, and on a terminal for each that begins."""
    if tried is not None:
        output.bar().clear()
        output.note(f"{what}: {OUTCOMES[tried.outcome]}")
    elif output.bar().on_terminal:
        output.bar().show(Activity(what, since=time.monotonic()))
