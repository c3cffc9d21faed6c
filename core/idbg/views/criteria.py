"""Explain why a tensor passed or failed: the criterion that decided, the error it allows, and those that did not."""

from collections.abc import Iterator
from typing import Literal

from idbg.format.amounts import counted, figure
from idbg.schema.diff import Criterion, FailedBy, SideEffect, TensorDiff, Term
from idbg.views.remarks import sentence

_OF: dict[FailedBy, str] = {
    "rmse": "RMSE",
    "maximum": "largest error",
    "row": "RMSE of the worst row",
    "column": "RMSE of the worst column",
    "tile": "RMSE of the worst tile",
}
_KIND: tuple[Literal["class", "dtype", "shape", "device"], ...] = ("class", "dtype", "shape", "device")
_BEYOND: dict[FailedBy, str] = {"tolerance": "beyond tolerance", "exact": "not the same"}
_TERMS = {"few": "as so few elements say little of eager", "rounding": "of rounding"}


def form_parts(diff: TensorDiff) -> dict[FailedBy, str]:
    """How it is another kind of value, with both values: {"dtype": "dtype float16, wanted float32"}."""
    by_note: tuple[Literal["type"] | SideEffect, ...] = ("type", "effect", "warnings")
    parts: dict[FailedBy, str] = {by: sentence(diff.note) for by in by_note if by in diff.failed_by}
    differing: dict[str, tuple[str, str]] = {
        form.kind: (form.test, form.reference) for form in diff.form if form.failed
    }
    if diff.test is not None and diff.reference is not None:
        one, other = diff.test, diff.reference
        differing["dtype"], differing["shape"] = (one.dtype, other.dtype), (str(one), str(other))
    for by, (found, wanted) in ((by, differing[by]) for by in _KIND if by in diff.failed_by and by in differing):
        parts[by] = f"{by} {found}, wanted {wanted}"
    return parts


def because(diff: TensorDiff) -> str:
    """One sentence: its dtype and shape, where those are others; the criterion that it failed by the most, or came
    nearest to failing by, with the sum that it allows; then what would have failed it and does not decide. "" where
    there is nothing to say.
    """
    worst = decider(diff)
    decisive = [_decisive(worst, diff)] if worst and worst.measured else []
    parts = [part for by, part in form_parts(diff).items() if by in ("dtype", "shape")]  # a note has the others
    return "; ".join((*parts, *_one_sided(diff), *decisive, *_others(diff)))


def decider(diff: TensorDiff) -> Criterion | None:
    """The criterion that the tensor failed by the most, or came nearest to failing by."""
    deciding = [each for each in diff.criteria if not each.why_not and each.exceeded != diff.passed]
    return max(deciding, key=lambda each: each.share, default=None)


def _one_sided(diff: TensorDiff) -> Iterator[str]:
    for by, what, counts in (("nan", "NaN", diff.nan), ("inf", "+Inf", diff.posinf), ("inf", "-Inf", diff.neginf)):
        if by in diff.failed_by and counts is not None and counts.disagree:
            yield f"{what} on one side only in {counted(counts.disagree, 'place')}"


def _others(diff: TensorDiff) -> Iterator[str]:
    """A sentence for each reason why a criterion that says otherwise than the verdict does not decide."""
    idle = [each for each in diff.criteria if each.why_not and each.exceeded == diff.passed]
    for why in dict.fromkeys(each.why_not for each in idle):
        idle_words = ", ".join(_short(each, diff) for each in idle if each.why_not == why and each.measured)
        if idle_words:
            yield f"{idle_words}, which does not decide: {sentence(why)}"


def _decisive(each: Criterion, diff: TensorDiff) -> str:
    if each.by in _BEYOND:
        return f"{_short(each, diff)}, {_elements(each.allowed)} allowed{_sum(each.terms)}"
    if not each.allowed:
        return f"{_short(each, diff)} where no error is allowed"
    above = f"is {figure(each.share)} × the" if each.exceeded else "is within the"
    return f"{_short(each, diff)} {above} {figure(each.allowed)} allowed{_sum(each.terms)}"


def _short(each: Criterion, diff: TensorDiff) -> str:
    if each.by not in _BEYOND:
        return f"{_OF.get(each.by, each.by)} {figure(each.measured)}"
    at = f" (atol {diff.atol:g}, rtol {diff.rtol or 0:g})" if each.by == "tolerance" and diff.atol is not None else ""
    return f"{_elements(each.measured)} of {counted(diff.elements, 'element')} {_BEYOND[each.by]}{at}"


def _elements(number: float) -> str:
    return f"{number:,.0f}" if number else "none"


def _sum(terms: tuple[Term, ...]) -> str:
    parts = [_term(term) for term in terms if term.amount]
    return f" = {' + '.join(parts)}" if parts else ""


def _term(term: Term) -> str:
    if term.factor:
        of = "eager's" if term.what == "eager" else "the values'"
        return f"{figure(term.factor)} × {of} {figure(term.amount / term.factor)}"
    return f"{figure(term.amount)} {_TERMS[term.what]}"
