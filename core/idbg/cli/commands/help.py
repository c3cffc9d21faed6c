"""What is there to know of a command?"""

import argparse
import os
import sys

from idbg.cli import color, exits, manual, output, parsing, streams, verbs
from idbg.schema.errors import BadInput

HELP = "tell all of a command, with examples"
ABOUT = """\
Tell all of a command: what it does, each argument, examples that work, what it exits with, which files and variables it
reads. It is what --help prints. With --json a program can read it.
"""
EXAMPLES = (
    ("idbg help minify", "all of one command"),
    ("idbg help accelerators show", "a command's own command"),
    ("idbg help run --json", "the same for a program"),
)
EXITS = {exits.DONE: "it was told"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of which command."""
    parser.add_argument("words", metavar="VERB", nargs="*", help="the command; without one, all of them in a line each")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Print its page. Raises BadInput where there is no such command."""
    parser = _parser(args.words)
    if args.json:
        output.say_json({"schema": "idbg.help/1", **manual.as_data(parser)})
        return exits.DONE
    if parser.command is None:
        return streams.printed(parsing.top_page())
    colored = color.is_wanted(sys.stdout, os.environ, args.color)
    return streams.printed(manual.page(parser, parser.command, color=colored))


def _parser(words: list[str]) -> parsing.Parser:
    if not words:
        return parsing.top()
    name, *more = words
    if name not in verbs.names():
        problem = parsing.unknown(name)
        raise BadInput(problem.message, hint=problem.hint)
    parser = parsing.of_command(name)
    for word in more:
        own = {each.prog.rpartition(" ")[2]: each for each in parsing.under(parser)}
        if word not in own:
            known = f"it has {', '.join(own)}" if own else f"idbg help {name} tells all of it"
            raise BadInput(f"{parser.prog} has no command {word!r}", hint=known)
        parser = own[word]
    return parser
