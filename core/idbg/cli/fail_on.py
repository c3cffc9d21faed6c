"""--fail-on and --baseline: fail a command on what CI watches for, unless it is known.

Each command offers those of `KINDS` that it can find.
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

if TYPE_CHECKING:  # not imported to parse a command line
    from idbg.checking.check import Check
    from idbg.reports.baseline import Baseline, Checked, KnownFinding
    from idbg.schema.diff import Comparison, DiffReport
    from idbg.schema.runs import Run
    from idbg.views.diagnostics import Diagnostic

MAX_LINES = 20  # printed of each kind


def add_arguments(parser: argparse.ArgumentParser, kinds: Sequence[str], default: str) -> None:
    """--fail-on KIND, repeatable, one of `kinds`; --baseline. `default` says what fails without them."""
    group = parser.add_argument_group("CI")
    words = ", ".join(f"{name} ({KINDS[name][0]})" for name in kinds)
    group.add_argument(
        "--fail-on",
        metavar="KIND",
        choices=list(kinds),
        action="append",
        default=[],
        help=f"exit with 1 if this happens, and print where; repeat for more: {words}. Without it: {default}",
    )
    group.add_argument(
        "--baseline",
        metavar="FILE.json",
        help="known findings, which do not fail; without --fail-on, every other finding fails",
    )
    group.add_argument(
        "--update-baseline",
        action="store_true",
        help="write the current findings to that file, and remove those that are gone; entries of other programs stay",
    )
    parser.set_defaults(fail_on_kinds=tuple(kinds))


class Policy(NamedTuple):
    """What fails the command. `kinds` are kinds of diagnostics; `named`: the user named some of them."""

    kinds: frozenset[str]
    named: bool
    path: Path | None
    known: "Baseline"
    update: bool

    def of_run(self, run: "Run", also: Iterable[str] = ()) -> "Checked":
        """The findings of a run that count; the kinds in `also` always fail."""
        from idbg.reports import baseline

        kinds = self.kinds | set(also)
        if not run.checked_rules:
            if self.named and kinds & set(SEVERITIES):
                why = "no accelerator is chosen (--accelerator NAME)"
                why = f"{run.backend} checks no rules while it compiles" if run.target.has_rules else why
                output.note(f"{why}: no rule was checked (idbg check does)")
            kinds -= set(SEVERITIES)
        return baseline.Checked(
            baseline.program_of(run.program),
            frozenset(kinds),
            accelerators=(run.target.accelerator,),
            compared=_sides(run.diff, run.comparison) if run.diff is not None else "",
            whole=run.verdict not in ("failed", "empty", "waiting") and not run.stopped,
        )

    def of_check(self, check: "Check") -> "Checked":
        """The findings of a check that count."""
        from idbg.reports import baseline

        return baseline.Checked(
            baseline.program_of(check.run.program),
            self.kinds | {"failure"},
            accelerators=tuple(each.name for each in check.accelerators),
            stage=check.level,
            whole=check.failure is None,
        )


def requested(args: argparse.Namespace) -> Policy:
    """What the command line asks for. Raises BadInput for a baseline that cannot be used."""
    from idbg.config import places
    from idbg.reports import baseline

    path = places.expanded(args.baseline) if args.baseline else None
    if args.update_baseline and path is None:
        raise BadInput("--update-baseline has no file to write", hint="name it with --baseline KNOWN.json")
    known = baseline.NOTHING_KNOWN if path is None else baseline.load(path, must_exist=not args.update_baseline)
    names = args.fail_on or (args.fail_on_kinds if path is not None else ())
    return Policy(findings_of(names), bool(names), path, known, args.update_baseline)


def judge(policy: Policy, run: "Run", always: Sequence[str]) -> tuple[bool, bool]:
    """Whether the run has a new finding that fails, and whether the baseline knows its failure or mismatch.

    Kinds in `always` fail also without --fail-on, but for those of other processes, which the program survived.
    """
    from idbg.views.diagnostics import PROCESS, diagnostics

    found = [each for each in diagnostics(run) if each.rule != PROCESS or each.kind in policy.kinds]
    known = policy.path is not None and any(each.kind in ("failure", "mismatch") for each in found)
    return fails(policy, found, policy.of_run(run, always)), known


def fails(policy: Policy, found: "Sequence[Diagnostic]", looked: "Checked") -> bool:
    """Whether there is a finding that counts and is not known. Prints it, and known findings that are gone, on stderr.

    With --update-baseline the baseline is written first: then everything is known.
    """
    from idbg.reports import baseline

    known = policy.known
    if policy.update and policy.path is not None:
        known = baseline.updated(found, looked, policy.known)
        baseline.write(policy.path, known)
        more, fewer = baseline.changed(policy.known, known)
        output.note(f"{policy.path} is written: {counted(more, 'entry')} more, {fewer:,} fewer or less often")
    verdict = baseline.compared_with(found, looked, known)
    if policy.named:  # else the report has it
        _print((baseline.kind_of(each), baseline.line(each, count)) for each, count in verdict.new)
    if verdict.known:
        output.note(f"{counted(verdict.known, 'finding')} known: {policy.path}")
    if verdict.fewer:
        _print(("gone", _gone(each, count)) for each, count in verdict.fewer)
        output.note(f"{policy.path} can shrink: --update-baseline removes what is gone")
    if policy.path is not None and not looked.whole:
        output.note("the run did not finish: findings that it lacks are not removed from the baseline")
    return bool(verdict.new)


def _sides(diff: "DiffReport", comparison: "Comparison | None") -> str:
    """Both sides of a comparison. The path of a session differs from checkout to checkout, and is left out."""
    reference = comparison.reference if comparison is not None else diff.reference
    return f"{diff.test} against {'a session' if '/' in reference else reference}"


def _gone(known: "KnownFinding", count: int) -> str:
    often = f"{known.count - count} of {known.count} " if count else ""
    target = f"{known.target}: " if known.target else ""
    return f"{often}{known.kind}: {target}{known.text}"


def _print(lines: Iterable[tuple[str, str]]) -> None:
    """Print the first lines of each kind, and the number of the others."""
    by_kind: dict[str, list[str]] = {}
    for kind, line in lines:
        by_kind.setdefault(kind, []).append(line)
    for kind, texts in by_kind.items():
        more = [f"and {counted(len(texts) - MAX_LINES, 'other')}"] if len(texts) > MAX_LINES else []
        for text in (*texts[:MAX_LINES], *more):
            output.line(f"idbg: {one_line(f'{kind}: {text}')}")
