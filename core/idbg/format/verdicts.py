"""What came of a run, in a few words?"""

from idbg.format.amounts import counted
from idbg.schema.runs import Run


def verdict_words(run: Run) -> str:
    """The run's verdict as it is known now: "clean", "17 violations", "nothing was compiled"."""
    match run.verdict:
        case "violations":
            broken = counted(len(run.violations), "violation")
            return f"stopped by the rules: {broken}" if run.stopped else broken
        case "wrong":
            return _wrong(run)
        case "empty":
            return "nothing was compiled"
        case "failed" if run.failure is None:
            return _failed(run)
        case "clean" if not run.checked or run.target.accelerator == "none":  # as of a check, which asks them since
            return "compiled, no rules asked"
        case "waiting" if run.ended is not None:
            return "cancelled"
        case word:
            return word


def _failed(run: Run) -> str:
    if any(failed.failure.kind != "constraints" for failed in run.frame_failures):
        return f"{counted(len({failed.frame for failed in run.frame_failures}), 'frame')} did not compile"
    side = next((side.name for side in run.diff.sides if side.failure is not None), "") if run.diff else ""
    return f"{side} failed" if side else "failed"


def _wrong(run: Run) -> str:
    tensors = (*run.diff.outputs, *run.diff.gradients) if run.diff else ()
    failed = sum(tensor.failed for tensor in tensors)
    return f"{failed:,} of {counted(len(tensors), 'tensor')} wrong" if failed else "numbers are wrong"
