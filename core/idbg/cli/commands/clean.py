"""Remove saved sessions."""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from idbg.cli import exits, moments, output, parsing
from idbg.cli.sessions import SESSION, add_output, find, output_folder
from idbg.format.amounts import counted, moment, size
from idbg.format.plain_text import one_line
from idbg.schema.errors import BadInput, OutputError
from idbg.schema.summaries import SessionSummary
from idbg.session import removal
from idbg.session.index import sessions

HELP = "remove sessions: by name, by age, or all but the newest"
ABOUT = """\
Remove sessions from the output folder: the named ones, those that are older than --older-than and not among the newest
--keep, or without either all of them. It asks before it removes.

Only sessions are removed: not a live one, nor one whose folder has files that idbg did not write. No link is followed.
The settings keep_sessions, keep_days and keep_size remove old sessions each time a session begins.
"""
EXAMPLES = (
    ("idbg clean --older-than 30d --keep 20 --dry-run", "what would be removed"),
    ("idbg clean --older-than 30d --keep 20 -f", "without a question, as in a script"),
    ("idbg clean resnet-20260301-101500", "one session"),
)
EXITS = {
    exits.DONE: "they are gone, or there was nothing to remove",
    exits.FAILED: "the answer was no, or one of them could not be removed",
}
SEE = ("list", "config")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sessions", metavar="SESSION", nargs="*", help=SESSION)
    parser.add_argument("--older-than", metavar="SPAN", help="ended at least so long ago: 30d, 12h, 2w")
    parser.add_argument("--keep", metavar="N", type=int, help="keep the newest N")
    parser.add_argument("-f", "--force", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="list what would be removed, and remove nothing")
    add_output(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Raises BadInput where a question is needed and there is no terminal."""
    folder = output_folder(args.output)
    chosen, left = _chosen(args, folder)
    if chosen and not args.dry_run and not args.force and not _agreed(chosen, folder):
        output.note("nothing was removed")
        return exits.FAILED
    if not args.dry_run:
        removal.sweep(folder)
    gone: list[str] = []
    freed = 0
    for each in chosen:
        try:
            freed += each.bytes if args.dry_run else removal.remove(Path(each.folder))
            gone.append(each.name)
        except OutputError as error:
            left[each.name] = error.message
            output.fault(error.message, error.hint)
    names = {"schema": "idbg.clean/1", "output": str(folder), "dry_run": args.dry_run}
    output.report(
        lambda: {**names, "removed": gone, "freed": freed, "left": left},
        lambda: "\n".join(_lines(gone, freed, left, dry_run=args.dry_run)),
    )
    return exits.FAILED if len(gone) < len(chosen) else exits.DONE


def _chosen(args: argparse.Namespace, folder: Path) -> tuple[list[SessionSummary], dict[str, str]]:
    """The sessions to remove, oldest first, and why others that were named are not removed."""
    parsing.check_least(args, keep=0)
    if args.sessions and (args.older_than is not None or args.keep is not None):
        raise BadInput("--older-than and --keep select from all sessions", hint="name sessions, or use those flags")
    before = time.time() - moments.span(args.older_than) if args.older_than is not None else None
    selected = _named(args, folder) if args.sessions else sessions(folder)[args.keep or 0 :]
    undated: dict[str, str] = {}
    if before is not None:
        undated = {each.name: "its start time is not known" for each in selected if not each.started}
        selected = [each for each in selected if each.started and each.started + each.seconds < before]
    left = undated | {each.name: why for each in selected if (why := removal.why_not(Path(each.folder)))}
    if args.sessions and left:
        name, why = next(iter(left.items()))
        raise BadInput(f"{name} is not removed: {why}", hint="idbg list lists the sessions")
    return [each for each in reversed(selected) if each.name not in left], left


def _named(args: argparse.Namespace, folder: Path) -> list[SessionSummary]:
    """Raises OutputError for a name that is not a session."""
    found: dict[Path, SessionSummary] = {}
    for text in args.sessions:
        named = find(text, args.output).absolute()
        known = {Path(each.folder): each for each in sessions(named.parent)}
        found[named] = known.get(named) or SessionSummary(folder=str(named), name=named.name)
    return list(found.values())


def _agreed(chosen: list[SessionSummary], folder: Path) -> bool:
    """Ask on the terminal. Raises BadInput where there is none."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInput(
            f"{counted(len(chosen), 'session')} would be removed, and there is no terminal to ask on",
            hint="-f removes without asking; --dry-run lists what would be removed",
        )
    for each in chosen[:10]:
        output.line(f"  {one_line(each.name, 200)}  {moment(each.started)}  {size(each.bytes)}")
    if len(chosen) > 10:
        output.line(f"  and {len(chosen) - 10:,} more")
    total = size(sum(each.bytes for each in chosen))
    print(
        f"remove {counted(len(chosen), 'session')} from {folder}, {total}? [y/N] ", end="", file=sys.stderr, flush=True
    )
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _lines(removed: list[str], freed: int, left: dict[str, str], *, dry_run: bool) -> Iterator[str]:
    if dry_run:
        yield from (one_line(name, 255) for name in removed)
    for name, why in left.items():
        output.note(f"left: {one_line(name, 255)}: {one_line(why)}")
    would = "would be " if dry_run else ""
    yield f"{counted(len(removed), 'session')} {would}removed, {size(freed)} {would}freed"
