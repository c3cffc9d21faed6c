"""Check a program again after each edit of it or of the rules."""

import argparse
import sys

from idbg.cli import exits, output, parsing
from idbg.config.arguments import add_arguments as add_program_arguments
from idbg.config.arguments import settle

HELP = "check a program again after each edit of it or of the rules"
ABOUT = """\
Compile and run a program, report what is wrong, and do it again whenever its file, a module of yours that it imports,
or the accelerator's file changes: what is new, what is gone, the verdict, and how long it took. After an edit of the
rules alone the captured graphs are checked at once, without compiling again. A file that does not compile is reported,
and the watch continues.

On a terminal each check replaces the last one on the screen; elsewhere it is a few lines. With --json each is one line
of JSON (idbg.watch/1). Ctrl+C ends it.
"""
EXAMPLES = (
    ("idbg watch model.py --accelerator my_npu.toml", "edit either file, and see what changed"),
    ("idbg watch examples/mlp_train.py --backend inductor -q", "without the progress bar"),
    ("idbg watch model.py --json | jq -c '{verdict, new}'", "one line per check, for another program"),
)
EXITS = {
    exits.DONE: "--checks checks ran, and the last found no error: nothing failed, no numbers differ, no rule rejects",
    exits.FAILED: "--checks checks ran, and the last found an error",
}
SEE = ("check", "run", "accelerators")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser)
    parser.add_argument("--checks", metavar="N", type=int, default=0, help="end after N checks (0: Ctrl+C ends it)")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    from idbg.cli.one_run import open_session
    from idbg.cli.watching import Printer, Watch

    parsing.check_least(args, checks=0)
    printer = Printer(as_json=args.json, on_terminal=not args.json and sys.stdout.isatty())
    with open_session(settle(args, argv)) as session:
        output.session(session.folder)
        last = Watch(session, printer.check, printer.note).go(args.checks)
    return exits.FAILED if any(each.level == "error" for each in last.found) else exits.DONE
