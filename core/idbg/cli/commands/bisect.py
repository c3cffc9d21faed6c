"""Who is guilty of a failure: which part of the compiler, which options, or which commit of the program's?"""

import argparse
import math
import shlex
import time
from pathlib import Path

from msgspec.structs import replace

from idbg.accelerators.registry import rules_for
from idbg.bisect import options as option_sets
from idbg.bisect.job import bisected
from idbg.cli import exits, output
from idbg.cli.bar import Doing
from idbg.cli.signals import signals_told
from idbg.config.arguments import Asked, settle
from idbg.config.arguments import add_arguments as add_program_arguments
from idbg.schema.bisection import TRY_SECONDS, Bisected, Kind, OptionSet, Question, Tried
from idbg.schema.errors import BadInput
from idbg.schema.programs import Program, Target
from idbg.views import bisection
from idbg.views.bisection import OUTCOMES

HELP = "find who is guilty of a failure: which part of the compiler, which options, which commit"
ABOUT = """\
Find who is guilty of a failure: which part of the compiler, which of two sets of options, or which commit of the
program's. It fails as `idbg run` would; where it runs through, as `idbg diff` would; with --check, as the command does.
Every try is a process of its own, so a crash or a hang is a failure like others.
"""
EXAMPLES = (
    ("idbg bisect train.py", "which part of the compiler: backend, pass, lowering, kernel"),
    ("idbg bisect train.py --good v1.2 --bad HEAD", "which commit of the program's"),
    (
        "idbg bisect train.py --option-bad max_autotune=true --option-bad epilogue_fusion=false",
        "which of these options",
    ),
)
EXITS = {
    exits.DONE: "nothing fails",
    exits.FAILED: "somebody is guilty",
}
SEE = (
    "minify",
    "diff",
    "replay",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which program fails, and between what the guilty one is looked for."""
    add_program_arguments(parser, required=False, backend="inductor")
    search = parser.add_argument_group("search (without any of these: which part of the compiler)")
    search.add_argument("--good", metavar="REVISION", help="a commit of the program's at which it does not fail")
    search.add_argument("--bad", metavar="REVISION", help="a later one at which it does (HEAD)")
    search.add_argument(
        "--first-parent", action="store_true", help="of a merge only the branch that was merged into is looked at"
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
    search.add_argument("--seed", metavar="N", type=int, default=0, help="what is drawn (0)")
    how = parser.add_argument_group("tries")
    how.add_argument(
        "--check", metavar="COMMAND", help="what fails: a command, given the program's path last; 125 cannot tell"
    )
    how.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=TRY_SECONDS,
        help=f"a try that takes longer hangs ({TRY_SECONDS:g})",
    )


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Search, tell, and give the exit status as `EXITS` has it. Raises BadInput before anything runs."""
    question = _question(args, argv)
    stop: list[int] = []
    with signals_told(stop.append):  # the try in hand ends, and all is tidied up
        found = bisected(question, _told, lambda: bool(stop))
    _report(found, as_json=args.json)
    if stop:
        return 128 + stop[0]
    return exits.FAILED if found.part or found.options or found.commit else 0


def _question(args: argparse.Namespace, argv: tuple[str, ...]) -> Question:
    if not 0.001 <= args.timeout < math.inf:
        raise BadInput(f"--timeout is {args.timeout:g}", hint="give a number of seconds")
    kind, sets, names = _kind(args)
    command = tuple(shlex.split(args.check)) if args.check else ()
    if command and kind in ("options", "fuzz"):
        raise BadInput(
            "--check cannot be given options to try", hint="name the program instead: its options can be set"
        )
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
    """What runs, and for what; with a command there need be no program."""
    if args.program is None:
        if not command:
            raise BadInput("no program is named", hint="name a Python file, or a command with --check")
        return Program("", cwd=str(Path.cwd())), Target(backend=args.backend or args.default_backend)
    asked: Asked = settle(args, argv, strict=False)
    rules, _ = rules_for(asked.target)
    return asked.program, replace(asked.target, rules=rules, strict=False, own_backend=False)


def _kind(args: argparse.Namespace) -> tuple[Kind, tuple[OptionSet, ...], tuple[str, ...]]:
    """What is asked, with the option sets and their names. Raises BadInput for more than one question."""
    asked = {
        "--good": args.good is not None or args.bad is not None,
        "--config": bool(args.config),
        "--option-good and --option-bad": bool(args.option_good or args.option_bad),
        "--fuzz": args.fuzz is not None,
    }
    given = [name for name, there in asked.items() if there]
    if len(given) > 1:
        raise BadInput(f"{given[0]} and {given[1]} are two questions", hint="ask one after the other")
    match given:
        case ["--good"]:
            if args.good is None:
                raise BadInput("--bad needs a --good", hint="name a commit at which it does not fail")
            return "commits", (), ()
        case ["--config"]:
            if len(args.config) != 2:
                raise BadInput("--config is given twice", hint="name the files of both option sets")
            return "options", tuple(option_sets.of_file(Path(file)) for file in args.config), tuple(args.config)
        case ["--fuzz"]:
            if args.fuzz < 1:
                raise BadInput(f"--fuzz is {args.fuzz}", hint="how many option sets are to be drawn?")
            return "fuzz", (), ()
        case [_]:
            sets = (option_sets.of_texts(args.option_bad), option_sets.of_texts(args.option_good))
            return "options", sets, ("the bad options", "the good options")
        case _:
            return "compiler", (), ()


def _told(what: str, tried: Tried | None) -> None:
    """A line on stderr for each try: on a terminal as it begins, too."""
    if tried is not None:
        output.bar().clear()
        output.note(f"{what}: {OUTCOMES[tried.outcome]}")
    elif output.bar().on_terminal:
        output.bar().show(Doing(what, since=time.monotonic()))


def _report(found: Bisected, *, as_json: bool) -> None:
    if as_json:
        output.say_json(bisection.to_json(found))
    else:
        output.say(bisection.summary(found))
