"""Describe the error of one tensor: every figure that was measured, with its label."""

from collections.abc import Iterator, Sequence
from math import inf

from idbg.format.amounts import figure
from idbg.format.glyphs import MARKS
from idbg.schema.diff import DECADES, LARGEST, Block, Counts, Outcome, TensorDiff, Value, Worst
from idbg.schema.programs import Verdict
from idbg.views import remarks
from idbg.views.criteria import decider, form_parts

LOOKS: dict[Outcome, Verdict] = {
    "passed": "clean",
    "failed": "wrong",
    "error": "failed",
    "empty": "empty",
    "waiting": "waiting",
}
"""Whose sign and colour an outcome has."""


def outcome(diff: TensorDiff) -> Outcome:
    """What came of one tensor; `waiting` where it was not judged."""
    return "passed" if diff.passed else "failed" if diff.judged else "waiting"


def one_sided(diff: TensorDiff) -> bool:
    """Whether NaN or infinities are on one side only: then RMSE and means are over the other elements."""
    return not {"nan", "inf"}.isdisjoint(diff.failed_by)


def against(diff: TensorDiff) -> float | None:
    """How many times as far from float64 as eager is."""
    base = diff.baseline
    if base is None or (base.rmse == 0 and diff.failed_by):
        return None
    if base.reference_rmse:
        return base.rmse / base.reference_rmse
    return inf if diff.failed_by else None


def decided(diff: TensorDiff) -> str:
    """By which criterion it failed, and how far, what kind of value it is first; of one that passes, how near it came
    where it is not equal.
    """
    most = decider(diff) if diff.max_abs else None
    far = f" ({figure(most.share)} {MARKS['times']} allowed)" if most and most.measured and most.allowed > 0 else ""
    if diff.failed_by:
        kinds = form_parts(diff)
        numbers = [by for by in diff.failed_by if by not in kinds]
        first = most.by if most and most.by in numbers else next(iter(numbers), "")
        others = [by for by in numbers if by != first]
        by_numbers = [", ".join((f"by {first}{far if most and most.by == first else ''}", *others))] if first else []
        return "; ".join((*kinds.values(), *by_numbers))
    return f"{most.by} {far.strip(' ()')}" if most and far else ""


def worst_words(diff: TensorDiff) -> str:
    """Where a tensor is worst, and by which values; else what is wrong with it, or that nothing is."""
    return ": ".join(filter(None, worst_parts(diff)))


def worst_parts(diff: TensorDiff) -> tuple[str, str]:
    """Where a tensor is worst, and by which values; else what is wrong with it, or that nothing is, and ""."""
    if diff.worst is not None and diff.max_abs != 0:
        return spot_parts(diff.worst)
    if diff.test and diff.reference and diff.test != diff.reference and diff.failed_by:
        return f"{diff.test}, wanted {diff.reference}", ""
    if diff.is_side_effect:  # its note is what decided
        return "", ""
    known = "equal" if diff.max_abs == 0 else "" if diff.elements else "no elements"
    return remarks.tensor_note(diff) or known, ""


def spot(worst: Worst) -> str:
    """The place of an element and what it is."""
    return ": ".join(filter(None, spot_parts(worst)))


def spot_parts(worst: Worst) -> tuple[str, str]:
    """The place of an element, and what it is, with as many digits as tell the two values apart."""
    place = f"[{', '.join(map(str, worst.index))}]" if worst.index else ""
    pairs = ((spelled(worst.test, digits), spelled(worst.reference, digits)) for digits in (6, 9, 17))
    test, reference = next((pair for pair in pairs if pair[0] != pair[1]), (str(worst.test), str(worst.reference)))
    return place, f"{test}, wanted {reference}"


def spelled(value: Value, digits: int = 6) -> str:
    """An element's value, a float to so many significant digits."""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def metrics(diff: TensorDiff) -> Iterator[tuple[str, str]]:
    """Each figure by its label, the most telling first; only those that were taken."""
    if diff.test and diff.reference and diff.test != diff.reference:
        yield "test, reference", f"{diff.test}, {diff.reference}"
    yield "elements", f"{diff.elements:,}"
    if diff.max_abs is None:
        return
    if diff.worst is not None:
        yield "worst", spot(diff.worst)
    if one_sided(diff):
        yield "|d| max", "inf: NaN or infinity on one side"
    if diff.rmse or not one_sided(diff):
        yield from _distances(diff)
    if diff.mismatches is not None and diff.atol is not None:
        worst = diff.max_scaled
        beyond = f"; the worst is {figure(worst)} {MARKS['times']} that" if worst and worst < LARGEST else ""
        share = f"{diff.mismatches:,} ({diff.mismatch_percent or 0:.3g} %)"
        yield "beyond tolerance", f"{share} at atol {diff.atol:g}, rtol {diff.rtol or 0:g}{beyond}"
    for name, counts in (("NaN", diff.nan), ("+Inf", diff.posinf), ("-Inf", diff.neginf)):
        if counts is not None and (counts.test or counts.reference):
            yield name, _counts(counts)


def _distances(diff: TensorDiff) -> Iterator[tuple[str, str]]:
    """Over the elements that are finite on both sides."""
    if one_sided(diff):
        yield "|d| mean", f"{figure(diff.mean_abs)} where both are finite; so are the figures down to float64"
        relative = ("|d| / |ref| mean", figure(diff.mean_rel))
    else:
        yield "|d| max, mean", f"{figure(diff.max_abs)}, {figure(diff.mean_abs)}"
        relative = ("|d| / |ref| max, mean", f"{figure(diff.max_rel)}, {figure(diff.mean_rel)}")
    if diff.mean_rel is not None:
        yield relative
    yield "RMSE", figure(diff.rmse)
    if diff.cosine is not None:
        yield "1 - cosine", f"{1 - diff.cosine:.3g}"
    if diff.max_ulp is not None:
        yield "max ulp", f"{diff.max_ulp:,}"
    if diff.baseline is not None:
        base = diff.baseline
        yield "RMSE to float64", f"{figure(base.rmse)}, eager's {figure(base.reference_rmse)}"
        yield "|d| max to float64", f"{figure(base.max_abs)}, eager's {figure(base.reference_max_abs)}"


def _counts(counts: Counts) -> str:
    agree = f"{counts.disagree:,} on one side only" if counts.disagree else "at the same places"
    return f"test {counts.test:,}, reference {counts.reference:,}: {agree}"


def block_words(block: Block) -> str:
    """Where the worst block of its kind is, and how bad."""
    ends = [f"{name} {first}" + (f" to {last - 1}" if last - first > 1 else "")
            for name, (first, last) in (("row", block.rows), ("column", block.columns))]  # fmt: skip
    where = {"row": ends[:1], "column": ends[1:], "tile": ends}[block.kind]
    allowed = "" if block.ratio is None else f", {figure(block.ratio)} {MARKS['times']} what is allowed"
    return f"{', '.join(where)}: RMSE {figure(block.rmse)}{allowed}"


def decades(counts: Sequence[int]) -> list[tuple[str, int]]:
    """How many elements have an error of each decade, from the first to the last that has any; nothing of no counts."""
    used = [index for index, count in enumerate(counts) if count]
    if not used:
        return []
    errors = [index for index in used if index]
    shown = [0] if counts[0] else []
    shown += range(errors[0], errors[-1] + 1) if errors else []
    return [(_decade(index), counts[index]) for index in shown]


def _decade(index: int) -> str:
    if index == 0:
        return "equal"
    if index == 1:
        return f"below 1e{DECADES[0]}"
    low = DECADES[index - 2]
    return f"from 1e{low:+03d}" if index == len(DECADES) + 1 else f"1e{low:+03d} to 1e{low + 1:+03d}"
