"""What is known of one output's error (every metric, where it lies, how large it is how often), or of a failed side?"""

import textwrap
from collections.abc import Iterator

from idbg.format.amounts import figure
from idbg.format.glyphs import MARKS
from idbg.reports.because import because
from idbg.reports.faults import crash_lines
from idbg.schema.diff import DECADES, LARGEST, Block, Counts, TensorDiff
from idbg.schema.programs import Failure
from idbg_tui.panes.kernel_diff.outcomes import BAD, STYLES
from idbg_tui.panes.kernel_diff.outputs import one_sided, outcome, spot
from idbg_tui.panes.kernel_diff.rows import failure_said
from idbg_tui.widgets.lines import StyledRow
from idbg_tui.widgets.listing import Entry, sentences

_LABEL = 22  # cells
_BAR = 50  # cells of the longest bar
_COUNT = 14  # cells of the count before a bar


def entries(diff: TensorDiff, width: int) -> list[Entry]:
    """Verdict, metrics, worst blocks, histogram."""
    lines = [*sentences(_verdict(diff), width, STYLES[outcome(diff)])]
    lines += sentences(because(diff), width)
    lines += sentences(diff.note, width, "dim") if diff.note else []
    for label, text in _metrics(diff):
        lines += labelled(label, text, width)
    blocks = [block for block in diff.blocks if block.rmse]
    lines += sentences("", width) if blocks else []
    for block in blocks:
        lines += labelled(f"worst {block.kind}", _block(block), width, BAD if (block.ratio or 0) > 1 else "")
    if any(diff.histogram):
        lines += sentences("", width)
        lines += labelled("|test - reference|", "elements", width, "strong")
        lines += _histogram(diff.histogram, width)
    return lines


def failure_entries(failure: Failure, width: int) -> list[Entry]:
    """All that is known of why a side failed, the first error first."""
    lines = list(sentences(failure_said(failure), width, BAD))
    for told in crash_lines(failure.crash) if failure.crash else ():
        lines += _verbatim(told, width)
    lines += sentences(failure.hint, width) if failure.hint else []
    for label, text in (("at", f"{failure.file}:{failure.line}" if failure.file else ""), ("repro", failure.repro)):
        lines += labelled(label, text, width) if text else []
    for title, text in (("The whole message", failure.message), ("Traceback", failure.traceback)):
        if text.strip() and text.strip() != failure_said(failure):
            lines += [*sentences("", width), *sentences(title, width, "strong")]
            lines += [entry for line in text.strip("\n").split("\n") for entry in _verbatim(line, width)]
    return lines


def _verbatim(line: str, width: int) -> Iterator[Entry]:
    """A line of a program's or compiler's text: its blanks stay, and what is too long goes on below."""
    long = max(width - 2, 20)
    parts = textwrap.wrap(line, long, replace_whitespace=False, drop_whitespace=False, break_on_hyphens=False)
    for part in parts or [""]:
        row: StyledRow = [(f" {part}", BAD if "error:" in part else "")]
        yield Entry.fixed(row)


def labelled(label: str, text: str, width: int, style: str = "") -> Iterator[Entry]:
    """A label and its text, on as many rows as that takes: figures are not cut."""
    for part in textwrap.wrap(text, max(width - _LABEL - 2, 20)):
        row: StyledRow = [(f" {label:<{_LABEL}}", "dim"), (part, style)]
        yield Entry.fixed(row)
        label = ""


def _verdict(diff: TensorDiff) -> str:
    kind = " ".join(str(meta) for meta in (diff.reference,) if meta) or "no tensor"
    if not diff.judged:
        return f"{diff.name} {kind}: no verdict (yet)"
    if diff.passed:
        return f"{diff.name} {kind} passes"
    return f"{diff.name} {kind} fails by: {', '.join(diff.failed_by)}"


def _metrics(diff: TensorDiff) -> Iterator[tuple[str, str]]:
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
        yield "|d| / |ref| mean", figure(diff.mean_rel)
    else:
        yield "|d| max, mean", f"{figure(diff.max_abs)}, {figure(diff.mean_abs)}"
        yield "|d| / |ref| max, mean", f"{figure(diff.max_rel)}, {figure(diff.mean_rel)}"
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


def _block(block: Block) -> str:
    ends = [f"{name} {first}" + (f" to {last - 1}" if last - first > 1 else "")
            for name, (first, last) in (("row", block.rows), ("column", block.columns))]  # fmt: skip
    where = {"row": ends[:1], "column": ends[1:], "tile": ends}[block.kind]
    allowed = "" if block.ratio is None else f", {figure(block.ratio)} {MARKS['times']} what is allowed"
    return f"{', '.join(where)}: RMSE {figure(block.rmse)}{allowed}"


def _histogram(counts: tuple[int, ...], width: int) -> Iterator[Entry]:
    """A bar for each decade, from the first to the last that has elements."""
    used = [index for index, count in enumerate(counts) if count]
    most, longest = max(counts), max(1, min(_BAR, width - _LABEL - _COUNT - 2))
    shown = dict.fromkeys([0] if counts[0] else []) | dict.fromkeys(range(max(1, min(used)), max(used) + 1))
    if len(used) > 1 and used[0] == 0:
        shown = dict.fromkeys([0, *range(used[1], used[-1] + 1)])
    for index in shown:
        count = counts[index]
        bar = MARKS["rule"][0] * (max(1, round(longest * count / most)) if count else 0)
        row: StyledRow = [(f" {_decade(index):<{_LABEL}}", "dim"), (f"{count:>{_COUNT - 1},} ", ""), (bar, "accent")]
        yield Entry.fixed(row)


def _decade(index: int) -> str:
    if index == 0:
        return "equal"
    if index == 1:
        return f"below 1e{DECADES[0]}"
    low = DECADES[index - 2]
    return f"from 1e{low:+03d}" if index == len(DECADES) + 1 else f"1e{low:+03d} to 1e{low + 1:+03d}"
