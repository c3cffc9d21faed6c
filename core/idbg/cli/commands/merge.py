"""Join the sessions that the hosts of one job wrote."""

import argparse
from contextlib import ExitStack
from pathlib import Path

from idbg.cli import exits, output, sessions
from idbg.format.plain_text import one_line
from idbg.schema.errors import BadInput

HELP = "join the sessions that the hosts of one job wrote"
ABOUT = """\
Join the sessions of the hosts of a distributed job into one: the ranks of all of them are its processes, and are
compared. The sessions stay as they are; one may be an archive (zip, tar), as it was sent. Hosts that write to a shared
folder need no merge: idbg run --session FOLDER.
"""
EXAMPLES = (
    ("idbg merge host0/train-20260301-101500 host1/train-20260301-101502", "two hosts of one job"),
    ("idbg merge last host1.tar.gz", "the session of the other host as an archive"),
)
EXITS = {exits.DONE: "the session was written"}
SEE = ("run", "analyze", "show")
SCHEMA = "idbg.merge/1"
_ONCE = "name the session of each host once"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sessions", metavar="SESSION", nargs="+", help=sessions.SESSION)
    sessions.add_output(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    from idbg.cli.ranks import report
    from idbg.config import places
    from idbg.session.merging import merge, unpacked
    from idbg.traces.sources import kind_of

    if len(args.sessions) < 2:
        raise BadInput("one session is named", hint="name those of all hosts: idbg merge A B")
    into = sessions.output_folder(args.output)
    archives: dict[Path, Path] = {}
    with ExitStack() as stack:
        found = []
        for text in args.sessions:
            path = places.expanded(text).absolute()
            if kind_of(path) != "archive":
                found.append(sessions.find(text, args.output))
                continue
            if path in archives.values():
                raise BadInput(f"{path} is named twice", hint=_ONCE)
            session, left_out = stack.enter_context(unpacked(path, into))
            found.append(session)
            archives[session] = path
            for sentence in left_out:
                output.note(one_line(f"idbg: {sentence}"))
        if len(set(found)) < len(found):
            raise BadInput(f"{found[0]} is named twice", hint=_ONCE)
        folder = merge(found, into, archives)
    report(folder, SCHEMA)
    output.session(folder)
    return exits.DONE
