"""Which sessions go, and are you sure?"""

import argparse
import logging
import sys
import time
from pathlib import Path

import msgspec

from idbg.cli import exits, moments, output
from idbg.cli.sessions import SESSION, add_output, find, output_folder
from idbg.format.amounts import counted, moment, size
from idbg.format.plain_text import one_line
from idbg.schema.errors import BadInput, OutputError
from idbg.schema.summaries import SessionSummary
from idbg.session import removal
from idbg.session.index import sessions

log = logging.getLogger(__name__)
HELP = "remove sessions: those that are named, the old ones, or all but the newest"
ABOUT = """\
Remove sessions from the output folder: those that are named, those that are older than --older-than and not among the
newest --keep, or with neither all of them. It asks first.

Nothing but sessions is removed: never one that is live, nor one in whose folder lies what idbg did not put there, and
no link is followed. The settings keep_sessions, keep_days and keep_size do the same each time a session begins.
"""
EXAMPLES = (
    ("idbg clean --older-than 30d --keep 20 --dry-run", "what would go"),
    ("idbg clean --older-than 30d --keep 20 -f", "without a question, as in a script"),
    ("idbg clean resnet-20260301-101500", "one session"),
)
EXITS = {
    exits.DONE: "they are gone, or there was nothing to remove",
    exits.FAILED: "the answer was no, or one of them could not be removed",
}
SEE = ("list", "config")


class Cleaned(msgspec.Struct, frozen=True, kw_only=True):
    """What went, or with `dry_run` would; `freed` is in bytes. `left`: a session's name and why it was not removed."""

    schema: str = "idbg.clean/1"
    output: str
    dry_run: bool
    removed: list[str]
    freed: int
    left: dict[str, str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which of them, and whether it asks."""
    parser.add_argument("sessions", metavar="SESSION", nargs="*", help=SESSION)
    parser.add_argument("--older-than", metavar="SPAN", help="that have ended so long ago: 30d, 12h, 2w")
    parser.add_argument("--keep", metavar="N", type=int, help="but not the newest N")
    parser.add_argument("-f", "--force", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="say what would go, and remove nothing")
    add_output(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Choose, ask, remove and tell. Raises BadInput where nobody can be asked."""
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
    done = Cleaned(output=str(folder), dry_run=args.dry_run, removed=gone, freed=freed, left=left)
    _tell(done, as_json=args.json)
    return exits.FAILED if len(gone) < len(chosen) else exits.DONE


def _chosen(args: argparse.Namespace, folder: Path) -> tuple[list[SessionSummary], dict[str, str]]:
    """Those that are to go and can, oldest first; and why others that were meant cannot."""
    if args.keep is not None and args.keep < 0:
        raise BadInput(f"--keep is {args.keep}", hint="give a number from 0 up")
    if args.sessions and (args.older_than is not None or args.keep is not None):
        raise BadInput("--older-than and --keep choose among all", hint="name sessions, or give those flags")
    before = time.time() - moments.span(args.older_than) if args.older_than is not None else None
    meant = _named(args, folder) if args.sessions else sessions(folder)[args.keep or 0 :]
    undated: dict[str, str] = {}
    if before is not None:
        undated = {each.name: "when it began is not known" for each in meant if not each.started}
        meant = [each for each in meant if each.started and each.started + each.seconds < before]
    left = undated | {each.name: why for each in meant if (why := removal.why_not(Path(each.folder)))}
    if args.sessions and left:
        name, why = next(iter(left.items()))
        raise BadInput(f"{name} is not removed: {why}", hint="idbg list names the sessions that there are")
    return [each for each in reversed(meant) if each.name not in left], left


def _named(args: argparse.Namespace, folder: Path) -> list[SessionSummary]:
    """Raises OutputError for one that is none."""
    found: dict[Path, SessionSummary] = {}
    for text in args.sessions:
        named = find(text, args.output).absolute()
        known = {Path(each.folder): each for each in sessions(named.parent)}
        found[named] = known.get(named) or SessionSummary(folder=str(named), name=named.name)
    return list(found.values())


def _agreed(chosen: list[SessionSummary], folder: Path) -> bool:
    """Ask, on a terminal. Raises BadInput where there is none."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInput(
            f"{counted(len(chosen), 'session')} would be removed, and nobody can be asked",
            hint="-f removes without asking; --dry-run says what would go",
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


def _tell(done: Cleaned, *, as_json: bool) -> None:
    if as_json:
        output.say_json(done)
        return
    if done.dry_run:
        for name in done.removed:
            output.say(one_line(name, 255))
    for name, why in done.left.items():
        output.note(f"left: {one_line(name, 255)}: {one_line(why)}")
    would = "would be removed" if done.dry_run else "removed"
    freed = "would be freed" if done.dry_run else "freed"
    output.say(f"{counted(len(done.removed), 'session')} {would}, {size(done.freed)} {freed}")
