"""Compile small programs with a backend, and report by family what compiles, falls back, agrees and is slow."""

import argparse
import logging
import os
from pathlib import Path

from msgspec.structs import replace

from idbg.cli import exits, output, parsing
from idbg.cli.progress import Steps
from idbg.cli.signals import Stopped, raise_on_signal
from idbg.config import options, places, settings
from idbg.conformance import catalogue, runner, scripts
from idbg.format.file_names import from_here
from idbg.schema.conformance import Conformance, ConformanceProgram, ConformanceRow
from idbg.schema.programs import OptionValue
from idbg.views import conformance as view

log = logging.getLogger(__name__)
HELP = "compile small programs with a backend: what compiles, falls back to eager, agrees with it, and is slow"
ABOUT = """\
Compile small programs with a backend, each in a process of its own, and compare each with eager and float64: families
of ops, dtypes, views, mutation, dynamic shapes, control flow, training, random numbers, custom ops, sizes. Each failure
ends with the smallest script that shows it, and its owner. A crash or a hang fails one program, and the rest runs.
"""
EXAMPLES = (
    ("idbg conform openvino", "every program, and a script of each failure"),
    ("idbg conform aot_eager --quick", "a third of the programs, without scripts"),
    ("idbg conform openvino turbine_cpu --html conformance.html --junit conformance.xml", "two backends, as one page"),
    ("idbg conform inductor --program dtypes --program views:transposes", "a family, and one program"),
)
EXITS = {
    exits.DONE: "no program fails, and every one was judged",
    exits.FAILED: "a program does not compile, crashes, hangs, or its numbers are wrong; or a backend cannot be used",
    exits.UNDECIDED: "no program fails, and one was not run or could not be judged",
}
SEE = ("diff", "minify", "bench")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "backends", metavar="BACKEND", nargs="+", help="inductor, aot_eager, or another package's by name"
    )
    which = parser.add_argument_group("which")
    which.add_argument("--quick", action="store_true", help="a third of the programs, without scripts of failures")
    which.add_argument(
        "--program",
        dest="names",
        metavar="FAMILY[:PROGRAM]",
        action="append",
        default=[],
        help="a family by its file's name, or one program of it; repeat for more (all)",
    )
    which.add_argument("--list", action="store_true", help="list the programs, and run nothing")
    how = parser.add_argument_group("how")
    how.add_argument(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an option of the backend, as torch.compile(options=...) takes it; repeat for more",
    )
    parsing.add_timeout(how, runner.SECONDS, "for each program")
    how.add_argument(
        "--script-seconds",
        metavar="SECONDS",
        type=float,
        help=f"for the search for each failure's script; 0: none ({scripts.SECONDS:g}; with --quick 0)",
    )
    how.add_argument("--output", metavar="FOLDER", help="where programs and scripts are written (debug_artifacts)")
    parser.add_argument("--html", metavar="FILE", help="also write a page for a browser that you can publish")
    parser.add_argument("--junit", metavar="FILE", help="also write JUnit XML, which CIs read")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Raises BadInput before anything runs, OutputError where a file cannot be written."""
    parsing.check_least(args, timeout=0.001, **({} if args.script_seconds is None else {"script_seconds": 0.0}))
    given = dict(options.parse(text) for text in args.option)
    if args.list:
        return _list(args)
    folder = places.expanded(args.output or str(settings.load(os.environ).output)).absolute() / "conformance"
    programs = runner.programs_of(folder, quick=args.quick, names=args.names)
    done: list[Conformance] = []
    stopped = _run(args, done, programs, given, folder)
    output.report(lambda: view.as_json(done), lambda: "\n\n".join(_text(each) for each in done))
    _write(args, done)
    return stopped or status(done)


def status(done: list[Conformance]) -> int:
    """The exit status of all backends."""
    if all(each.problem is not None and not each.rows for each in done):
        return exits.BAD_USAGE
    verdicts = {view.verdict(each) for each in done}
    return exits.FAILED if "error" in verdicts else exits.UNDECIDED if "unknown" in verdicts else exits.DONE


def _run(
    args: argparse.Namespace,
    done: list[Conformance],
    programs: tuple[ConformanceProgram, ...],
    given: dict[str, OptionValue],
    folder: Path,
) -> int:
    """Run each backend, and add it to `done`; an interrupted one with the rows that it has. Returns the status of a
    signal, or 0.
    """
    seconds = args.script_seconds if args.script_seconds is not None else 0.0 if args.quick else scripts.SECONDS
    for backend in args.backends:
        rows: list[ConformanceRow] = []
        steps = Steps(output.bar(), len(programs))

        def begun(program: ConformanceProgram, backend: str = backend, steps: Steps = steps) -> None:
            steps.show(f"{backend}: {view.name_of(program)}")

        def ended(row: ConformanceRow, rows: list[ConformanceRow] = rows, steps: Steps = steps) -> None:
            rows.append(row)
            steps.next()

        with raise_on_signal():
            try:
                found = runner.conformance(backend, programs, given, runner.RunControl(begun, ended, args.timeout))
                found = replace(found, quick=args.quick)
                done.append(found)
                for row in (row for row in found.rows if row.grade == "failed" and seconds):
                    steps.show(f"{backend}: the smallest script of {view.name_of(row.program)}")
                    case = runner.case_of(row.program, backend, given)
                    script = scripts.minimal_script(row, case, folder / "sessions", seconds)
                    done[-1] = done[-1].with_script(row, script)
            except Stopped as stopped:  # what is known is reported
                if not done or done[-1].backend != backend:
                    done.append(
                        Conformance(
                            backend=backend,
                            rows=tuple(rows),
                            expected=programs,
                            versions=runner.versions(backend),
                            quick=args.quick,
                        )
                    )
                return stopped.status
    return 0


def _text(found: Conformance) -> str:
    from idbg.render.text import lines  # not at the top: a command line is parsed without it

    return "\n".join(lines(view.view(found), None, output.width()))


def _write(args: argparse.Namespace, done: list[Conformance]) -> None:
    from idbg.reports import conformance as reports
    from idbg.reports.documents import write

    for file, content in ((args.html, reports.html), (args.junit, reports.as_junit)):
        if file:
            write(places.expanded(file), content(done))
            output.note(f"written: {from_here(file)}")


def _list(args: argparse.Namespace) -> int:
    """Print the programs."""
    found = catalogue.chosen(catalogue.programs(quick=args.quick and not args.names), args.names)
    output.report(
        lambda: {"schema": view.SCHEMA, "programs": found},
        lambda: "\n".join(f"{view.name_of(each):42} {each.about}" for each in found),
    )
    return exits.DONE
