"""What is known of one output's error: every metric, where it lies, how large it is how often?"""

from collections.abc import Iterator

from idbg.diff import DECADES, Block, Counts, TensorDiff
from idbg_tui.amounts import counted
from idbg_tui.diff_list import BAD, figure, spelled
from idbg_tui.listing import Entry, sentences
from idbg_tui.signs import MARKS
from idbg_tui.widgets.lines import Row

_LABEL = 22  # cells
_BAR = 50  # cells of the longest bar


def entries(diff: TensorDiff, width: int) -> list[Entry]:
    """Verdict, metrics, worst blocks, histogram."""
    found = [*sentences(_verdict(diff), width, "clean" if diff.passed else BAD)]
    found += sentences(diff.note, width, "dim") if diff.note else []
    for label, text in _metrics(diff):
        found.append(_line(label, text))
    if diff.blocks:
        found.append(_line("", ""))
        found += [
            _line(f"worst {block.kind}", _block(block), BAD if (block.ratio or 0) > 1 else "") for block in diff.blocks
        ]
    if any(diff.histogram):
        found.append(_line("", ""))
        found.append(_line("|test - reference|", "elements", "strong"))
        found += _histogram(diff.histogram)
    return found


def _line(label: str, text: str, style: str = "") -> Entry:
    row: Row = [(f" {label:<{_LABEL}}", "dim"), (text, style)]
    return Entry(lambda _: row)


def _verdict(diff: TensorDiff) -> str:
    kind = " ".join(str(meta) for meta in (diff.reference,) if meta) or "no tensor"
    if diff.passed:
        return f"{diff.name} {kind} passes"
    return f"{diff.name} {kind} fails by: {', '.join(diff.failed_by)}"


def _metrics(diff: TensorDiff) -> Iterator[tuple[str, str]]:
    if diff.test and diff.reference and diff.test != diff.reference:
        yield "test, reference", f"{diff.test}, {diff.reference}"
    yield "elements", f"{diff.elements:,}"
    if diff.max_abs is None:
        return
    yield "|d| max, mean", f"{figure(diff.max_abs)}, {figure(diff.mean_abs)}"
    yield "|d| / |ref| max, mean", f"{figure(diff.max_rel)}, {figure(diff.mean_rel)}"
    yield "RMSE", figure(diff.rmse)
    if diff.cosine is not None:
        yield "1 - cosine", f"{1 - diff.cosine:.3g}"
    if diff.max_ulp is not None:
        yield "max ulp", f"{diff.max_ulp:,}"
    if diff.worst is not None:
        index = ", ".join(map(str, diff.worst.index))
        yield "worst at", f"[{index}]: {spelled(diff.worst.test)} for {spelled(diff.worst.reference)}"
    if diff.mismatches is not None and diff.atol is not None:
        share = f"{diff.mismatches:,} ({diff.mismatch_percent or 0:.3g} %)"
        yield (
            "beyond tolerance",
            f"{share} at atol {diff.atol:g}, rtol {diff.rtol or 0:g}; the worst {figure(diff.max_scaled)}x",
        )
    if diff.baseline is not None:
        base = diff.baseline
        yield "RMSE to float64", f"{figure(base.rmse)}, eager's {figure(base.eager_rmse)}"
        yield "|d| max to float64", f"{figure(base.max_abs)}, eager's {figure(base.eager_max_abs)}"
    for name, counts in (("NaN", diff.nan), ("+Inf", diff.posinf), ("-Inf", diff.neginf)):
        if counts is not None and (counts.test or counts.reference):
            yield name, _counts(counts)


def _counts(counts: Counts) -> str:
    agree = f"{counts.disagree:,} on one side only" if counts.disagree else "at the same places"
    return f"test {counts.test:,}, reference {counts.reference:,}: {agree}"


def _block(block: Block) -> str:
    ends = [f"{name} {first}" + (f" to {last - 1}" if last - first > 1 else "")
            for name, (first, last) in (("row", block.rows), ("column", block.columns))]  # fmt: skip
    where = {"row": ends[:1], "column": ends[1:], "tile": ends}[block.kind]
    allowed = "" if block.ratio is None else f", {figure(block.ratio)} of what is allowed"
    return f"{', '.join(where)}: RMSE {figure(block.rmse)}{allowed}"


def _histogram(counts: tuple[int, ...]) -> Iterator[Entry]:
    """A bar for each decade, from the first to the last that has elements."""
    used = [index for index, count in enumerate(counts) if count]
    most = max(counts)
    shown = dict.fromkeys([0] if counts[0] else []) | dict.fromkeys(range(max(1, min(used)), max(used) + 1))
    if len(used) > 1 and used[0] == 0:
        shown = dict.fromkeys([0, *range(used[1], used[-1] + 1)])
    for index in shown:
        count = counts[index]
        bar = MARKS["rule"][0] * (max(1, round(_BAR * count / most)) if count else 0)
        row: Row = [(f" {_decade(index):<{_LABEL}}", "dim"), (f"{count:>13,} ", ""), (bar, "accent")]
        yield Entry(lambda _, row=row: row)  # type: ignore[misc]


def _decade(index: int) -> str:
    if index == 0:
        return "equal"
    if index == 1:
        return f"below 1e{DECADES[0]}"
    low = DECADES[index - 2]
    return f"from 1e{low:+03d}" if index == len(DECADES) + 1 else f"1e{low:+03d} to 1e{low + 1:+03d}"


def elements(diff: TensorDiff) -> str:
    return counted(diff.elements, "element")
