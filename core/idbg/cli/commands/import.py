"""Import the trace of a job as a session."""

import argparse
from pathlib import Path

from idbg.cli import exits, output, sessions
from idbg.config import places

HELP = "import the trace of a job that ran without idbg, as a session"
ABOUT = """\
Import what a job left as a session: a TORCH_TRACE folder, of any number of processes and ranks, or one file of it. The
graphs, code, kernels, guards, breaks, recompiles, times and cache answers that are in it are shown by every command,
and rules are checked on its graphs. No torch is needed, and nothing is run.

The other commands import by themselves: idbg show FOLDER, idbg open FOLDER, idbg report FOLDER -o report.html.
"""
EXAMPLES = (
    ("idbg import /tmp/trace", "what TORCH_TRACE=/tmp/trace python train.py left"),
    ("idbg import /tmp/trace --accelerator tpu", "and check its graphs against an accelerator"),
)
EXITS = {exits.DONE: "the session was written, also where a part of the trace could not be read"}
SEE = ("open", "show", "report", "analyze")
SCHEMA = "idbg.import/1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="PATH", help="a folder of traces, or a file of one")
    parser.add_argument("--accelerator", metavar="NAME", default="", help="check the graphs against its rules")
    sessions.add_output(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    folder = sessions.import_trace(places.expanded(args.trace), args.output, args.accelerator)
    if args.json:
        output.say_json({"schema": SCHEMA, "session": str(folder)})
    output.session(Path(folder))
    return exits.DONE
