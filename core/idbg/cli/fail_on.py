"""What must not happen where a machine watches (--fail-on), did it, and was it known already (--baseline)?

Each verb offers those of `KINDS` that it can find; what they mean, and what is known, is one mechanism for all.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from idbg.cli import output
from idbg.format.amounts import counted
from idbg.format.plain_text import one_line
from idbg.reports.fail_kinds import KINDS, findings_of
from idbg.reports.fail_kinds import OF_A_COMPARISON as OF_A_COMPARISON
from idbg.reports.fail_kinds import OF_A_RUN as OF_A_RUN
from idbg.schema.errors import BadInput
from idbg.schema.violations import SEVERITIES

if TYPE_CHECKING:  # what reads a command line need not load what judges a run
    from idbg.checking.check import Check
    from idbg.reports.baseline import Baseline, KnownFinding, Looked
    from idbg.reports.diagnostics import Diagnostic
    from idbg.schema.diff import Comparison, DiffReport
    from idbg.schema.runs import Run

MOST = 20  # told of each kind


def add_arguments(parser: argparse.ArgumentParser, kinds: Sequence[str], default: str) -> None:
    """--fail-on KIND, as often as it is wanted, of these `kinds`, and the file of what is known. `default` says what
    fails without them.
    """
    group = parser.add_argument_group("for machines that watch")
    words = ", ".join(f"{name} ({KINDS[name][0]})" for name in kinds)
    group.add_argument(
        "--fail-on",
        metavar="KIND",
        choices=list(kinds),
        action="append",
        default=[],
        help=f"exit with 1 if this happens, and name where; repeat for more: {words}. Without it: {default}",
    )
    group.add_argument(
        "--baseline",
        metavar="FILE.json",
        help="what is known, and fails nothing; without --fail-on, whatever else is found fails",
    )
    group.add_argument(
        "--update-baseline",
        action="store_true",
        help="write what is found now to that file, and take out what is gone; other programs' entries stay",
    )
    parser.set_defaults(fail_on_kinds=tuple(kinds))


class Watch(NamedTuple):
    """What the command line asks for. `kinds` are diagnostics' kinds; `named` says whether the user named any."""

    kinds: frozenset[str]
    named: bool
    path: Path | None
    known: "Baseline"
    update: bool

    def of(self, run: "Run", also: Iterable[str] = ()) -> "Looked":
        """What is looked for in a run; `also` these kinds, which always fail."""
        from idbg.reports import baseline

        kinds = self.kinds | set(also)
        if not run.checked_rules:
            if self.named and kinds & set(SEVERITIES):
                why = "no accelerator is chosen (--accelerator NAME)"
                why = f"{run.backend} asks no rules while it compiles" if run.target.has_rules else why
                output.note(f"{why}: none was looked for (idbg check does)")
            kinds -= set(SEVERITIES)
        return baseline.Looked(
            baseline.program_of(run.program),
            frozenset(kinds),
            accelerators=(run.target.accelerator,),
            compared=_sides(run.diff, run.comparison) if run.diff is not None else "",
            whole=run.verdict not in ("failed", "empty", "waiting") and not run.stopped,
        )

    def of_check(self, check: "Check") -> "Looked":
        """What is looked for in a check."""
        from idbg.reports import baseline

        return baseline.Looked(
            baseline.program_of(check.run.program),
            self.kinds | {"failure"},
            accelerators=tuple(each.name for each in check.accelerators),
            stage=check.level,
            whole=check.failure is None,
        )


def asked(args: argparse.Namespace) -> Watch:
    """What is to be watched for, read before anything runs. Raises BadInput for a baseline that cannot be used."""
    from idbg.config import places
    from idbg.reports import baseline

    path = places.expanded(args.baseline) if args.baseline else None
    if args.update_baseline and path is None:
        raise BadInput("--update-baseline has no file to write", hint="name it with --baseline KNOWN.json")
    known = baseline.NOTHING_KNOWN if path is None else baseline.load(path, must_exist=not args.update_baseline)
    names = args.fail_on or (args.fail_on_kinds if path is not None else ())
    return Watch(findings_of(names), bool(names), path, known, args.update_baseline)


def fails(watch: Watch, found: "Sequence[Diagnostic]", looked: "Looked") -> bool:
    """Whether something that was looked for was found, and is not known. What it is, and where, is told on stderr, as
    is what is known and no longer found. The baseline is written where that is asked for: then all is known.
    """
    from idbg.reports import baseline

    known = watch.known
    if watch.update and watch.path is not None:
        known = baseline.updated(found, looked, watch.known)
        baseline.write(watch.path, known)
        more, fewer = baseline.changed(watch.known, known)
        output.note(f"{watch.path} is written: {counted(more, 'entry')} more, {fewer:,} fewer or less often")
    verdict = baseline.judged(found, looked, known)
    if watch.named:  # else the report tells it
        _tell((baseline.kind_of(each), baseline.line(each, count)) for each, count in verdict.new)
    if verdict.known:
        output.note(f"{counted(verdict.known, 'finding')} known: {watch.path}")
    if verdict.fewer:
        _tell(("gone", _gone(each, count)) for each, count in verdict.fewer)
        output.note(f"{watch.path} can shrink: --update-baseline takes out what is gone")
    if watch.path is not None and not looked.whole:
        output.note("the run did not come to its end: what it has not found is not taken for gone")
    return bool(verdict.new)


def _sides(diff: "DiffReport", comparison: "Comparison | None") -> str:
    """Both sides of a comparison; another session's outputs lie elsewhere in each checkout."""
    reference = comparison.reference if comparison is not None else diff.reference
    return f"{diff.test} against {'a session' if '/' in reference else reference}"


def _gone(known: "KnownFinding", count: int) -> str:
    often = f"{known.count - count} of {known.count} " if count else ""
    target = f"{known.target}: " if known.target else ""
    return f"{often}{known.kind}: {target}{known.text}"


def _tell(lines: Iterable[tuple[str, str]]) -> None:
    """The first of each kind, and how many there are beside."""
    by_kind: dict[str, list[str]] = {}
    for kind, line in lines:
        by_kind.setdefault(kind, []).append(line)
    for kind, told in by_kind.items():
        for line in told[:MOST]:
            _say(f"{kind}: {line}")
        if len(told) > MOST:
            _say(f"{kind}: and {counted(len(told) - MOST, 'other')}")


def _say(text: str) -> None:
    """On one line, whatever is in a name."""
    output.line(f"idbg: {one_line(text)}")
