"""Where do a compiled program's numbers go wrong, held against eager or another reference?"""

import argparse
import logging
import math
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from msgspec.structs import replace

from idbg.accelerators.parse import parse
from idbg.accelerators.registry import rules_for
from idbg.cli import exits, fail_on, output, sessions, tables
from idbg.cli.commands.run import status as run_status
from idbg.config import places
from idbg.config.arguments import add_arguments as add_program_arguments
from idbg.config.arguments import settle
from idbg.reports import diff as diff_report
from idbg.reports.diagnostics import diagnostics
from idbg.schema.diff import EAGER, FLOAT64, SIDE_SECONDS, Comparison, K
from idbg.schema.errors import BadInput, IdbgError
from idbg.schema.programs import Float64On, Target
from idbg.schema.runs import Run
from idbg.views.attribution import launch_named
from idbg.views.diff import section

if TYPE_CHECKING:
    from idbg.session.session import Session

log = logging.getLogger(__name__)
HELP = "compare a program's compiled outputs and gradients with a reference"
ABOUT = """\
Compare a program's compiled outputs and gradients with a reference: eager, float64, another backend, or a saved
session. A number is wrong where the compiled side is further from float64 than eager's own rounding explains.
"""
EXAMPLES = (
    ("idbg diff examples/mlp_train.py", "Inductor against eager"),
    ("idbg diff examples/mlp_train.py --backend aot --backward --per-kernel", "gradients too, and where it goes wrong"),
    ("idbg diff train.py --owner", "whose error the first bad kernel has, with a script that shows it"),
    ("idbg diff train.py --steps 100 --json", "at which step of a training do the two part?"),
)
EXITS = {
    exits.DONE: "the numbers agree",
    exits.FAILED: "they do not, a side failed, or nothing was compiled or compared; "
    "or what --fail-on names happened, and is not known",
    exits.UNDECIDED: "they cannot be compared: the compiled program draws other random numbers than eager",
}
SEE = (
    "minify",
    "bisect",
    "run",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the program is compared with and by which tolerances, and whether that is told as text or as JSON."""
    add_program_arguments(parser, backend="inductor", backend_words="the side that is tested; inductor")
    how = parser.add_argument_group("comparison")
    add_reference(how)
    _add_searches(how)
    how.add_argument(
        "--runs", metavar="N", type=int, default=1, help="run the tested side N times: which outputs vary (1)"
    )
    fail_on.add_arguments(parser, fail_on.OF_A_COMPARISON, "a failure and a mismatch do, and always")


def add_reference(how: argparse._ArgumentGroup) -> None:
    """What a program is held against, and how far it may be from that."""
    how.add_argument(
        "--against",
        metavar="REFERENCE",
        default=EAGER,
        help="the side it is held against: eager, fp64, a backend's name, or the folder of a session of `idbg diff` "
        "(eager)",
    )
    how.add_argument("--backward", action="store_true", help="compare gradients too, also without a loss")
    how.add_argument(
        "--factor", metavar="K", type=float, default=K, help="how many times worse than eager an error may be (3)"
    )
    how.add_argument(
        "--atol",
        metavar="A",
        type=float,
        help="judge by tolerance instead: |d| <= A + R * |reference| (torch.testing's A for the dtype)",
    )
    how.add_argument("--rtol", metavar="R", type=float, help="likewise (torch.testing's R for the dtype)")
    how.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=SIDE_SECONDS,
        help=f"a side that takes longer than S seconds is stopped ({SIDE_SECONDS:g})",
    )
    how.add_argument(
        "--float64",
        choices=get_args(Float64On),
        help="where float64 is computed: on the program's device where it can be (auto), or on the CPU",
    )


def _add_searches(how: argparse._ArgumentGroup) -> None:
    """What is looked for beside whether outputs agree."""
    how.add_argument(
        "--per-kernel", action="store_true", help="also where it goes wrong: the stage, node and pass, or the kernel"
    )
    how.add_argument(
        "--nan", action="store_true", help="also where NaN and infinities are born, in eager and in the kernels"
    )
    how.add_argument(
        "--sync", action="store_true", help="wait for the GPU after each launch: its errors name the launch"
    )
    how.add_argument(
        "--owner",
        metavar="KERNEL",
        nargs="?",
        const="",
        help="whose error a kernel has: it is called alone, on what it was really called with, and a script of that is "
        "written (KERNEL: its name or handle; the first bad one); with --per-kernel",
    )
    how.add_argument(
        "--steps",
        metavar="N",
        type=int,
        default=0,
        help="also train for N steps on both sides: at which step, and where, do they part?",
    )


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Compare, tell, and give the exit status as `EXITS` has it. Raises BadInput before anything runs."""
    from idbg.cli.one_run import one_run

    comparison = _comparison(args)
    asked = settle(args, argv, strict=False)
    watch = fail_on.asked(args)
    _warn_of_numerics(asked.target)
    kept_in = places.expanded(asked.settings.output)
    problems: list[IdbgError] = []

    def find_owner(session: "Session", run: Run) -> None:
        if args.owner is not None and run.diff is not None:
            try:
                session.find_owner(launch_named(run.diff, args.owner))
            except BadInput as problem:  # told below what was compared all the same
                problems.append(problem)

    done, folder = one_run(asked.program, asked.target, kept_in, comparison, find_owner)
    _report(done, as_json=args.json, folder=folder)
    for problem in problems:
        log.error(problem.in_one_line)
    return exits.BAD_USAGE if problems and args.owner else status(done, watch)


def _warn_of_numerics(target: Target) -> None:
    """Say on stderr where the accelerator's [numerics] are not applied.

    Raises AcceleratorError or SettingsError where the target's rules cannot be had, as the run itself would.
    """
    text, _ = rules_for(target)
    if target.backend != "mock" and parse(text).numerics is not None:
        log.warning(
            "the [numerics] of %s are not applied by the backend %s: they work with --backend mock only",
            target.accelerator,
            target.backend,
        )


def status(run: Run, watch: fail_on.Watch) -> int:
    """The exit status that says whether the numbers agree, and whether what else is watched for happened."""
    if run_status(run) == exits.BAD_USAGE:
        return exits.BAD_USAGE
    found = diagnostics(run)
    fails = fail_on.fails(watch, found, watch.of(run, ("failure", "mismatch")))
    agrees = run.diff is not None and run.diff.passed and (run.diff.outputs or run.diff.gradients)
    if agrees and run.failure is None:
        return exits.FAILED if fails else 0
    if run.diff is not None and run.diff.not_comparable and not run_status(run):
        return exits.FAILED if fails else exits.UNDECIDED
    told = watch.path is not None and any(each.kind in ("failure", "mismatch") for each in found)
    return exits.FAILED if fails or not told else 0


def _comparison(args: argparse.Namespace) -> Comparison:
    """The comparison that the command line asks for. Raises BadInput for a number that means nothing."""
    check_numbers(args, runs=1, steps=0)
    return replace(
        held_against(args),
        per_kernel=args.per_kernel or args.owner is not None,
        sync=args.sync,
        nan=args.nan,
        steps=args.steps,
        runs=args.runs,
    )


def held_against(args: argparse.Namespace) -> Comparison:
    """The comparison of the arguments of `add_reference`. Raises BadInput for a number that means nothing."""
    check_numbers(args, atol=0.0, rtol=0.0, factor=1.0, timeout=0.001)
    return Comparison(
        reference=_reference(args.against, args.output),
        backward=args.backward,
        atol=args.atol,
        rtol=args.rtol,
        k=args.factor,
        seconds=args.timeout,
    )


def check_numbers(args: argparse.Namespace, **lowest: float) -> None:
    """Raises BadInput for an option that was given less than its lowest number, or none that is finite."""
    for name, least in lowest.items():
        value = getattr(args, name)
        if value is not None and not least <= value < math.inf:
            option = name.replace("_", "-")
            raise BadInput(f"--{option} is {value:g}", hint=f"give a number from {least:g} up")


def _reference(named: str, output_folder: str | None) -> str:
    if named in ("fp64", FLOAT64):
        return FLOAT64
    given = places.expanded(named)
    folder = given if given.is_dir() else sessions.named(named, output_folder)
    if folder is None:
        return named
    if not any(folder.glob("repros/outputs-*.safetensors")):
        raise BadInput(f"the session {named} has no outputs to compare with", hint="give one that `idbg diff` made")
    return str(folder.absolute())


def _report(run: Run, *, as_json: bool, folder: Path) -> None:
    assert run.diff is not None, "a run with a comparison has one, whatever becomes of it"
    if as_json:
        output.say_json(diff_report.to_json(run.diff))
    elif run.failure is None or run.diff.sides:
        asked = run.comparison is not None and run.comparison.per_kernel
        tables.say(section(run.diff, run.maps, "" if asked else "--per-kernel"), most=diff_report.SHOWN)
    else:  # it did not come to its first side
        from idbg.reports import text

        output.say("\n".join(text.run_report(run)))
    output.session(folder)
