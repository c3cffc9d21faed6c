"""List the settings of torch that are useful while debugging."""

import argparse
import queue
import time

from idbg.cli import exits, output, tables
from idbg.cli.bar import Activity
from idbg.format.spelling import did_you_mean
from idbg.schema import events
from idbg.schema.errors import BadInput, IdbgError
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Switch
from idbg.views import switches as view
from idbg.worker.client import Worker

HELP = "list torch's settings that are useful for debugging: type, default, meaning, flag"
ABOUT = """\
List settings of torch that are useful while debugging, as the installed torch has them: type, default, meaning, and the
flag that sets each.
"""
EXAMPLES = (
    ("idbg switches", "all of them"),
    ("idbg switches autotune --json", "those whose name has a word in it"),
)
EXITS = {exits.DONE: "the list was printed"}
SEE = ("compare", "info", "config")

SECONDS = 300.0  # importing torch takes 5 s, and more when its files are not cached


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("word", nargs="?", default="", help="only those whose name or group has this in it")
    tables.add_sort(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Raises BadInput where no switch has the word."""
    tables.check_sort(args.sort, view.COLUMNS)
    output.bar().show(Activity("importing torch", since=time.monotonic()))
    every = listed()
    output.bar().clear()
    found = tuple(each for each in every if args.word in each.name or args.word in each.group)
    if not found:
        hint = did_you_mean(args.word, [each.name for each in every], "idbg switches lists them")
        raise BadInput(f"no switch has {args.word!r} in its name", hint=hint)
    output.report(
        lambda: {"schema": "idbg.switches/1", "switches": found}, lambda: tables.text(view.view(found), args.sort)
    )
    return exits.DONE


def listed() -> tuple[Switch, ...]:
    """Start a worker, and read the list that it sends. Raises IdbgError where it does not start."""
    received: queue.SimpleQueue[SessionEvent] = queue.SimpleQueue()
    worker = Worker(received.put)
    worker.start()
    try:
        while True:
            match received.get(timeout=SECONDS):
                case events.SwitchesListed(switches=switches):
                    return switches
                case events.Noted(level="error", text=text):
                    raise IdbgError(text, hint="run idbg info")
                case _:
                    pass
    except queue.Empty as error:
        raise IdbgError(f"torch was not imported after {SECONDS:g} s", hint="run idbg info") from error
    finally:
        worker.close()
