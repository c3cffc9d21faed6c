"""Which of torch's settings do people flip while they debug, and what does torch say of each?"""

import argparse
import queue
import time
from difflib import get_close_matches

from idbg.cli import exits, output
from idbg.cli.bar import Doing
from idbg.reports import switches as report
from idbg.schema import events
from idbg.schema.decisions.switches import Switch
from idbg.schema.errors import BadInput, IdbgError
from idbg.schema.events import SessionEvent
from idbg.worker.client import Worker

HELP = "list torch's settings that can be flipped: type, default, meaning, and how each is given"
ABOUT = """\
List torch's settings that people flip while they debug, as the torch that runs here has them: type, default, meaning,
and how each is given to a command.
"""
EXAMPLES = (
    ("idbg switches", "all of them"),
    ("idbg switches autotune --json", "those whose name has a word in it"),
)
EXITS = {
    exits.DONE: "they were told",
}
SEE = (
    "compare",
    "info",
    "config",
)

SECONDS = 300.0  # torch is imported first: 5 s, and more where its files are read for the first time


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which of them, and whether they are told as text or as JSON."""
    parser.add_argument("word", nargs="?", default="", help="only those whose name or group has this in it")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Ask the torch that runs here, and tell; 0, or 2 where none has the word."""
    output.bar().show(Doing("torch is asked", since=time.monotonic()))
    every = listed()
    output.bar().clear()
    found = tuple(each for each in every if args.word in each.name or args.word in each.group)
    if not found:
        near = get_close_matches(args.word, [each.name for each in every], n=1)
        hint = f"did you mean {near[0]}?" if near else "idbg switches lists all of them"
        raise BadInput(f"no switch has {args.word!r} in its name", hint=hint)
    if args.json:
        from idbg.reports import json

        output.say_json(json.encode(report.as_json(found)))
    else:
        output.say("\n".join(report.text(found)))
    return 0


def listed() -> tuple[Switch, ...]:
    """What a worker of ours tells when it is up. Raises IdbgError where none comes up."""
    told: queue.SimpleQueue[SessionEvent] = queue.SimpleQueue()
    worker = Worker(told.put)
    worker.start()
    try:
        while True:
            match told.get(timeout=SECONDS):
                case events.SwitchesListed(switches=switches):
                    return switches
                case events.Noted(level="error", text=text):
                    raise IdbgError(text, hint="run idbg info")
                case _:
                    pass
    except queue.Empty as error:
        raise IdbgError(f"torch was not there after {SECONDS:g} s", hint="run idbg info") from error
    finally:
        worker.close()
