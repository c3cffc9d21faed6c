"""Which accelerators take a program's model as it is, which with padding, and which fall back, and where?"""

import argparse
import sys
from pathlib import Path

from idbg.checking.check import LEVELS, Check, NamedAccelerator, check, named, presets, target
from idbg.cli import BAD_USAGE, FAILED, printing
from idbg.cli.commands.run import never_began
from idbg.cli.one_run import one_run
from idbg.config import places
from idbg.config.arguments import settle

HELP = "compile a program once, and say which accelerators take it"

EXITS = """\
exit status: 0 if at least one accelerator takes the program (accept, pad, fallback); 1 if every one rejects it, or it
failed to run; 2 for bad usage
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which program is held against which accelerators at which stage, and whether that is told as text or as JSON."""
    parser.epilog = EXITS
    parser.add_argument("program", metavar="FILE.py[:NAME]", help="a file or script, as for `idbg run`")
    parser.add_argument("-m", dest="module", action="store_true", help="FILE is a module: -m package.module")
    parser.add_argument(
        "--accelerator",
        dest="accelerators",
        metavar="A",
        action="append",
        default=[],
        help="the hardware's rules: a preset's name or a TOML file; repeat for more (all presets)",
    )
    parser.add_argument(
        "--stage",
        choices=tuple(LEVELS),
        default="aten",
        help="which graphs: aten (forward, backward, inference: what a backend lowers), dynamo, "
        "or post_grad (runs Inductor, and takes as long)",
    )
    parser.add_argument("--device", help="cpu, cuda, cuda:1, ...: where to put the program (where it puts itself)")
    parser.add_argument(
        "--dynamic", action=argparse.BooleanOptionalAction, help="symbolic shapes, as torch.compile(dynamic=)"
    )
    parser.add_argument("--output", metavar="FOLDER", help="where sessions are kept (debug_artifacts)")
    parser.add_argument("--json", action="store_true", help="the report as JSON on stdout, and nothing else there")
    parser.set_defaults(option=[], setting=[], dynamic_sources=[], cold=False)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Run the program once, hold it against each, and tell; the exit status is as `EXITS` has it."""
    asked = settle(args, argv, strict=False)
    accelerators = _accelerators(args.accelerators)
    aim = target(args.stage, device=asked.target.device, dynamic=asked.target.dynamic)
    done, folder = one_run(asked.program, aim, places.expanded(asked.settings.output))
    checked = check(done, args.stage, accelerators, best_first=not args.accelerators)
    _report(checked, as_json=args.json, folder=folder)
    return status(checked)


def status(check: Check) -> int:
    """The exit status that says whether anything takes the program."""
    if never_began(check.run):
        return BAD_USAGE
    return 0 if check.failure is None and check.taken else FAILED


def _accelerators(names: list[str]) -> list[NamedAccelerator]:
    """The accelerators that are named, or all presets; what is odd about them is told on stderr."""
    if not names:
        good, broken = presets()
        for name, why in broken.items():
            print(f"idbg: {name} is left out: {why}", file=sys.stderr)
        return good
    good = named(names)
    for name, _, warnings in good:
        for line, message in warnings:
            print(f"idbg: {name}:{line}: {message}", file=sys.stderr)
    return good


def _report(check: Check, *, as_json: bool, folder: Path) -> None:
    with printing():
        if as_json:
            from idbg.reports import check_json

            sys.stdout.buffer.write(check_json.encode(check_json.check_report(check)) + b"\n")
            return
        from idbg.reports import check_text

        print("\n".join(check_text.check_report(check)))
    print(f"session: {folder}", file=sys.stderr)
