"""Write the report of a session, or of a run of a program, to files: one command for every format."""

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
from idbg.schema.programs import SUCCESSFUL
from idbg.schema.runs import History
from idbg.session import index
from idbg.session.files import is_session

log = logging.getLogger(__name__)
HELP = "write a session, or a run of a program, to one file: HTML, JSON, Markdown, JUnit, SARIF"
ABOUT = """\
Write one session, several sessions, or a run of a program, to files that can be shared: a page, a comment for a pull
request, results that a CI system reads. The file name extension chooses the format.

With --json the names of the written files are printed as JSON; without -o the JSON report itself is printed.
"""
EXAMPLES = (
    (
        "idbg report debug_artifacts/SESSION -o report.html -o results.sarif",
        "a page, and what GitHub shows on the lines of a pull request",
    ),
    ("idbg report debug_artifacts/NEW --compare debug_artifacts/OLD -o report.html", "two sessions side by side"),
    ("idbg report examples/mlp_train.py --backend inductor -o report.html", "run it, then write the report"),
    ("idbg report --schema json", "the JSON Schema of the JSON report"),
)
EXITS = {
    exits.DONE: "every file is written",
    exits.FAILED: "there was no session, one of several could not be read, or the program failed",
}
SEE = ("show", "list", "run", "watch")
SCHEMA = "idbg.files/1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser, required=False, instead=f"{sessions.SESSION}; or a folder with sessions")
    parser.add_argument("more", metavar="SESSION", nargs="*", help="more sessions for the same report")
    parser.add_argument(
        "-o",
        "--to",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="the file to write; repeat for more. Its extension chooses the format: "
        + ", ".join(f"{document(each).SUFFIXES[0]} ({document(each).ABOUT})" for each in formats()),
    )
    parser.add_argument("--format", choices=formats(), help="the format, whatever the extension; without -o to stdout")
    parser.add_argument("--schema", choices=("json",), help="print only the JSON Schema of this format")
    parser.add_argument("--compare", metavar="SESSION", help="compare with this session")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    if args.schema:
        from idbg.reports.documents.json.schema import SHIPPED

        output.say_bytes(SHIPPED.read_bytes())
        return exits.DONE
    if args.program is None:
        raise BadInput("no session and no program is named", hint="idbg list lists the sessions; last is the newest")
    args.to = [path for path in args.to if str(path) != "-"]  # stdout, where a format is named
    if args.json and not args.to:
        args.format = "json"
    if not args.to and not args.format:
        raise BadInput("no file to write to", hint="name one: -o report.html, or use --format to write to stdout")
    wanted = [(path, args.format or format_of(path)) for path in args.to]
    content, failed = _content(args, argv)
    if args.compare is not None:
        content = _with_other(content, _folder(args.compare, args))
    for path, name in wanted:
        write(path, document(name).render(content))
        output.note(f"report: {path}")
    if not wanted:
        output.say_bytes(document(args.format).render(content))
    elif args.json:
        files = [{"path": str(path), "format": name} for path, name in wanted]
        output.say_json({"schema": SCHEMA, "files": files})
    return exits.FAILED if failed else exits.DONE


def _content(args: argparse.Namespace, argv: tuple[str, ...]) -> tuple[SessionData, bool]:
    """The content of the report, and whether it failed."""
    from idbg.cli.one_run import run_once

    named = places.expanded(args.program)
    if args.module or (not args.more and named.suffix == ".py") or ":" in named.name:
        done, folder = run_once(settle(args, argv))
        return _read(folder)[0], done.verdict not in SUCCESSFUL
    read = _readable if args.more else _read  # one session that cannot be read does not stop the others
    found = [one for each in (args.program, *args.more) for one in read(_folder(each, args))]
    if not found:
        log.warning("no session in %s: the report is empty", named)
    failed = not any(each.folder for each in found) or (bool(args.more) and not all(each.folder for each in found))
    return together(found) if found else SessionData("", History()), failed


def _folder(text: str, args: argparse.Namespace) -> Path:
    """The named session, or the path as it is: a folder of sessions, or nothing. A trace is imported."""
    folder = places.expanded(text)
    if not is_session(folder) and (session := sessions.imported(text, args.output)) is not None:
        return session
    return folder if folder.exists() else sessions.find_or_none(text, args.output) or folder


def _read(folder: Path) -> list[SessionData]:
    """The session, or the sessions in the folder, oldest first; none where there is no such folder."""
    if folder.is_dir() and not is_session(folder):
        started = {each.name: each.started for each in index.sessions(folder)}
        inside = [each for each in folder.iterdir() if is_session(each)]
        inside.sort(key=lambda each: (started.get(each.name, 0.0), each.name))
        return [one for each in inside for one in _readable(each)]
    if not folder.exists():
        return []
    with sessions.opened(folder) as saved:
        return [SessionData(folder.resolve().name, saved.history, str(folder))]


def _readable(folder: Path) -> list[SessionData]:
    """The session. One that cannot be read is logged, and the report says that it is missing."""
    try:
        return _read(folder)
    except OutputError as error:
        log.warning("left out: %s", error.in_one_line)
        return [SessionData(folder.name, History(missing=[f"it is left out: {error.message}"]))]


def _with_other(content: SessionData, folder: Path) -> SessionData:
    others = _read(folder)
    if not any(each.folder for each in others):
        raise BadInput(f"no session in {folder}: there is nothing to compare with", hint="idbg list lists the sessions")
    return replace(content, other=together(others))
