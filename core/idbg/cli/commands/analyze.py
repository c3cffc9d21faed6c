"""Why did the compiler do what it did with a program: breaks, recompiles, guards, time, fusion, caches?"""

import argparse
import logging
from pathlib import Path

from idbg.cli import exits, fail_on, output, sessions, tables
from idbg.cli.commands.run import is_unusable
from idbg.config import places
from idbg.config.arguments import add_arguments as add_program_arguments
from idbg.config.arguments import settle
from idbg.reports import chrome_trace, decisions
from idbg.reports.diagnostics import diagnostics
from idbg.schema.errors import BadInput
from idbg.schema.runs import Run

log = logging.getLogger(__name__)
HELP = "tell why the compiler did what it did: breaks, recompiles, guards, time, fusion, caches"
ABOUT = """\
Tell why the compiler did what it did with a program: where graphs break and why, what was compiled again and which
guard failed, what guards cost, where the time went, what was fused or not, which caches were hit.

A saved session is read, and nothing is run.
"""
EXAMPLES = (
    ("idbg analyze examples/mlp_train.py", "a summary"),
    ("idbg analyze train.py --type breaks --type recompiles", "two kinds, in full"),
    ("idbg analyze debug_artifacts/SESSION --nodes add mul", "why two nodes are not one kernel, from a saved session"),
    ("idbg analyze train.py --trace time.json", "where the time of the compile went, for Perfetto"),
)
EXITS = {
    exits.DONE: "it was told; broken rules alone are no failure here: idbg check tells those",
    exits.FAILED: "the run failed, nothing was compiled, or what --fail-on names happened, and is not known",
}
SEE = (
    "run",
    "compare",
    "bench",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which program or session, what is asked of it, and whether that is told as text or as JSON."""
    add_program_arguments(parser, instead=sessions.SESSION)
    parser.add_argument(
        "--type",
        action="append",
        choices=list(decisions.TYPES),
        dest="types",
        help="what is asked (again for more; default: summary): "
        + "; ".join(f"{name}: {words}" for name, words in decisions.TYPES.items()),
    )
    parser.add_argument(
        "--nodes",
        nargs=2,
        metavar=("A", "B"),
        help="why these two nodes or kernels are not one kernel, in place of all that was fused or not",
    )
    parser.add_argument(
        "--trace",
        metavar="FILE.json",
        type=Path,
        help="where the time of the compile went, as a Chrome trace (Perfetto opens it)",
    )
    tables.add_sort(parser)
    fail_on.add_arguments(parser, fail_on.OF_A_COMPARISON, "a failure does, and numbers that a session found wrong")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Run the program, or read its session, and tell; the exit status is as `EXITS` has it."""
    watch = fail_on.asked(args)
    folder = None if args.module else sessions.named(args.program, args.output)
    done, folder = _of_program(args, argv) if folder is None else _of_session(folder)
    if args.trace is not None:
        chrome_trace.write(done, args.trace)
    if args.nodes:
        _report_pair(done, *args.nodes, as_json=args.json)
    else:
        _report(done, args.types or ["summary"], args.sort, as_json=args.json)
    if done.cause is not None and "summary" not in (args.types or ["summary"]):
        log.warning("the run failed: %s", done.cause.message.strip().partition("\n")[0])
    output.session(folder)
    return _status(done, watch)


def _of_session(folder: Path) -> tuple[Run, Path]:
    """Its last run. Raises BadInput where it has none."""
    with sessions.opened(folder) as saved:
        if saved.history.last is None:
            raise BadInput(f"the session {folder} has no run: there is nothing to tell", hint="run it: idbg run")
        return saved.history.last, folder


def _of_program(args: argparse.Namespace, argv: tuple[str, ...]) -> tuple[Run, Path]:
    from idbg.cli.one_run import one_run

    asked = settle(args, argv, strict=False)
    return one_run(asked.program, asked.target, places.expanded(asked.settings.output))


def _status(run: Run, watch: fail_on.Watch) -> int:
    if is_unusable(run):
        return exits.BAD_USAGE
    found = diagnostics(run)
    fails = fail_on.fails(watch, found, watch.of(run, ("failure", "mismatch")))
    told = watch.path is not None and any(each.kind in ("failure", "mismatch") for each in found)
    return exits.FAILED if fails or not (told or run.verdict in ("clean", "violations")) else 0


def _report_pair(run: Run, one: str, other: str, *, as_json: bool) -> None:
    """Why two are not one. Raises BadInput where the run has no such node or kernel."""
    from idbg.reports import json
    from idbg.views import fusion

    if as_json:
        pair = fusion.pair_json(run, one, other)
        output.say_json(json.encode({"schema": "idbg.analyze/1", "pair": pair}))
    else:
        output.say("\n".join(fusion.pair_lines(run, one, other)))


def _report(run: Run, types: list[str], sort: str | None, *, as_json: bool) -> None:
    if as_json:
        from idbg.reports import json

        told = {name: decisions.as_json(name, run) for name in types}
        output.say_json(json.encode({"schema": "idbg.analyze/1", **told}))
        return
    if is_unusable(run):
        types = ["summary"]  # there is nothing but why
    elif sort:
        _report_sorted(run, types, sort)
        return
    for number, name in enumerate(types):
        if len(types) > 1:
            output.say(f"{'' if number == 0 else chr(10)}{name}")
        output.say("\n".join(decisions.text(name, run)))


def _report_sorted(run: Run, types: list[str], sort: str) -> None:
    """The tables of these types by a column. Raises BadInput where none of them has it."""
    from idbg.render.text import lines
    from idbg.views.tree import sorting_columns

    shown = {name: decisions.section(name, run) for name in types if name in decisions.VIEWS}
    if len(shown) < len(types):
        raise BadInput("the summary has no rows to sort", hint="name what is sorted: --type time --sort COLUMN")
    tables.check_sort(sort, [column for section in shown.values() for column in sorting_columns(section)])
    for number, (name, section) in enumerate(shown.items()):
        if len(shown) > 1:
            output.say(f"{'' if number == 0 else chr(10)}{name}")
        output.say("\n".join(lines(tables.in_order(section, sort))))
