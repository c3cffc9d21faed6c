"""How is what happened handed to somebody who was not there? One command for every format of a report."""

import argparse
import logging
from dataclasses import replace
from pathlib import Path

from idbg.cli import exits, output, sessions
from idbg.config import places
from idbg.config.arguments import add_arguments as add_program_arguments
from idbg.config.arguments import settle
from idbg.reports.documents import SessionData, document, format_of, formats, together, write
from idbg.schema.errors import BadInput, OutputError
from idbg.schema.runs import History
from idbg.session import index
from idbg.session.files import is_session

log = logging.getLogger(__name__)
HELP = "write what happened in a session, or in a run of a program, to one file: HTML, JSON, Markdown, JUnit, SARIF"
ABOUT = """\
Write what happened in a session, in several, or in a run of a program, to files that can be handed on: a page, a
comment for a pull request, results that a CI system reads. The name's end says the format.

With --json the files that were written are named as JSON; without -o it is the JSON report itself.
"""
EXAMPLES = (
    (
        "idbg report debug_artifacts/SESSION -o report.html -o results.sarif",
        "a page, and what GitHub shows on the lines of a pull request",
    ),
    ("idbg report debug_artifacts/NEW --compare debug_artifacts/OLD -o report.html", "two sessions side by side"),
    ("idbg report examples/mlp_train.py --backend inductor -o report.html", "run it, then tell"),
    ("idbg report --schema json", "what is valid as the JSON report, as a JSON Schema"),
)
EXITS = {
    exits.DONE: "every file is written",
    exits.FAILED: "there was no session to tell of, one of several could not be read, or the program failed",
}
SEE = ("show", "list", "run", "watch")
SCHEMA = "idbg.files/1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of what, to which files, and in which format where their names do not say."""
    add_program_arguments(parser, required=False, instead=f"{sessions.SESSION}; or a folder with sessions")
    parser.add_argument("more", metavar="SESSION", nargs="*", help="further sessions, told in the same report")
    parser.add_argument(
        "-o",
        "--to",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="where it is written; again for more. The name's end says the format: "
        + ", ".join(f"{document(each).SUFFIXES[0]} ({document(each).ABOUT})" for each in formats()),
    )
    parser.add_argument("--format", choices=formats(), help="this one, whatever the names say; to stdout without -o")
    parser.add_argument("--schema", choices=("json",), help="print the JSON Schema of this format, and nothing else")
    parser.add_argument("--compare", metavar="SESSION", help="held against this session")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Read or run it, and write each file; the exit status is as `EXITS` has it."""
    if args.schema:
        from idbg.reports.documents.json.schema import SHIPPED

        output.say_bytes(SHIPPED.read_bytes())
        return exits.DONE
    if args.program is None:
        raise BadInput("no session and no program is named", hint="idbg list shows the sessions; last is the newest")
    if args.json and not args.to:
        args.format = "json"
    if not args.to and not args.format:
        raise BadInput("no file to write to", hint="name one: -o report.html, or give --format to have it on stdout")
    wanted = [(path, args.format or format_of(path)) for path in args.to]
    told, failed = _told(args, argv)
    if args.compare is not None:
        told = _with_other(told, _folder(args.compare, args))
    for path, name in wanted:
        write(path, document(name).render(told))
        output.note(f"report: {path}")
    if not wanted:
        output.say_bytes(document(args.format).render(told))
    elif args.json:
        files = [{"path": str(path), "format": name} for path, name in wanted]
        output.say_json({"schema": SCHEMA, "files": files})
    return exits.FAILED if failed else 0


def _told(args: argparse.Namespace, argv: tuple[str, ...]) -> tuple[SessionData, bool]:
    """What is to be told, and whether it failed."""
    from idbg.cli.one_run import one_run

    named = places.expanded(args.program)
    if args.module or (not args.more and named.suffix == ".py") or ":" in named.name:
        asked = settle(args, argv, strict=False)
        done, folder = one_run(asked.program, asked.target, places.expanded(asked.settings.output))
        return _read(folder)[0], done.verdict not in ("clean", "violations")
    read = _readable if args.more else _read  # of several that are named, one that cannot be read costs no other
    found = [told for each in (args.program, *args.more) for told in read(_folder(each, args))]
    if not found:
        log.warning("no session in %s: the report is empty", named)
    failed = not any(each.folder for each in found) or (bool(args.more) and not all(each.folder for each in found))
    return together(found) if found else SessionData("", History()), failed


def _folder(text: str, args: argparse.Namespace) -> Path:
    """The session that is named, or a folder as it was given: it may have sessions in it, or not be there."""
    folder = places.expanded(text)
    return folder if folder.exists() else sessions.named(text, args.output) or folder


def _read(folder: Path) -> list[SessionData]:
    """The session, or those in the folder, oldest first; none where there is no such folder."""
    if folder.is_dir() and not is_session(folder):
        started = {each.name: each.started for each in index.sessions(folder)}
        inside = [each for each in folder.iterdir() if is_session(each)]  # also what turns out to be none, and is named
        inside.sort(key=lambda each: (started.get(each.name, 0.0), each.name))
        return [told for each in inside for told in _readable(each)]
    if not folder.exists():
        return []
    with sessions.opened(folder) as saved:
        return [SessionData(folder.resolve().name, saved.history, str(folder))]


def _readable(folder: Path) -> list[SessionData]:
    """The session; of one that cannot be read that it is missing, here and in the report."""
    try:
        return _read(folder)
    except OutputError as error:
        log.warning("left out: %s", error.in_one_line)
        return [SessionData(folder.name, History(missing=[f"it is left out: {error.message}"]))]


def _with_other(told: SessionData, folder: Path) -> SessionData:
    others = _read(folder)
    if not any(each.folder for each in others):
        raise BadInput(
            f"no session in {folder}: there is nothing to compare with", hint="idbg list shows what there is"
        )
    return replace(told, other=together(others))
