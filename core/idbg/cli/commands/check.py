"""Check a program's model against accelerators: which take it as it is, which with padding, and which fall back."""

import argparse
import logging

from idbg.checking.check import LEVELS, Check, NamedAccelerator, check, named, presets, target
from idbg.cli import exits, fail_on, output, tables
from idbg.cli.commands.run import never_began
from idbg.config.arguments import add_device, add_program, settle
from idbg.views.diagnostics import of_check

log = logging.getLogger(__name__)
HELP = "compile a program once, and report which accelerators take it"
ABOUT = """\
Compile a program once, and check its graphs against each accelerator's rules: which take it as it is, which with
padding, which let parts fall back to the host, and which reject it; where, why, and how to fix it.

Without --accelerator every preset is checked. The program is compiled once for all of them.
"""
EXAMPLES = (
    ("idbg check examples/mlp_train.py", "every preset, the best first"),
    (
        "idbg check examples/mlp_train.py --accelerator tpu --accelerator my_npu.toml",
        "two: a preset, and a file of your own",
    ),
    (
        "idbg check model.py --accelerator my_npu.toml --fail-on reject --baseline known.json",
        "for CI: 1 for a new violation",
    ),
    ("idbg check examples/mlp_train.py --stage post_grad --json", "Inductor's post-grad graphs, as JSON"),
)
EXITS = {
    exits.DONE: "at least one accelerator takes the program: as it is, with padding, or with parts that fall back",
    exits.FAILED: "every one rejects it, or it failed to run; with --fail-on or --baseline, what they name happened on "
    "any accelerator, and is not known",
}
SEE = ("accelerators", "run", "minify")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program(parser)
    parser.add_argument(
        "--accelerator",
        dest="accelerators",
        metavar="ACCELERATOR",
        action="append",
        default=[],
        help="the hardware's rules: a preset's name or a TOML file; repeat for more (default: all presets)",
    )
    parser.add_argument(
        "--stage",
        choices=tuple(LEVELS),
        default="aten",
        help="which graphs: aten (forward, backward, inference: what a backend lowers), dynamo, "
        "or post_grad (runs Inductor, and takes as long)",
    )
    add_device(parser)
    tables.add_sort(parser)
    fail_on.add_arguments(parser, fail_on.OF_A_RUN, "a failure does, and that every accelerator rejects it")
    parser.set_defaults(option=[], setting=[], dynamic_sources=[], cold=False)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    from idbg.cli.one_run import run_once
    from idbg.reports import check_json
    from idbg.schema.violations import SEVERITIES

    tables.check_sort(args.sort, ("accelerator", "verdict", *SEVERITIES, "waste", "parts", "rule", "nodes"))
    request = settle(args, argv)
    policy = fail_on.requested(args)
    accelerators = _accelerators(args.accelerators)
    aim = target(args.stage, device=request.target.device, dynamic=request.target.dynamic)
    done, folder = run_once(request._replace(target=aim))
    checked = check(done, args.stage, accelerators, best_first=not args.accelerators)
    output.report(
        lambda: check_json.check_report(checked),
        lambda: text(checked, args.sort),
    )
    output.session(folder)
    return status(checked, policy)


def text(check: Check, sort: str | None = None) -> str:
    """What the program failed of, as `idbg run` reports it, and what was checked before that."""
    from idbg.reports.text import run_report
    from idbg.views import check as view

    failed = run_report(check.run) if check.run.failure is not None else []
    checked = [tables.text(view.view(check), sort, check=False)] if check.graphs or not failed else []
    return "\n".join((*failed, *([""] if failed and checked else []), *checked))


def status(check: Check, policy: fail_on.Policy) -> int:
    """The exit status: whether an accelerator takes the program, with --fail-on and --baseline."""
    if never_began(check.run):
        return exits.BAD_USAGE
    if policy.named:
        found = of_check(check)
        fails = fail_on.fails(policy, found, policy.of_check(check))
        known = check.failure is None or any(each.kind == "failure" for each in found)
        return exits.FAILED if fails or not known else exits.DONE
    return exits.DONE if check.failure is None and check.accepted else exits.FAILED


def _accelerators(names: list[str]) -> list[NamedAccelerator]:
    """The named accelerators, or all presets. Logs a warning for broken presets and odd rules."""
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
