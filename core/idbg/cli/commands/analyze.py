"""Why did the compiler do what it did with a program: breaks, recompiles, guards, time, fusion, caches?"""

import argparse
import sys
from pathlib import Path

from idbg.cli import BAD_USAGE, FAILED, printing
from idbg.cli.commands.run import never_began
from idbg.cli.one_run import one_run
from idbg.config import places
from idbg.config.arguments import add_arguments as add_program_arguments
from idbg.config.arguments import settle
from idbg.reports import decisions
from idbg.schema.runs import Run

HELP = "tell why the compiler did what it did: breaks, recompiles, guards, time, fusion, caches"
EXITS = """\
exit status: 0; 1 if nothing was compiled, the run failed, or what --fail-on names happened; 2 for bad usage
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which program, what is asked of it, and whether that is told as text or as JSON."""
    parser.epilog = EXITS
    add_program_arguments(parser)
    parser.add_argument(
        "--type",
        action="append",
        choices=list(decisions.TYPES),
        dest="types",
        help="what is asked (again for more; default: summary): "
        + "; ".join(f"{name}: {words}" for name, words in decisions.TYPES.items()),
    )
    parser.add_argument("--json", action="store_true", help="as JSON on stdout, and nothing else there")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Compile, run and tell; the exit status is as `EXITS` has it."""
    asked = settle(args, argv, strict=False)
    done, folder = one_run(asked.program, asked.target, places.expanded(asked.settings.output))
    _report(done, args.types or ["summary"], as_json=args.json, folder=folder)
    return _status(done)


def _status(run: Run) -> int:
    if run.verdict == "failed" and never_began(run):
        return BAD_USAGE
    return 0 if run.verdict in ("clean", "violations") else FAILED


def _report(run: Run, types: list[str], *, as_json: bool, folder: Path) -> None:
    with printing():
        if as_json:
            from idbg.reports import json

            told = {name: decisions.telling(name).as_json(run) for name in types}
            sys.stdout.buffer.write(json.encode({"schema": "idbg.analyze/1", **told}) + b"\n")
            return
        for number, name in enumerate(types):
            if len(types) > 1:
                print(f"{'' if number == 0 else chr(10)}{name}")
            print("\n".join(decisions.telling(name).text(run)))
    print(f"session: {folder}", file=sys.stderr)
