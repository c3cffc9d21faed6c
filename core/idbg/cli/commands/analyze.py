"""Report why the compiler did what it did: breaks, recompiles, guards, time, fusion, caches."""

import argparse
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from idbg.cli import exits, fail_on, output, sessions, tables
from idbg.cli.commands.run import is_unusable
from idbg.config.arguments import add_arguments as add_program_arguments
from idbg.config.arguments import settle
from idbg.format.amounts import few
from idbg.reports import chrome_trace, decisions
from idbg.schema.errors import BadInput
from idbg.schema.programs import SUCCESSFUL
from idbg.schema.runs import History, Run, fold
from idbg.session import processes
from idbg.session.reading import load

if TYPE_CHECKING:  # not imported to parse a command line
    from idbg.session.session import Session

log = logging.getLogger(__name__)
HELP = "report why the compiler did what it did: breaks, recompiles, guards, time, fusion, caches"
ABOUT = """\
Report why the compiler did what it did with a program: where graphs break and why, what was recompiled and which guard
failed, what guards cost, where the time went, what was fused or not, which caches were hit.

With a saved session nothing is run.
"""
EXAMPLES = (
    ("idbg analyze examples/mlp_train.py", "a summary"),
    ("idbg analyze train.py --type breaks --type recompiles", "two reports, in full"),
    ("idbg analyze train.py --type recompiles --try", "which of the suggestions help"),
    ("idbg analyze debug_artifacts/SESSION --nodes add mul", "why two nodes were not fused, from a saved session"),
    ("idbg analyze last --type ranks", "the ranks of the last job, compared"),
    ("idbg analyze train.py --trace time.json", "where the compile time went, for Perfetto"),
)
EXITS = {
    exits.DONE: "the report was written; broken rules alone are no failure here (idbg check)",
    exits.FAILED: "the run failed, nothing was compiled, or what --fail-on names happened, and is not known",
}
SEE = ("run", "compare", "bench")
SCHEMA = "idbg.analyze/1"
RANKS = "ranks"
_NAMED = 8  # processes with the same report
_RANKS_WORDS = "of a session alone: which rank waits for whom, and where ranks differ"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser, instead=sessions.SESSION)
    parser.add_argument(
        "--type",
        action="append",
        choices=[*decisions.TYPES, RANKS],
        dest="types",
        help="the report (repeat for more; default: summary): "
        + "; ".join(f"{name}: {words}" for name, words in {**decisions.TYPES, RANKS: _RANKS_WORDS}.items()),
    )
    parser.add_argument(
        "--nodes",
        nargs=2,
        metavar=("A", "B"),
        help="why these two nodes or kernels were not fused, in place of the other reports",
    )
    parser.add_argument(
        "--trace",
        metavar="FILE.json",
        type=Path,
        help="write where the compile time went as a Chrome trace (Perfetto opens it)",
    )
    parser.add_argument(
        "--try",
        action="store_true",
        dest="try_advice",
        help="run the program again with each suggestion that a setting does, and report what that changed",
    )
    tables.add_sort(parser)
    fail_on.add_arguments(parser, fail_on.OF_A_COMPARISON, "a failure does, and numbers that a session found wrong")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    from idbg.cli.one_run import run_once

    policy = fail_on.requested(args)
    folder = sessions.saved(args)
    if RANKS in (args.types or ()):
        return _report_ranks(args, folder)
    if folder is None:
        done, folder = run_once(settle(args, argv), then=_try_all if args.try_advice else None)
    elif args.try_advice:
        raise BadInput("--try runs the program again, and a saved session runs nothing", hint="name the program itself")
    else:
        with sessions.opened(folder) as session:
            history = session.history
        if history.last is None and history.processes and policy.named and not args.types:
            return _judge_processes(history, folder, policy)
        if history.last is None and history.processes and not (args.trace or args.nodes):
            return _report_processes(args, folder, policy)
        done = sessions.last_run(history, folder)
    if args.trace is not None:
        chrome_trace.write(done, args.trace)
    types = args.types or ["summary"]
    if args.nodes:
        _report_pair(done, *args.nodes)
    else:
        _report(done, types, args.sort, as_json=args.json)
    if done.cause is not None and "summary" not in types:
        log.warning("the run failed: %s", done.cause.first_line)
    output.session(folder)
    return status(done, policy)


def _try_all(session: "Session", run: Run) -> None:
    """Try each suggestion in a run of its own; none of a run that failed."""
    from idbg.analysis.decisions.trials import to_try

    for suggestion in to_try(run) if run.cause is None else ():
        number = session.try_out(run, suggestion)
        session.wait()
        session.tried(run, session.history.runs[number], suggestion)


def _report_ranks(args: argparse.Namespace, session: Path | None) -> int:
    """Raises BadInput where no session is named, or other types beside it."""
    from idbg.cli import ranks

    if session is None:
        raise BadInput(f"{args.program} is not a session", hint="idbg run --nproc-per-node N starts ranks")
    if set(args.types) != {RANKS}:
        raise BadInput("--type ranks is of all ranks, and the other types are of one process", hint="name it alone")
    found = ranks.report(session, SCHEMA)
    output.session(session)
    return exits.FAILED if ranks.has_failed(found) else exits.DONE


def _judge_processes(history: History, folder: Path, policy: fail_on.Policy) -> int:
    """Report and judge a session whose main process compiled nothing: a job of ranks, or an imported one."""
    from idbg.render.text import text
    from idbg.reports import baseline
    from idbg.views.diagnostics import of_history, of_processes
    from idbg.views.processes import view

    found = sessions.processes_of(folder, history)
    output.report(lambda: {"schema": SCHEMA, "processes": found}, lambda: text(view(found)))
    output.session(folder)
    listed = [*of_history(history), *of_processes(history.processes.values())]
    listed = list({each.key: each for each in listed}.values())
    program = listed[0].program if listed else ""
    return exits.FAILED if fail_on.fails(policy, listed, baseline.Checked(program, policy.kinds)) else exits.DONE


def status(run: Run, policy: fail_on.Policy) -> int:
    """The exit status, with --fail-on and --baseline."""
    if is_unusable(run):
        return exits.BAD_USAGE
    fails, known = fail_on.judge(policy, run, ("failure", "mismatch"))
    if run.verdict == "waiting":
        return exits.FAILED
    return exits.FAILED if fails or not (known or run.own_verdict in SUCCESSFUL) else exits.DONE


def _report_pair(run: Run, one: str, other: str) -> None:
    """Raises BadInput where the run has no such node or kernel."""
    from idbg.views import fusion

    output.report(
        lambda: {"schema": SCHEMA, "pair": fusion.pair_json(run, one, other)},
        lambda: "\n".join(fusion.pair_lines(run, one, other)),
    )


def _report(run: Run, types: list[str], sort: str | None, *, as_json: bool) -> None:
    if as_json:
        output.say_json({"schema": SCHEMA, **_as_json(run, types)})
    else:
        output.say(_text(run, types, sort))


def _report_processes(args: argparse.Namespace, folder: Path, policy: fail_on.Policy) -> int:
    """Report each process of a session that has no run of its own; those whose text is the same in one."""
    types = args.types or ["summary"]
    runs = {}
    for name in processes.names(folder):
        history = fold(load(folder / processes.FOLDER / name))
        if history.last is not None:
            runs[name] = history.last
    if args.json:
        output.say_json({"schema": SCHEMA, "processes": {name: _as_json(run, types) for name, run in runs.items()}})
    else:
        names: dict[str, list[str]] = {}
        for name, run in runs.items():
            names.setdefault(_text(run, types, args.sort), []).append(name)
        output.say("\n\n".join(f"{few(alike, _NAMED)}\n{text}" for text, alike in names.items()))
    output.session(folder)
    return max((status(run, policy) for run in runs.values()), default=exits.DONE)


def _as_json(run: Run, types: list[str]) -> dict[str, object]:
    found = {name: decisions.as_json(name, run) for name in types}
    return {**found, "refs": {name: decisions.refs(name, run) for name in types}}


def _text(run: Run, types: list[str], sort: str | None) -> str:
    from idbg.render.text import MOST
    from idbg.views.tree import sorting_columns

    if is_unusable(run):
        types, sort = ["summary"], None  # the summary says why
    sections = {name: decisions.section(name, run) for name in types if name in decisions.VIEWS}
    if sort and len(sections) < len(types):
        raise BadInput("the summary has no rows to sort", hint="name a table: --type time --sort COLUMN")
    tables.check_sort(sort, [column for section in sections.values() for column in sorting_columns(section)])
    texts = (
        tables.text(sections[name], sort, MOST, check=False)
        if name in sections
        else "\n".join(decisions.text(name, run))
        for name in types
    )
    return "\n\n".join(f"{name}\n{text}" if len(types) > 1 else text for name, text in zip(types, texts, strict=True))
