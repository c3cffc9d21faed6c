"""Run a repro as it is, and with another backend, accelerator, options or torch."""

import argparse
import shlex
import shutil
from pathlib import Path

from idbg.accelerators import registry
from idbg.cli import exits, output, parsing, tables
from idbg.cli.progress import Steps
from idbg.cli.signals import Stopped, raise_on_signal
from idbg.config import places
from idbg.replay.replay import SECONDS, parsed_options, read, replays, scripts
from idbg.schema.errors import BadInput
from idbg.schema.repros import Replayed, Variant
from idbg.views import replays as view

HELP = "run a repro as it is, and with another backend, accelerator, options or torch"
ABOUT = """\
Run a repro as it is, and with another backend, accelerator, options or torch. Each variant runs in its own process, and
changes one thing in a copy; the script itself is never changed.

Answers: same: it fails in the same way; different: it fails in another way; gone: it does not fail; not run: unknown.
"""
EXAMPLES = (
    ("idbg replay repro.py", "does it still fail?"),
    (
        "idbg replay debug_artifacts/SESSION --backend eager aot --python other/venv/bin/python",
        "a session's repros, with other backends and another torch",
    ),
)
EXITS = {
    exits.DONE: "every variant is gone",
    exits.FAILED: "at least one variant is the same",
    exits.UNDECIDED: "no variant is the same, and some are different or could not run",
}
SEE = ("repro", "minify", "bisect")
_LISTS = (
    (
        "--backend",
        "BACKEND",
        "inductor, aot, mock, eager, or another package's or torch's by name; of a broken rule: aot, mock",
    ),
    (
        "--accelerator",
        "ACCELERATOR",
        "of a broken rule: the rule of that name, or kind, of another preset or TOML file",
    ),
    ("--python", "PYTHON", "another Python, of an environment with another torch"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scripts", metavar="SCRIPT", nargs="+", help="a repro.py, or a folder of them (a session too)")
    for flag, metavar, words in _LISTS:
        parser.add_argument(flag, metavar=metavar, nargs="+", action="extend", default=[], help=words)
    parser.add_argument(
        "--option",
        metavar="NAME=VALUE",
        nargs="+",
        action="append",
        default=[],
        help="a set of options as torch.compile(options=...) takes them; repeat for another set",
    )
    parsing.add_timeout(parser, SECONDS, "stop a script that takes longer")
    tables.add_sort(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    parsing.check_least(args, timeout=0.001)
    tables.check_sort(args.sort, ("variant", "answer", "exit", "took"))
    if argv:
        raise BadInput("a repro takes no arguments", hint="remove the arguments after --")
    paths, variants = scripts(args.scripts), _variants(args)
    for path in paths:
        read(path)
    done: list[Replayed] = []
    stopped = 0
    steps = Steps(output.bar(), len(paths) * len(variants))

    def begun(path: Path, variant: Variant) -> None:
        steps.show(f"{path} {variant}")

    with raise_on_signal():
        try:
            for each in replays(paths, variants, seconds=args.timeout, begun=begun):
                done.append(each)
                steps.next()
        except Stopped as signalled:  # the results so far are reported
            stopped = signalled.status
    output.report(lambda: view.as_json(done), lambda: tables.text(view.view(done), args.sort, check=False))
    return stopped or status(done)


def status(done: list[Replayed]) -> int:
    """The exit status: where it fails."""
    answers = {each.answer for each in done}
    return exits.FAILED if "same" in answers else exits.DONE if answers == {"gone"} else exits.UNDECIDED


def _variants(args: argparse.Namespace) -> list[Variant]:
    """The script as it is, then one variant per change. Raises BadInput for a name that does not exist."""
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
