"""How does a comparison read as a list: the verdict, each output and gradient, each kernel?"""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, log10
from typing import Literal

from idbg.format import file_names
from idbg.format.amounts import column_figure, counted, elapsed, figure
from idbg.format.glyphs import LEVELS, MARKS, VERDICT_SIGNS
from idbg.reports.because import decider
from idbg.schema.diff import DiffReport, KernelError, Outcome, TensorDiff, Worst, launch_name
from idbg.schema.programs import Failure, Verdict
from idbg_tui.panes.kernel_diff.columns import DiffColumns
from idbg_tui.widgets.cutting import cut_shape
from idbg_tui.widgets.lines import StyledRow, clip, cut, fit
from idbg_tui.widgets.search import pattern

OK, BAD, UNSEEN = "clean", "reject", "dim"
LOOKS: dict[Outcome, Verdict] = {
    "passed": "clean",
    "failed": "wrong",
    "error": "failed",
    "empty": "empty",
    "waiting": "waiting",
}
STYLES: dict[Outcome, str] = {"passed": OK, "failed": BAD, "error": BAD, "empty": "fallback", "waiting": "dim"}
_QUIET, _LOUD = 1e-8, 1.0  # relative errors that the growth bar shows as least and most
_RULES = 8  # cells, below which the rules that a tensor failed by are not begun
_LEVEL = 3  # cells of the growth bar and the blanks beside it

SortOrder = Literal["what failed first", "the worst first", "as they come"]
ORDERS: tuple[SortOrder, ...] = ("what failed first", "the worst first", "as they come")


@dataclass(frozen=True)
class Told:
    """A sentence: the verdict, a note, a heading. `failed` names the side whose failure it tells, "" the program's."""

    text: str
    style: str = ""
    wraps: bool = True
    failed: str | None = None

    def rows(self, width: int) -> list["Told"]:
        """The sentence on as many rows as it takes, the further ones a little further in."""
        inset = len(self.text) - len(self.text.lstrip()) + 2
        lines = textwrap.wrap(self.text, max(width - 1, 20), subsequent_indent=" " * inset) if self.wraps else []
        return [replace(self, text=line) for line in lines] if len(lines) > 1 else [self]


@dataclass(frozen=True)
class Heads:
    """The names of the columns over tensors, or over kernels (`nodes` where they are single nodes)."""

    kernels: bool
    nodes: bool = False


Item = Told | Heads | TensorDiff | KernelError


def items(
    report: DiffReport, *, order: SortOrder = "what failed first", failed_only: bool = False, query: str = ""
) -> list[Item]:
    """Everything that the report says, in the order that the user chose; of outputs and kernels, those with `query`."""
    told: list[Item] = [*_verdict(report)]
    sought = pattern(query)
    for what, tensors in (("output", report.outputs), ("gradient", report.gradients)):
        chosen = [one for one in tensors if not (failed_only and one.passed)]
        chosen = [one for one in chosen if sought is None or sought.search(_tensor_words(one))]
        if order != "as they come":
            chosen.sort(key=badness if order == "the worst first" else _failed, reverse=True)
        if tensors:
            text = f" {counted(len(tensors), what)}{_standing(report, tensors)}"
            told.append(Told(text + _with(query, len(chosen)), "strong"))
            told += [Heads(False), *chosen] if chosen else []
    if report.kernels:
        kernels = [one for one in report.kernels if not failed_only or one.bad]
        kernels = [one for one in kernels if sought is None or sought.search(_kernel_words(one))]
        if order == "the worst first":
            kernels.sort(key=lambda one: -1.0 if one.error is None else one.error, reverse=True)
        told.append(Told(f" {kernels_said(report)}{_with(query, len(kernels))}", "strong"))
        told += [Heads(True, is_bisected(report)), *kernels] if kernels else []
    return told


def _standing(report: DiffReport, tensors: Sequence[TensorDiff]) -> str:
    """ ", 2 failed, 1 waiting"; what nothing will come of is "not compared"."""
    failed, unjudged = sum(one.failed for one in tensors), sum(not one.judged for one in tensors)
    word = "not compared" if report.verdict == "error" else "waiting"
    return (f", {failed:,} failed" if failed else "") + (f", {unjudged:,} {word}" if unjudged else "")


def _with(query: str, count: int) -> str:
    return f"; {count:,} with {query}" if query else ""


def _tensor_words(diff: TensorDiff) -> str:
    return " ".join((diff.name, str(diff.reference or diff.test or ""), *diff.failed_by, diff.note))


def _kernel_words(one: KernelError) -> str:
    return " ".join((one.name, one.node, *one.nodes, _place(one), one.reason))


def _failed(diff: TensorDiff) -> bool:
    return diff.failed


def badness(diff: TensorDiff) -> float:
    """How bad: above 1 fails; NaN, infinities and what has no figures are the worst."""
    if diff.failed_by and (one_sided(diff) or diff.max_abs is None):
        return inf
    ratios = [block.ratio for block in diff.blocks if block.ratio is not None]
    figures = ratios if diff.baseline else [diff.max_scaled or 0.0]
    return max(figures, default=0.0) + (1e6 if diff.failed_by else 0.0)


def one_sided(diff: TensorDiff) -> bool:
    """Whether NaN or infinities are on one side only: then RMSE and means are over the other elements."""
    return not {"nan", "inf"}.isdisjoint(diff.failed_by)


def _verdict(report: DiffReport) -> Iterator[Told]:
    sign, style = VERDICT_SIGNS[LOOKS[report.verdict]], STYLES[report.verdict]
    against = {"float64": "against float64", "tolerance": "by tolerance"}[report.mode]
    said = {
        "passed": f"{report.test} agrees with {report.reference}, {against}",
        "failed": f"{report.test} does not agree with {report.reference}, {against}",
        "error": f"{report.test} and {report.reference} could not be compared",
        "empty": f"nothing was compiled: {report.test} is {report.reference} as it is",
        "waiting": f"{report.test} and {report.reference}: {_waiting(report)}",
    }[report.verdict]
    took = [f"{side.name} {elapsed(side.seconds)}" for side in report.sides if side.seconds is not None]
    yield Told(f" {sign} {said}   " + f" {MARKS['separator']} ".join(took), style, wraps=False)
    failed = [(side.name, f"{side.name} failed", side.failure) for side in report.sides if side.failure is not None]
    if report.failure is not None and not failed and report.verdict != "waiting":
        failed.append(("", "the program did not come to its end", report.failure))
    for name, what, failure in failed:
        said = f"{name} was cancelled" if name and failure.kind == "cancelled" else f"{what}: {failure_said(failure)}"
        yield Told(f"   {said}", BAD, wraps=False, failed=name)
    if report.float64_missing and report.verdict in ("passed", "failed"):
        yield Told(f"   no float64: {report.float64_missing}", "dim")
    for note in report.notes:
        yield Told(f"   {note}", "dim")
    for one in report.variance:
        if not one.deterministic:
            differ = f"{counted(one.differing, 'element')} of {one.name} differ between {one.runs} runs"
            yield Told(f"   {differ}, by up to {figure(one.max_abs)}", "fallback")
    if report.variance and all(one.deterministic for one in report.variance):
        yield Told(f"   {counted(report.variance[0].runs, 'run')} gave the same bits", "dim")


def _waiting(report: DiffReport) -> str:
    """What a comparison that has not come to its verdict waits for."""
    if report.failure is not None:
        return "not known: it was stopped before"
    ended = [side.name for side in report.sides]
    missing = [name for name in dict.fromkeys((report.reference, report.test, "float64")) if name not in ended]
    return f"waiting for {missing[0]}" if missing else "waiting"


def failure_said(failure: Failure) -> str:
    """The first line of a failure's message, and of a compiler's long one the first error."""
    first, *rest = [line.strip() for line in failure.message.splitlines() if line.strip()] or [failure.type]
    error = next((line.partition("error:")[2].strip() for line in rest if "error:" in line), "")
    return f"{first.rstrip(':')}: {error}" if error else first


def is_bisected(report: DiffReport) -> bool:
    """Whether the engine searched for the first bad node, as there was no kernel to observe."""
    return any(one.bisected for one in report.kernels)


def kernels_said(report: DiffReport) -> str:
    """How many kernels were observed, and which is the first bad one."""
    bad = report.culprit
    if is_bisected(report):
        return f"the first bad node (bisected): {bad.name if bad else 'none'}"
    seen, every = sum(one.observed for one in report.kernels), len(report.kernels)
    launches = counted(every, "kernel launch")
    if bad is not None:
        return f"{launches}, {seen:,} observed; the first bad one is {launch_name(bad, report.kernels)}"
    if not seen:
        return f"{launches}, none observed"
    if harmless := sum(one.harmless for one in report.kernels):
        return f"{launches}, {seen:,} observed; {harmless:,} worse than its inputs and not accused: the outputs agree"
    if seen == every:
        return f"{launches}, {seen:,} observed; none is worse than its inputs"
    return f"{launches}; none of the {seen:,} observed is worse than its inputs; {every - seen:,} were not observed"


def tensor_columns(told: Sequence[Item], width: int) -> DiffColumns:
    """Columns for the outputs and gradients in a list; in little room, figures that others tell give way."""
    tensors = [one for one in told if isinstance(one, TensorDiff)]
    most = (2,) if any(one.baseline for one in tensors) else (0,)
    return DiffColumns.of(
        [one.name for one in tensors],
        [str(one.test or one.reference or "") for one in tensors],
        [_spot(one) for one in [one for one in tensors if one.failed] or tensors],
        width,
        figures=(0, 1, 2) if width >= 96 else (0, 2) if width >= 76 else most,
    )


def kernel_columns(told: Sequence[Item], width: int) -> DiffColumns:
    """Columns for the kernels in a list."""
    kernels = [one for one in told if isinstance(one, KernelError)]
    ends = [" " * _LEVEL + _place(one) for one in kernels]
    return DiffColumns.of(
        [launch_name(one, kernels) for one in kernels], [_nodes(one) for one in kernels], ends, width, figures=(0, 1, 2)
    )


def heads(item: Heads, columns: DiffColumns) -> StyledRow:
    """The line over the columns."""
    if item.kernels:
        heads, words = ("node" if item.nodes else "kernel", "node", " line"), ("error", "inputs", "eager")
    else:
        heads, words = ("name", "shape", "worst at"), ("max |d|", "rmse", f"{MARKS['times']} eager")
    name, middle = fit(heads[0], columns.name), fit(heads[1], columns.middle)
    text = f"   {name} {middle}{columns.figured(words)}  {heads[2]}"
    return [(clip(text, columns.width), "dim")]


def tensor_row(diff: TensorDiff, columns: DiffColumns) -> StyledRow:
    """One output: how far it is off, how that compares with eager, where it is worst, and which criterion decided."""
    stands = outcome(diff)
    sign, style = VERDICT_SIGNS[LOOKS[stands]], STYLES[stands]
    meta = diff.test or diff.reference
    rmse = None if one_sided(diff) and not diff.rmse else diff.rmse
    figures = [column_figure(value) for value in (diff.max_abs, rmse, _against(diff))]
    start: StyledRow = [
        (f" {sign} ", style),
        (columns.named(diff.name) + " ", "strong" if diff.failed else ""),
        (fit(cut_shape(str(meta), columns.middle) if meta else "", columns.middle), "dim"),
        (columns.figured(figures), ""),
    ]
    room = columns.width - sum(len(text) for text, _ in start) - 2
    said = clip(_spot(diff), room)
    by = _decided(diff)
    if by and room - len(said) > _RULES:
        said += f"  {clip(by, room - len(said) - 2)}" if said else clip(by, room)
    return [*start, (f"  {said}", style if diff.failed else "")]


def outcome(diff: TensorDiff) -> Outcome:
    """What came of one tensor; `waiting` where it was not judged."""
    return "passed" if diff.passed else "failed" if diff.judged else "waiting"


def _decided(diff: TensorDiff) -> str:
    """By which criterion it failed, and how far; of one that passes, how near it came where it is not equal."""
    most = decider(diff) if diff.max_abs else None
    far = f" ({figure(most.share)} {MARKS['times']} allowed)" if most and most.measured and most.allowed > 0 else ""
    if diff.failed_by:
        first = most.by if most and most.by in diff.failed_by else diff.failed_by[0]
        others = [by for by in diff.failed_by if by != first]
        return ", ".join((f"by {first}{far if most and most.by == first else ''}", *others))
    return f"{most.by} {far.strip(' ()')}" if most and far else ""


def _against(diff: TensorDiff) -> float | None:
    """How many times as far from float64 as eager is."""
    base = diff.baseline
    if base is None or (base.rmse == 0 and diff.failed_by):
        return None
    if base.reference_rmse:
        return base.rmse / base.reference_rmse
    return inf if diff.failed_by else None


def _spot(diff: TensorDiff) -> str:
    """Where a tensor is worst, and by which values; else what is wrong with it, or that nothing is."""
    if diff.worst is not None and diff.max_abs != 0:
        return spot(diff.worst)
    if diff.test and diff.reference and diff.test != diff.reference and diff.failed_by:
        return f"{diff.test}, wanted {diff.reference}"
    return diff.note or ("equal" if diff.max_abs == 0 else "" if diff.elements else "no elements")


def spot(worst: Worst) -> str:
    """The place of an element and what it is, with as many digits as tell the two values apart."""
    place = f"[{', '.join(map(str, worst.index))}]: " if worst.index else ""
    values = ((spelled(worst.test, digits), spelled(worst.reference, digits)) for digits in (6, 9, 17))
    test, reference = next((pair for pair in values if pair[0] != pair[1]), (str(worst.test), str(worst.reference)))
    return f"{place}{test}, wanted {reference}"


def spelled(value: bool | int | float | str, digits: int = 6) -> str:
    """An element's value, a float to so many significant digits."""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def kernel_row(one: KernelError, columns: DiffColumns, culprit: bool) -> StyledRow:
    """One launch: its error, that of what it read, and how the error has grown up to here."""
    style = BAD if one.bad else "" if one.observed else UNSEEN
    sign = VERDICT_SIGNS["failed"] if culprit else MARKS["arrow"][0] if one.bad else " "
    start = [
        (f" {sign} ", BAD if one.bad else ""),
        (columns.named(one.handle if one.handle in columns.names else one.name) + " ", "strong" if culprit else style),
        (fit(cut(_nodes(one), columns.middle), columns.middle), "dim"),
    ]
    if one.observed:
        figures = [column_figure(value) for value in (one.error, one.input_error, one.eager_error)]
        start += [(columns.figured(figures), style), (f" {level(one.error)} ", style)]
        said = "  ".join(filter(None, (_place(one), one.reason)))
    else:
        said = f"  not observed: {one.reason}"
    room = columns.width - sum(len(text) for text, _ in start)
    return [*start, (clip(said, room), "" if culprit else "dim")]


def _nodes(one: KernelError) -> str:
    return "" if one.node == one.name else one.node or ", ".join(one.nodes)


def _place(one: KernelError) -> str:
    return file_names.place(one.file, one.line) if one.file else ""


def level(error: float | None) -> str:
    """The error as one cell, by its decade."""
    if error is None:
        return " "
    if error <= _QUIET:
        return LEVELS[0]
    share = (log10(min(error, _LOUD)) - log10(_QUIET)) / (log10(_LOUD) - log10(_QUIET))
    return LEVELS[round(share * (len(LEVELS) - 1))]
