"""What does a program look like each time it, or the rules, were edited?"""

import argparse
import sys
import time

from idbg.cli import exits, output
from idbg.config import places
from idbg.config.arguments import add_arguments as add_program_arguments
from idbg.config.arguments import settle
from idbg.schema.errors import BadInput

HELP = "check a program again whenever it or the rules are edited"
ABOUT = """\
Compile and run a program, say what is wrong with it, and do it again whenever its file, a module of yours that it
imports, or the accelerator's file changes: what is new, what went away, the verdict, and how long it took. An edit of
the rules alone is asked of the graphs that were captured, at once and without compiling again. A file that cannot be
compiled just now is said, and the watch goes on.

On a terminal each check takes the screen of the last; elsewhere it is a few lines. With --json each is one line of
JSON (idbg.watch/1). Ctrl+C ends it.
"""
EXAMPLES = (
    ("idbg watch model.py --accelerator my_npu.toml", "edit either, and see what it changed"),
    ("idbg watch examples/mlp_train.py --backend inductor -q", "without the bar that tells how far it is"),
    ("idbg watch model.py --json | jq -c '{verdict, new}'", "a line for each check, for another program"),
)
EXITS = {
    exits.DONE: "--checks were made, and the last found no error: nothing failed, no numbers differ, no rule rejects",
    exits.FAILED: "--checks were made, and the last found an error",
}
SEE = ("check", "run", "accelerators")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which program is watched, for which target, and how many checks are made."""
    add_program_arguments(parser)
    parser.add_argument("--checks", metavar="N", type=int, default=0, help="end after N checks (Ctrl+C ends it)")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Watch until a signal, or for so many checks; the exit status is as `EXITS` has it."""
    from idbg.cli.one_run import a_session
    from idbg.cli.watching import Telling, Watch

    if args.checks < 0:
        raise BadInput(f"--checks is {args.checks}", hint="give a number from 1 up; without it Ctrl+C ends the watch")
    asked = settle(args, argv, strict=False)
    telling = Telling(as_json=args.json, on_terminal=not args.json and sys.stdout.isatty(), clock=time.time)
    with a_session(asked.program, asked.target, places.expanded(asked.settings.output)) as session:
        output.session(session.folder)
        watch = Watch(session, telling.check, telling.note)
        last = watch.go(args.checks)
    return exits.FAILED if any(each.level == "error" for each in last.found) else exits.DONE
