"""What can `idbg-tui` be given? It stands here, as its page and its completion are made as those of the commands."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn, cast

from idbg.cli import color, exits, parsing, sessions, streams, verbs
from idbg.config.arguments import add_arguments as add_program_arguments

HELP = "the debugger's screen: compile a program, or open a saved session"
ABOUT = """\
Compile a program and look at everything that comes of it: graphs, the rules that they break, kernels, numbers, time; or
open the folder of a saved session, which needs no torch. With nothing, on a terminal: choose among the last sessions
and the examples. `?` on the screen tells the keys.
"""
EXAMPLES = (
    ("idbg-tui examples/mlp_train.py", "compile it, and look"),
    ("idbg-tui examples/mlp_train.py --accelerator tpu --backend aot", "against an accelerator's rules"),
    ("idbg-tui debug_artifacts/SESSION", "what happened in a session"),
    ("idbg-tui --tour", "five minutes: where everything is"),
)
EXITS = {exits.DONE: "you left the screen"}
NO_JSON = "it is a screen: idbg run --json and idbg show --json tell the same"
SEE = ("tour", "open", "run")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What is shown, and how."""
    add_program_arguments(parser, required=False, instead=sessions.SESSION)
    parser.add_argument("--theme", help="a theme's name (idbg-dark)")
    parser.add_argument("--tour", action="store_true", help="five minutes with a small model: where everything is")


def parser() -> parsing.Parser:
    """The parser of `idbg-tui`, with its page."""
    made = parsing.Parser("idbg-tui", ABOUT)
    made.command = cast("verbs.CliCommand", sys.modules[__name__])
    add_arguments(made)
    parsing.add_pages(made.add_argument_group("other flags"), parsing.page_of, has_version=True)
    return made


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """The command line. Raises SystemExit with 0 for --help, which is printed, and with 2 for what is none of ours."""
    streams.hold()
    try:
        return parsing.whole(parser(), argv)
    except parsing.HelpAsked as asked:
        raise SystemExit(streams.printed(asked.text)) from None
    except parsing.UsageProblem as problem:
        refuse(problem.message, problem.hint)


def refuse(message: str, hint: str) -> NoReturn:
    """Say what is wrong with the command line. Raises SystemExit."""
    painted = color.paint(message, "red") if color.is_wanted(sys.stderr, os.environ) else message
    print(f"idbg-tui: {painted}\n  {hint}", file=sys.stderr)
    raise SystemExit(exits.BAD_USAGE)
