"""Summarize all launches of a comparison in one sentence."""

from idbg.format.amounts import counted
from idbg.schema.diff import DiffReport, launch_name
from idbg.views.blame import why_not_accused


def is_bisected(report: DiffReport) -> bool:
    """Whether the engine searched for the first bad node, as there was no kernel to observe."""
    return any(one.bisected for one in report.kernels)


def unit_noun(report: DiffReport) -> str:
    """What one row of the launches' table is."""
    if is_bisected(report):
        return "node"
    return next((one.unit for one in report.kernels if one.is_foreign), "kernel launch")


def kernels_sentence(report: DiffReport) -> str:
    """How many kernels were observed, and which is the first bad one."""
    bad = report.culprit
    if is_bisected(report):
        return f"the first bad node (bisected): {bad.name if bad else 'none'}"
    seen, every = sum(one.observed for one in report.kernels), len(report.kernels)
    launches = counted(every, unit_noun(report))
    if bad is not None:
        return f"{launches}, {seen:,} observed; the first bad one is {launch_name(bad, report.kernels)}"
    if not seen:
        return f"{launches}, none observed"
    if harmless := sum(one.harmless for one in report.kernels):
        why = why_not_accused(report)
        return f"{launches}, {seen:,} observed; {harmless:,} worse than its inputs and not accused: {why}"
    if seen == every:
        return f"{launches}, {seen:,} observed; none is worse than its inputs"
    return f"{launches}; none of the {seen:,} observed is worse than its inputs; not observed: {every - seen:,}"
