"""Which accelerators take a program's model as it is, which with padding, and which fall back, and where?"""

import argparse
import logging
from pathlib import Path

from idbg.checking.check import LEVELS, Check, NamedAccelerator, check, named, presets, target
from idbg.cli import exits, fail_on, output
from idbg.cli.commands.run import never_began
from idbg.config import places
from idbg.config.arguments import settle
from idbg.reports.diagnostics import of_check

log = logging.getLogger(__name__)
HELP = "compile a program once, and say which accelerators take it"
ABOUT = """\
Compile a program once, and hold its graphs against each accelerator's rules: which take it as it is, which with
padding, which let parts fall back to the host, and which reject it; and where, why, and what would mend it.

Without --accelerator every preset is asked. The program is compiled once, however many there are.
"""
EXAMPLES = (
    ("idbg check examples/mlp_train.py", "every preset, the best first"),
    (
        "idbg check examples/mlp_train.py --accelerator tpu --accelerator my_npu.toml",
        "two: a preset, and a file of your own",
    ),
    (
        "idbg check model.py --accelerator my_npu.toml --fail-on reject --baseline known.json",
        "for CI: 1 for what is new",
    ),
    ("idbg check examples/mlp_train.py --stage post_grad --json", "what Inductor makes of it, as JSON"),
)
EXITS = {
    exits.DONE: "at least one accelerator takes the program: as it is, with padding, or with parts that fall back",
    exits.FAILED: "every one rejects it, or it failed to run; with --fail-on or --baseline, what they name happened on "
    "any accelerator, and is not known",
}
SEE = (
    "accelerators",
    "run",
    "minify",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which program is held against which accelerators at which stage, and whether that is told as text or as JSON."""
    parser.add_argument("program", metavar="FILE.py[:NAME]", help="a file or script, as for `idbg run`")
    parser.add_argument("-m", dest="module", action="store_true", help="FILE is a module: -m package.module")
    parser.add_argument(
        "--accelerator",
        dest="accelerators",
        metavar="ACCELERATOR",
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
    fail_on.add_arguments(parser, fail_on.OF_A_RUN, "a failure does, and that every accelerator rejects it")
    parser.set_defaults(option=[], setting=[], dynamic_sources=[], cold=False)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Run the program once, hold it against each, and tell; the exit status is as `EXITS` has it."""
    from idbg.cli.one_run import one_run

    asked = settle(args, argv, strict=False)
    watch = fail_on.asked(args)
    accelerators = _accelerators(args.accelerators)
    aim = target(args.stage, device=asked.target.device, dynamic=asked.target.dynamic)
    done, folder = one_run(asked.program, aim, places.expanded(asked.settings.output))
    checked = check(done, args.stage, accelerators, best_first=not args.accelerators)
    _report(checked, as_json=args.json, folder=folder)
    return status(checked, watch)


def status(check: Check, watch: fail_on.Watch) -> int:
    """The exit status that says whether anything takes the program, or whether what is watched for happened."""
    if never_began(check.run):
        return exits.BAD_USAGE
    if watch.named:
        found = of_check(check)
        fails = fail_on.fails(watch, found, watch.of_check(check))
        told = check.failure is None or any(each.kind == "failure" for each in found)
        return exits.FAILED if fails or not told else 0
    return 0 if check.failure is None and check.taken else exits.FAILED


def _accelerators(names: list[str]) -> list[NamedAccelerator]:
    """The accelerators that are named, or all presets; what is odd about them is told on stderr."""
    if not names:
        good, broken = presets()
        for name, why in broken.items():
            log.warning("%s is left out: %s", name, why)
        return good
    good = named(names)
    for name, _, warnings in good:
        for line, message in warnings:
            log.warning("%s:%d: %s", name, line, message)
    return good


def _report(check: Check, *, as_json: bool, folder: Path) -> None:
    if as_json:
        from idbg.reports import check_json

        output.say_json(check_json.encode(check_json.check_report(check)))
    else:
        from idbg.reports import check_text

        output.say("\n".join(check_text.check_report(check)))
    output.session(folder)
