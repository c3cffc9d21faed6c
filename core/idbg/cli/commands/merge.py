"""Join the sessions that the hosts of one job wrote."""

import argparse

from idbg.cli import exits, output, sessions
from idbg.schema.errors import BadInput

HELP = "join the sessions that the hosts of one job wrote"
ABOUT = """\
Join the sessions of the hosts of a distributed job into one: the ranks of all of them are its processes, and are
compared. The sessions stay as they are. Hosts that write to a shared folder need no merge: idbg run --session FOLDER.
"""
EXAMPLES = (("idbg merge host0/train-20260301-101500 host1/train-20260301-101502", "two hosts of one job"),)
EXITS = {exits.DONE: "the session was written"}
SEE = ("run", "analyze", "show")
SCHEMA = "idbg.merge/1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sessions", metavar="SESSION", nargs="+", help=sessions.SESSION)
    sessions.add_output(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    from idbg.cli.ranks import report
    from idbg.session.merging import merge

    if len(args.sessions) < 2:
        raise BadInput("one session is named", hint="name those of all hosts: idbg merge A B")
    found = [sessions.find(text, args.output) for text in args.sessions]
    if len(set(found)) < len(found):
        raise BadInput(f"{found[0]} is named twice", hint="name the session of each host once")
    folder = merge(found, sessions.output_folder(args.output))
    report(folder, SCHEMA)
    output.session(folder)
    return exits.DONE
