"""How does a comparison read as a list: the verdict, each output and gradient, each kernel?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, log10

from idbg.diff import LARGEST, DiffReport, KernelError, TensorDiff
from idbg_tui.amounts import counted
from idbg_tui.panes.graph_columns import cut_shape
from idbg_tui.signs import LEVELS, MARKS, VERDICT_SIGNS
from idbg_tui.widgets.lines import Row, clip, cut, fit

OK, BAD, UNSEEN = "clean", "reject", "dim"
_FIGURE = 9  # cells of one figure
_QUIET, _LOUD = 1e-8, 1.0  # relative errors that the growth bar shows as least and most
ORDERS = ("as they come", "worst first")


@dataclass(frozen=True)
class Told:
    """A sentence: the verdict, a note, a heading."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Heads:
    """The names of the columns over tensors or kernels."""

    kernels: bool


Item = Told | Heads | TensorDiff | KernelError


def items(report: DiffReport, *, worst_first: bool = False, failed_only: bool = False) -> list[Item]:
    """Everything that the report says, in the order that the user chose."""
    found: list[Item] = [*_verdict(report)]
    for what, tensors in (("output", report.outputs), ("gradient", report.gradients)):
        chosen = [one for one in tensors if not (failed_only and one.passed)]
        if worst_first:
            chosen.sort(key=badness, reverse=True)
        if tensors:
            failed = sum(not one.passed for one in tensors)
            found.append(Told(f"{counted(len(tensors), what)}{f', {failed:,} failed' if failed else ''}", "strong"))
            found += [Heads(False), *chosen] if chosen else []
    if report.kernels:
        kernels = [one for one in report.kernels if not failed_only or one.bad]
        if worst_first:
            kernels.sort(key=lambda one: -1.0 if one.error is None else one.error, reverse=True)
        found.append(Told(_kernels_said(report), "strong"))
        found += [Heads(True), *kernels] if kernels else []
    return found


def badness(diff: TensorDiff) -> float:
    """How bad: above 1 fails; what has no figures and failed is the worst."""
    if diff.failed_by and not diff.blocks and diff.max_scaled is None:
        return inf
    ratios = [block.ratio for block in diff.blocks if block.ratio is not None]
    figures = ratios if diff.baseline else [diff.max_scaled or 0.0]
    return max(figures, default=0.0) + (1e6 if diff.failed_by else 0.0)


def _verdict(report: DiffReport) -> Iterator[Told]:
    sign, style = {"passed": (VERDICT_SIGNS["clean"], OK), "failed": (VERDICT_SIGNS["failed"], BAD)}.get(
        report.verdict, (VERDICT_SIGNS["violations"], "fallback")
    )
    against = {"float64": "against float64", "tolerance": "by tolerance"}[report.mode]
    said = {
        "passed": f"{report.test} agrees with {report.reference}, {against}",
        "failed": f"{report.test} does not agree with {report.reference}, {against}",
        "error": f"{report.test} and {report.reference} could not be compared",
    }[report.verdict]
    took = [f"{side.name} {side.seconds:.1f} s" for side in report.sides if side.seconds is not None]
    yield Told(f" {sign} {said}   " + f" {MARKS['separator']} ".join(took), style)
    for side in report.sides:
        if side.failure is not None:
            yield Told(f"   {side.name} failed: {side.failure.message.strip().splitlines()[0]}", BAD)
    if report.float64 and report.verdict != "error":
        yield Told(f"   no float64: {report.float64}", "dim")
    for note in report.notes:
        yield Told(f"   {note}", "dim")
    for one in report.variance:
        if not one.deterministic:
            differ = f"{counted(one.differing, 'element')} of {one.name} differ between {one.runs} runs"
            yield Told(f"   {differ}, by up to {figure(one.max_abs)}", "fallback")
    if report.variance and all(one.deterministic for one in report.variance):
        yield Told(f"   {counted(report.variance[0].runs, 'run')} gave the same bits", "dim")


def _kernels_said(report: DiffReport) -> str:
    seen = sum(one.observed for one in report.kernels)
    start = f"{counted(len(report.kernels), 'kernel launch')[:-1]}es" if len(report.kernels) != 1 else "1 kernel launch"
    text = f"{start}, {seen:,} observed"
    if report.first_bad_kernel is not None:
        return f"{text}; the first bad one is {report.kernels[report.first_bad_kernel].name}"
    return f"{text}; none is worse than its inputs" if seen else text


def figure(value: float | None) -> str:
    """A measured figure in at most 9 cells: "0", "3.1e-07", "inf"; MARKS' gap where it was not measured."""
    if value is None:
        return "-"
    if value >= LARGEST:
        return "inf"
    if value == 0 or value != value:
        return f"{value:g}"
    return f"{value:.3g}" if 1e-3 <= abs(value) < 1e5 else f"{value:.1e}"


def heads(kernels: bool, width: int, names: int) -> Row:
    """The line over the columns."""
    words = ("error", "inputs", "eager") if kernels else ("max |d|", "rmse", f"{MARKS['times']} eager")
    figures = "".join(f"{word:>{_FIGURE + 1}}" for word in words)
    middle = ("node", "line") if kernels else ("shape", "worst at")
    shape = shape_width(width, names)
    text = f"   {fit('kernel' if kernels else 'name', names)} {fit(middle[0], shape)}{figures}  {middle[1]}"
    return [(clip(text, width), "dim")]


def shape_width(width: int, names: int) -> int:
    """What is left for the shape: figures and the end come first."""
    return max(0, min(24, width - names - 3 * (_FIGURE + 1) - 26))


def tensor_row(diff: TensorDiff, width: int, names: int) -> Row:
    """One output: how far it is off, how that compares with eager, and where it is worst."""
    sign, style = (VERDICT_SIGNS["clean"], OK) if diff.passed else (VERDICT_SIGNS["failed"], BAD)
    meta = diff.test or diff.reference
    shape = shape_width(width, names)
    base = diff.baseline
    against = base.rmse / base.eager_rmse if base and base.eager_rmse else None
    figures = [diff.max_abs, diff.rmse, against] if diff.max_abs is not None else [None, None, None]
    start: Row = [
        (f" {sign} ", style),
        (fit(diff.name, names) + " ", "" if diff.passed else "strong"),
        (fit(cut_shape(str(meta), shape) if meta else "", shape), "dim"),
        ("".join(f"{figure(value):>{_FIGURE + 1}}" for value in figures), ""),
    ]
    room = width - sum(len(text) for text, _ in start) - 2
    return [*start, ("  " + clip(_where(diff), room), "" if diff.passed else style)]


def _where(diff: TensorDiff) -> str:
    if diff.failed_by:
        return f"{', '.join(diff.failed_by)}{_at(diff)}"
    return diff.note or ("equal" if diff.max_abs == 0 else _at(diff).removeprefix(" at "))


def _at(diff: TensorDiff) -> str:
    if diff.worst is None:
        return f": {diff.note}" if diff.note else ""
    index = ", ".join(map(str, diff.worst.index))
    return f" at [{index}]: {spelled(diff.worst.test)} for {spelled(diff.worst.reference)}"


def spelled(value: bool | int | float | str) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def kernel_row(one: KernelError, width: int, names: int, culprit: bool) -> Row:
    """One launch: its error, that of what it read, and how the error has grown up to here."""
    shape = shape_width(width, names)
    style = BAD if one.bad else "" if one.observed else UNSEEN
    sign = VERDICT_SIGNS["failed"] if culprit else MARKS["arrow"][0] if one.bad else " "
    figures = "".join(f"{figure(value):>{_FIGURE + 1}}" for value in (one.error, one.input_error, one.eager_error))
    start: Row = [
        (f" {sign} ", BAD if one.bad else ""),
        (fit(one.name, names) + " ", "strong" if culprit else style),
        (fit(cut(one.node or ", ".join(one.nodes), shape), shape), "dim"),
        (figures if one.observed else " " * len(figures), style),
        (f" {level(one.error)} ", style),
    ]
    room = width - sum(len(text) for text, _ in start)
    place = f"{one.file.rpartition('/')[2]}:{one.line}" if one.file else ""
    return [*start, (clip(place if one.observed else f"not observed: {one.reason}", room), "" if culprit else "dim")]


def level(error: float | None) -> str:
    """The error as one cell, by its decade."""
    if error is None:
        return " "
    if error <= _QUIET:
        return LEVELS[0]
    share = (log10(min(error, _LOUD)) - log10(_QUIET)) / (log10(_LOUD) - log10(_QUIET))
    return LEVELS[round(share * (len(LEVELS) - 1))]


def names_width(found: Sequence[Item], width: int) -> int:
    """As wide as the names want, as far as there is room."""
    longest = max((len(one.name) for one in found if isinstance(one, TensorDiff | KernelError)), default=8)
    return max(8, min(longest, 44, width - 3 * (_FIGURE + 1) - 24))
