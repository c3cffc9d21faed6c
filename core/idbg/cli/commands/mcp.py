"""How does another program ask idbg: an assistant that helps a programmer?"""

import argparse
from importlib.util import find_spec

from idbg.cli import exits, sessions
from idbg.config import places

HELP = "serve sessions to programs that help programmers, over the Model Context Protocol"
ABOUT = """\
Serve sessions over the Model Context Protocol, on stdin and stdout: a client starts this command itself. Its tools list
sessions, run a program, and tell violations, a part of a graph, a kernel's source, decisions, comparisons and the
smallest script that fails. Each answer is small, and names the command that shows it again.

It needs the package mcp: pip install 'idbg[mcp]'. Sessions are read in the output folder alone, and in the folders that
are named here. The tools run, diff and minify run the programs that the client names: --read-only leaves them out.
"""
EXAMPLES = (
    ("idbg mcp", "what a client's settings name as the command"),
    ("idbg mcp --read-only --output /data/sessions", "sessions of another folder, and no program is run"),
)
EXITS = {exits.DONE: "the client went away"}
NO_JSON = "it speaks JSON-RPC with a client; each tool is a command that has --json"
SEE = ("list", "run", "graph", "kernel", "analyze")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be read, and whether programs may be run."""
    parser.add_argument(
        "folders", metavar="FOLDER", nargs="*", help="may be read too: a session, or a folder of sessions"
    )
    parser.add_argument("--read-only", action="store_true", help="no tool that runs a program")
    sessions.add_output(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Serve until the client goes. Raises BadInput where the package is not installed, or a folder is not there."""
    from idbg.mcp.where import Where
    from idbg.schema.errors import BadInput

    folders = [places.expanded(text) for text in args.folders]
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"there is no folder {folder}", hint="name a session, or a folder of sessions")
    where = Where(sessions.output_folder(args.output), folders)
    if find_spec("mcp") is None:
        raise BadInput("idbg mcp needs the package mcp", hint="pip install 'idbg[mcp]'")
    from idbg.mcp.server import serve

    serve(where, runs=not args.read_only)
    return exits.DONE
