"""Compare a program's compiled numbers with eager or another reference."""

import argparse
import logging
from typing import TYPE_CHECKING, get_args

from msgspec.structs import replace

from idbg.accelerators.parse import parse
from idbg.accelerators.registry import rules_for
from idbg.cli import exits, fail_on, output, parsing, sessions, tables
from idbg.cli.commands.run import status as run_status
from idbg.config import launching, places
from idbg.config.arguments import add_arguments as add_program_arguments
from idbg.config.arguments import settle
from idbg.reports import diff as diff_report
from idbg.schema.diff import EAGER, FLOAT64, SIDE_SECONDS, Comparison, K
from idbg.schema.errors import BadInput, IdbgError
from idbg.schema.programs import Float64On, Target
from idbg.schema.runs import Run
from idbg.views.attribution import launch_named
from idbg.views.diff import SORTED_BY, view

if TYPE_CHECKING:
    from idbg.session.session import Session

log = logging.getLogger(__name__)
HELP = "compare a program's compiled outputs and gradients with a reference"
ABOUT = """\
Compare a program's compiled outputs and gradients with a reference: eager, float64, another backend, or a saved
session. A number is wrong where the compiled side is further from float64 than eager's own rounding explains.

With --nproc-per-node, or a whole command after --, the script runs as a job of several ranks: in each, every compiled
graph is compared with eager at its first call, and the values of its nodes are held against those of the other ranks.
"""
EXAMPLES = (
    ("idbg diff examples/mlp_train.py", "Inductor against eager"),
    ("idbg diff examples/mlp_train.py --backend aot --backward --per-kernel", "gradients too, and where it goes wrong"),
    ("idbg diff train.py --owner", "the cause of the first bad kernel's error, with a script that shows it"),
    ("idbg diff train.py --steps 100 --json", "the training step at which the two sides diverge"),
    ("idbg diff --nproc-per-node 2 examples/distributed/ddp.py", "each rank, and whether replicas stay equal"),
)
EXITS = {
    exits.DONE: "the numbers agree",
    exits.FAILED: "they do not, a side failed, or nothing was compiled or compared; "
    "or what --fail-on names happened, and is not known",
    exits.UNDECIDED: "they cannot be compared: the compiled program draws other random numbers than eager, or it goes "
    "a way that only a compiler can go",
}
SEE = ("minify", "bisect", "run")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser, required=False, backend="inductor", backend_words="the side that is tested; inductor")
    launching.add_arguments(parser)
    how = parser.add_argument_group("comparison")
    add_reference(how)
    _add_searches(how)
    how.add_argument(
        "--runs", metavar="N", type=int, default=1, help="run the tested side N times: which outputs vary (1)"
    )
    tables.add_sort(parser)
    fail_on.add_arguments(parser, fail_on.OF_A_COMPARISON, "a failure and a mismatch do, and always")


def add_reference(how: argparse._ArgumentGroup) -> None:
    """The reference, and the tolerances. `reference_of` reads them."""
    how.add_argument(
        "--against",
        metavar="REFERENCE",
        default=EAGER,
        help="the reference: eager, fp64, a backend's name, or the folder of a session of `idbg diff` (eager)",
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
    parsing.add_timeout(how, SIDE_SECONDS, "stop a side that takes longer")
    how.add_argument(
        "--float64",
        choices=get_args(Float64On),
        help="where float64 is computed: on the program's device where it can be (auto), or on the CPU",
    )


def _add_searches(how: argparse._ArgumentGroup) -> None:
    how.add_argument(
        "--memory",
        metavar="BYTES",
        dest="float64_memory",
        help="what float64 may keep on that device while it waits, as 8 GiB; the rest moves to host memory, then to a "
        "file (what is free)",
    )
    how.add_argument(
        "--per-kernel", action="store_true", help="also find where it goes wrong: the stage, node and pass, or kernel"
    )
    how.add_argument(
        "--nan", action="store_true", help="also find where NaN and infinities originate, in eager and in the kernels"
    )
    how.add_argument(
        "--sync", action="store_true", help="wait for the GPU after each launch: its errors name the launch"
    )
    how.add_argument(
        "--owner",
        metavar="KERNEL",
        nargs="?",
        const="",
        help="also find the cause of a kernel's error: it runs alone on its recorded inputs, and a script of that is "
        "written (KERNEL: its name or handle; default: the first bad one); implies --per-kernel",
    )
    how.add_argument(
        "--steps",
        metavar="N",
        type=int,
        default=0,
        help="also train for N steps on both sides: at which step, and where, they diverge",
    )


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    from idbg.cli.one_run import print_run, run_once

    tables.check_sort(args.sort, SORTED_BY)
    comparison = _comparison(args)
    if launching.is_requested(args) or (args.program is None and argv):
        return _compare_ranks(args, argv, comparison)
    if args.program is None:
        raise BadInput("no program is named", hint="idbg diff FILE.py; idbg diff -- torchrun ... for a whole command")
    request = settle(args, argv)
    policy = fail_on.requested(args)
    _warn_of_numerics(request.target)
    problems: list[IdbgError] = []

    def find_owner(session: "Session", run: Run) -> None:
        if args.owner is not None and run.diff is not None:
            try:
                session.find_owner(launch_named(run.diff, args.owner))
            except BadInput as problem:  # reported after the comparison
                problems.append(problem)

    done, folder = run_once(request, comparison, find_owner)
    diff = done.diff
    assert diff is not None, "a run with a comparison has a result"
    if done.failure is None or diff.sides or args.json:
        more = "" if comparison.per_kernel else "--per-kernel"
        output.report(
            lambda: diff_report.as_json(diff),
            lambda: tables.text(view(done, to_ask=more), args.sort, diff_report.SHOWN, check=False),
        )
    else:  # it failed before the first side
        print_run(done)
    output.session(folder)
    for problem in problems:
        log.error(problem.in_one_line)
    return exits.BAD_USAGE if problems and args.owner else status(done, policy)


def _compare_ranks(args: argparse.Namespace, argv: tuple[str, ...], comparison: Comparison) -> int:
    """Compare the numbers of each rank of a job. Raises BadInput for what a job cannot have."""
    from idbg.cli.ranks import run_job

    if comparison.reference != EAGER:
        raise BadInput("ranks are compared with eager alone", hint="leave --against out")
    if comparison.runs > 1:
        raise BadInput("--runs is of one process", hint="ranks run as the script says")
    return run_job(args, argv, comparison)


def _warn_of_numerics(target: Target) -> None:
    """Log a warning where the accelerator's [numerics] are not applied.

    Raises AcceleratorError or SettingsError where the target's rules cannot be read.
    """
    text, _ = rules_for(target)
    if target.backend != "mock" and parse(text).numerics is not None:
        log.warning(
            "the [numerics] of %s are not applied by the backend %s: they work with --backend mock only",
            target.accelerator,
            target.backend,
        )


def status(run: Run, policy: fail_on.Policy) -> int:
    """The exit status: whether the numbers agree, with --fail-on and --baseline."""
    of_run = run_status(run)
    if of_run == exits.BAD_USAGE:
        return of_run
    fails, known = fail_on.judge(policy, run, ("failure", "mismatch"))
    if fails:
        return exits.FAILED
    diff = run.diff
    if diff is not None and diff.passed and (diff.outputs or diff.gradients) and run.failure is None:
        return exits.DONE
    if diff is not None and diff.not_comparable and not of_run:
        return exits.UNDECIDED
    return exits.DONE if known else exits.FAILED


def _comparison(args: argparse.Namespace) -> Comparison:
    """The comparison of all arguments. Raises BadInput for a number that is too small."""
    parsing.check_least(args, runs=1, steps=0)
    return replace(
        reference_of(args),
        per_kernel=args.per_kernel or args.owner is not None,
        sync=args.sync,
        nan=args.nan,
        steps=args.steps,
        runs=args.runs,
    )


def reference_of(args: argparse.Namespace) -> Comparison:
    """The comparison of the arguments of `add_reference`. Raises BadInput for a number that is too small."""
    parsing.check_least(args, atol=0.0, rtol=0.0, factor=1.0, timeout=0.001)
    return Comparison(
        reference=_reference(args.against, args.output),
        backward=args.backward,
        atol=args.atol,
        rtol=args.rtol,
        k=args.factor,
        seconds=args.timeout,
    )


def _reference(name: str, output_folder: str | None) -> str:
    if name in ("fp64", FLOAT64):
        return FLOAT64
    path = places.expanded(name)
    folder = path if path.is_dir() else sessions.find_or_none(name, output_folder)
    if folder is None:
        return name
    if not any(folder.glob("repros/outputs-*.safetensors")):
        raise BadInput(f"the session {name} has no outputs to compare with", hint="name a session of `idbg diff`")
    return str(folder.absolute())
