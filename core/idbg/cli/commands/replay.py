"""Does a repro fail elsewhere too: with another backend, accelerator, options or torch?"""

import argparse
import shlex
import shutil
from pathlib import Path

from idbg.accelerators import registry
from idbg.cli import exits, output, tables
from idbg.cli.commands.diff import check_numbers
from idbg.cli.progress import Steps
from idbg.cli.signals import Stopped, signals_raise
from idbg.config import places
from idbg.replay.process import SECONDS
from idbg.replay.replay import parsed_options, read, replays, scripts
from idbg.schema import strict_json
from idbg.schema.errors import BadInput
from idbg.schema.replays import Replayed, Variant
from idbg.views import replays as view

HELP = "run a repro as it is, and with another backend, accelerator, options or torch"
ABOUT = """\
Run a repro as it is, and with another backend, accelerator, options or torch: each is a process of its own, with one
thing changed at a time in a copy; the script itself is never changed.

Answers: same: it fails as it should; different: it fails in another way; gone: it does not fail; not run: nobody knows.
"""
EXAMPLES = (
    ("idbg replay repro.py", "does it still fail?"),
    (
        "idbg replay debug_artifacts/SESSION --backend eager aot --python other/venv/bin/python",
        "a session's repros, elsewhere",
    ),
)
EXITS = {
    exits.DONE: "it is gone everywhere",
    exits.FAILED: "it is the same anywhere, as it is or changed",
    exits.UNDECIDED: "it is the same nowhere, and different, or could not be run, somewhere",
}
SEE = (
    "repro",
    "minify",
    "bisect",
)


SAME, GONE, OTHERWISE = 1, 0, 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which scripts, and what is changed."""
    parser.add_argument("scripts", metavar="SCRIPT", nargs="+", help="a repro.py, or a folder of them (a session too)")
    parser.add_argument(
        "--backend",
        metavar="BACKEND",
        nargs="+",
        action="extend",
        default=[],
        help="inductor, aot, mock, eager, or another package's or torch's by name; of a broken rule: aot, mock",
    )
    parser.add_argument(
        "--accelerator",
        metavar="ACCELERATOR",
        nargs="+",
        action="extend",
        default=[],
        help="of a broken rule: the rule of that name, or kind, of another preset or TOML file",
    )
    parser.add_argument(
        "--option",
        metavar="NAME=VALUE",
        nargs="+",
        action="append",
        default=[],
        help="a set of options as torch.compile(options=...) takes them; repeat for another set",
    )
    parser.add_argument(
        "--python",
        metavar="PYTHON",
        nargs="+",
        action="extend",
        default=[],
        help="another Python, of an environment with another torch",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=SECONDS,
        help=f"one that takes longer is stopped ({SECONDS:g})",
    )
    tables.add_sort(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Run each, tell, and give the exit status as `EXITS` has it. Raises BadInput before anything runs."""
    check_numbers(args, timeout=0.001)
    tables.check_sort(args.sort, ("variant", "answer", "exit", "took"))
    if argv:
        raise BadInput("a repro takes no arguments", hint="leave out what stands after --")
    paths, variants = scripts(args.scripts), _variants(args)
    for path in paths:
        read(path)
    done: list[Replayed] = []
    stopped = 0
    steps = Steps(output.bar(), len(paths) * len(variants))

    def begun(path: Path, variant: Variant) -> None:
        steps.show(f"{path} {variant}")

    with signals_raise():
        try:
            for each in replays(paths, variants, seconds=args.timeout, begun=begun):
                done.append(each)
                steps.next()
        except Stopped as signalled:  # what is known by then is told
            stopped = signalled.status
    _report(done, args.sort, as_json=args.json)
    return stopped or status(done)


def status(done: list[Replayed]) -> int:
    """The exit status that says where it fails."""
    answers = {each.answer for each in done}
    return SAME if "same" in answers else GONE if answers == {"gone"} else OTHERWISE


def _variants(args: argparse.Namespace) -> list[Variant]:
    """As it is, then each change. Raises BadInput for what is not there."""
    for texts in args.option:
        parsed_options(texts)
    for name in args.accelerator:
        registry.find(name)
    return [
        Variant(),
        *(Variant("backend", name) for name in args.backend),
        *(Variant("accelerator", name) for name in args.accelerator),
        *(Variant("options", shlex.join(texts)) for texts in args.option),
        *(Variant("python", _python(path)) for path in args.python),
    ]


def _python(path: str) -> str:
    """The interpreter. Raises BadInput where there is none."""
    folder = places.expanded(path) / "bin" / "python"
    found = shutil.which(str(folder) if folder.is_file() else path)
    if found is None:
        raise BadInput(f"there is no Python {path}", hint="name an interpreter, for example other/venv/bin/python")
    return found


def _report(done: list[Replayed], sort: str | None, *, as_json: bool) -> None:
    if as_json:
        output.say_json(strict_json.formatted(view.as_json(done)))
    else:
        tables.say(view.view(done), sort, check=False)
