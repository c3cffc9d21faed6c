"""What came of a run, in one word? Whoever shows, writes or exits with a verdict asks here.

A run's verdict is that of its worst stage. What is not known, because the run goes on or was cancelled, is "waiting".
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from idbg.format.amounts import counted
from idbg.schema.programs import Failure, Verdict

if TYPE_CHECKING:
    from idbg.schema.runs import Run

_WORST_FIRST: tuple[Verdict, ...] = ("failed", "wrong", "empty", "violations", "clean", "waiting")


def of(run: "Run") -> Verdict:
    """The run's verdict as it is known now."""
    if run.ended is None or (run.failure is not None and run.failure.kind == "cancelled"):
        return "waiting"
    return min((run.ended, *_found(run)), key=_WORST_FIRST.index)


def _found(run: "Run") -> Iterator[Verdict]:
    if cause(run) is not None or (run.diff is not None and run.diff.verdict == "error"):
        yield "failed"
    if run.diff is not None and run.diff.verdict == "failed":
        yield "wrong"
    if run.diff is not None and run.diff.verdict == "empty":
        yield "empty"
    if run.violations:
        yield "violations"
    elif not run.graphs:
        yield "empty"
    yield "clean"


def cause(run: "Run") -> Failure | None:
    """The failure that makes the run a failed one: the program's, one that the program swallowed, or a side's.

    Strict rules that stopped a compile are violations, not a failure.
    """
    swallowed = (failed.failure for failed in run.frame_failures)
    sides = (side.failure for side in run.diff.sides if run.diff.verdict == "error") if run.diff else ()
    found = (run.failure, *swallowed, *sides)
    return next((failure for failure in found if failure is not None and failure.kind != "constraints"), None)


def looks(run: "Run") -> Verdict:
    """Whose sign and colour it has: rules that stopped a compile are as bad as a failure."""
    return "failed" if is_stopped(run) else of(run)


def is_stopped(run: "Run") -> bool:
    """Whether strict rules stopped the compile."""
    return run.failure is not None and run.failure.kind == "constraints"


def said(run: "Run") -> str:
    """The verdict in words: "clean", "17 violations", "nothing was compiled"."""
    match of(run):
        case "violations":
            found = counted(len(run.violations), "violation")
            return f"stopped by the rules: {found}" if is_stopped(run) else found
        case "wrong":
            return _wrong(run)
        case "empty":
            return "nothing was compiled"
        case "failed" if run.failure is None:
            return _failed(run)
        case "clean" if not run.checked:
            return "compiled, no rules asked"
        case "waiting" if run.ended is not None:
            return "cancelled"
        case word:
            return word


def _failed(run: "Run") -> str:
    if any(failed.failure.kind != "constraints" for failed in run.frame_failures):
        return f"{counted(len({failed.frame for failed in run.frame_failures}), 'frame')} did not compile"
    side = next((side.name for side in run.diff.sides if side.failure is not None), "") if run.diff else ""
    return f"{side} failed" if side else "failed"


def _wrong(run: "Run") -> str:
    tensors = (*run.diff.outputs, *run.diff.gradients) if run.diff else ()
    failed = sum(tensor.failed for tensor in tensors)
    return f"{failed:,} of {counted(len(tensors), 'tensor')} wrong" if failed else "numbers are wrong"
