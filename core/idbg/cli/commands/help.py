"""Print the page of a command."""

import argparse
import os
import sys

from idbg.cli import color, exits, manual, output, parsing, streams, verbs
from idbg.schema.errors import BadInput

HELP = "print the whole page of a command, with examples"
ABOUT = """\
Print the whole page of a command: what it does, each argument, examples that work, its exit statuses, the files and
variables that it reads. It is the page of --help. With --json a program can read it.
"""
EXAMPLES = (
    ("idbg help minify", "the page of a command"),
    ("idbg help accelerators show", "the page of a subcommand"),
    ("idbg help run --json", "the same for a program"),
)
EXITS = {exits.DONE: "the page was printed"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", metavar="VERB", nargs="*", help="the command; without one, all of them in a line each")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    parser = _parser(args.words)
    if args.json:
        output.say_json({"schema": "idbg.help/1", **manual.as_data(parser)})
        return exits.DONE
    if parser.command is None:
        return streams.print_page(parsing.top_page())
    colored = color.is_wanted(sys.stdout, os.environ, args.color)
    return streams.print_page(manual.page(parser, parser.command, color=colored))


def _parser(words: list[str]) -> parsing.Parser:
    """Raises BadInput where there is no such command."""
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
            known = f"it has {', '.join(own)}" if own else f"idbg help {name} prints its page"
            raise BadInput(f"{parser.prog} has no command {word!r}", hint=known)
        parser = own[word]
    return parser
