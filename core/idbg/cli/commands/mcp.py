"""Serve sessions over the Model Context Protocol."""

import argparse
from importlib.util import find_spec

from idbg.cli import exits, sessions
from idbg.config import places

HELP = "serve sessions to coding assistants, over the Model Context Protocol"
ABOUT = """\
Serve sessions over the Model Context Protocol, on stdin and stdout: a client starts this command itself. Its tools list
sessions, run a program, and show violations, a part of a graph, a kernel's source, decisions, comparisons and the
smallest script that fails. Each answer is small, and names the command that prints it again.

It needs the package mcp: pip install 'idbg[mcp]'. Only sessions in the output folder, and in the folders that are named
here, can be read. The tools run, diff and minify run the programs that the client names: --read-only leaves them out.
"""
EXAMPLES = (
    ("idbg mcp", "the command for a client's settings"),
    ("idbg mcp --read-only --output /data/sessions", "sessions of another folder, and no program is run"),
)
EXITS = {exits.DONE: "the client disconnected"}
NO_JSON = "it speaks JSON-RPC with a client; each tool is a command that has --json"
SEE = ("list", "run", "graph", "kernel", "analyze")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folders", metavar="FOLDER", nargs="*", help="also read this: a session, or a folder of sessions"
    )
    parser.add_argument("--read-only", action="store_true", help="no tool that runs a program")
    sessions.add_output(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    from idbg.mcp.where import AllowedSessions
    from idbg.schema.errors import BadInput

    folders = [places.expanded(text) for text in args.folders]
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"there is no folder {folder}", hint="name a session, or a folder of sessions")
    allowed = AllowedSessions(sessions.output_folder(args.output), folders)
    if find_spec("mcp") is None:
        raise BadInput("idbg mcp needs the package mcp", hint="pip install 'idbg[mcp]'")
    from idbg.mcp.server import serve

    serve(allowed, runs=not args.read_only)
    return exits.DONE
