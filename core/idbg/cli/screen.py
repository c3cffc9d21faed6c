"""The command line of `idbg-tui`. It is declared here so that its help page and completion are made like the others."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NoReturn, cast

from idbg.cli import color, exits, parsing, sessions, streams, verbs
from idbg.config import launching
from idbg.config.arguments import add_arguments as add_program_arguments

HELP = "the debugger's screen: compile a program, or open a saved session"
ABOUT = """\
Compile a program and look at the result: graphs, broken rules, kernels, numbers, time; or open the folder of a saved
session, which needs no torch. Without arguments, on a terminal: choose among the last sessions and the examples. `?` on
the screen lists the keys.
"""
EXAMPLES = (
    ("idbg-tui examples/mlp_train.py", "compile it, and look"),
    ("idbg-tui examples/mlp_train.py --accelerator tpu --backend aot", "check an accelerator's rules"),
    ("idbg-tui debug_artifacts/SESSION", "open a saved session"),
    ("idbg-tui --nproc-per-node 2 examples/distributed/ddp.py", "a job of two ranks: # lists and compares them"),
    ("idbg-tui --tour", "a tour of the screen in five minutes"),
)
EXITS = {exits.DONE: "you left the screen"}
NO_JSON = "it is a screen: use idbg run --json or idbg show --json"
SEE = ("tour", "open", "run")
PACKAGES = ("idbg_tui", "textual")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser, required=False, instead=sessions.SESSION)
    launching.add_arguments(parser)
    parser.add_argument("--theme", help="a theme's name (default: idbg-dark)")
    parser.add_argument("--tour", action="store_true", help="a tour of the screen in five minutes, with a small model")


def parser() -> parsing.Parser:
    """The parser of `idbg-tui`, with its page."""
    made = parsing.Parser("idbg-tui", ABOUT)
    made.command = cast("verbs.CliCommand", sys.modules[__name__])
    add_arguments(made)
    parsing.add_pages(made.add_argument_group("other flags"), parsing.page_of, has_version=True)
    return made


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line. Raises SystemExit(0) after --help, SystemExit(2) for bad usage."""
    streams.prepare()
    try:
        return parsing.whole(parser(), argv)
    except parsing.HelpRequested as request:
        raise SystemExit(streams.print_page(request.text)) from None
    except parsing.UsageProblem as problem:
        refuse(problem.message, problem.hint)


def refuse(message: str, hint: str) -> NoReturn:
    """Print what is wrong with the command line. Raises SystemExit."""
    painted = color.paint(message, "red") if color.is_wanted(sys.stderr, os.environ) else message
    print(f"idbg-tui: {painted}\n  {hint}", file=sys.stderr)
    raise SystemExit(exits.BAD_USAGE)


def become_screen(arguments: Sequence[str]) -> int:
    """Replace this process by `idbg-tui ARGUMENTS`. The screen's package is not imported here.

    Raises BadInput if it is not installed.
    """
    from idbg.schema.errors import BadInput

    if missing := [name for name in PACKAGES if find_spec(name) is None]:
        raise BadInput(
            f"the screen is not installed here: there is no package {missing[0]}",
            hint="install it with pip install --force-reinstall idbg; idbg run and idbg report work without it",
        )
    sys.stdout.flush()
    sys.stderr.flush()
    # -P: modules in the current folder must not be imported in place of ours
    os.execv(sys.executable, [sys.executable, "-P", "-m", PACKAGES[0], *arguments])
