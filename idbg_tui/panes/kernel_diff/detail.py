"""What is known of one output's error (every metric, where it lies, how large it is how often), or of a failed side?"""

import textwrap
from collections.abc import Iterator

from idbg.format.glyphs import MARKS
from idbg.schema.diff import TensorDiff
from idbg.schema.programs import Failure
from idbg.views.criteria import because
from idbg.views.faults import crash_lines
from idbg.views.tensors import block_words, decades, metrics, outcome
from idbg_tui.panes.kernel_diff.outcomes import BAD, STYLES
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
    for label, text in metrics(diff):
        lines += labelled(label, text, width)
    blocks = [block for block in diff.blocks if block.rmse]
    lines += sentences("", width) if blocks else []
    for block in blocks:
        lines += labelled(f"worst {block.kind}", block_words(block), width, BAD if (block.ratio or 0) > 1 else "")
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


def _histogram(counts: tuple[int, ...], width: int) -> Iterator[Entry]:
    """A bar for each decade, from the first to the last that has elements."""
    most, longest = max(counts), max(1, min(_BAR, width - _LABEL - _COUNT - 2))
    for name, count in decades(counts):
        bar = MARKS["rule"][0] * (max(1, round(longest * count / most)) if count else 0)
        row: StyledRow = [(f" {name:<{_LABEL}}", "dim"), (f"{count:>{_COUNT - 1},} ", ""), (bar, "accent")]
        yield Entry.fixed(row)
