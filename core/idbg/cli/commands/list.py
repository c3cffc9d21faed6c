"""Which sessions are there, and what came of each?"""

import argparse
import os
import sys
from pathlib import Path

from idbg.cli import printing
from idbg.config import places, settings
from idbg.schema.summaries import SessionSummary
from idbg.session.index import sessions

HELP = "list the sessions that are kept, the newest first, and what came of each"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where they lie, and whether they are told as text or as JSON."""
    parser.add_argument("--output", metavar="FOLDER", help="where sessions are kept (debug_artifacts)")
    parser.add_argument("--json", action="store_true", help="as JSON on stdout, and nothing else there")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Tell what there is; 0, also where there is nothing."""
    output = places.expanded(args.output or settings.load(os.environ).output)
    _report(sessions(output), output, as_json=args.json)
    return 0


def _report(found: list[SessionSummary], output: Path, *, as_json: bool) -> None:
    with printing():
        if as_json:
            from idbg.reports import json

            sys.stdout.buffer.write(json.encode({"schema": "idbg.list/1", "sessions": found}) + b"\n")
            return
        for each in found:
            print(each.name, each.program, each.said)
