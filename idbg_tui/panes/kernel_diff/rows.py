"""How does a comparison read as a list: the verdict, each stage, output and gradient, each kernel?"""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Literal

from idbg.format.amounts import counted, elapsed, figure
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.schema.attribution import KernelAttribution
from idbg.schema.diff import DiffReport, KernelError, TensorDiff
from idbg.schema.faults import NanOrigin
from idbg.schema.programs import Failure
from idbg.views import float64_device
from idbg.views import steps as told_steps
from idbg.views.attribution import LOOKS as OWNER_LOOKS
from idbg.views.attribution import script_sentence
from idbg.views.blame import blame_sentence, unknown_stages, where_to_ask
from idbg.views.faults import nan_origin_sentences
from idbg.views.launches import is_bisected, kernels_sentence
from idbg.views.tensors import LOOKS
from idbg_tui.panes.kernel_diff import launches, outputs
from idbg_tui.panes.kernel_diff.outcomes import BAD, OWNER_STYLES, STYLES
from idbg_tui.panes.kernel_diff.stages import StageRow, badness, place, stage_rows
from idbg_tui.widgets.search import pattern

SortOrder = Literal["what failed first", "the worst first", "the worst alone first", "as they come"]
ORDERS: tuple[SortOrder, ...] = ("what failed first", "the worst first", "the worst alone first", "as they come")
_WORST: frozenset[SortOrder] = frozenset({"the worst first", "the worst alone first"})  # "alone": kernels by their own


@dataclass(frozen=True)
class Told:
    """A sentence: the verdict, a note, a heading. `failed` names the side whose failure it tells, "" the program's. One
    that `blames` leads to the guilty row, one of a `birth` to where a NaN or an infinity is born.
    """

    text: str
    style: str = ""
    wraps: bool = True
    failed: str | None = None
    blames: bool = False
    birth: NanOrigin | None = None

    def rows(self, width: int) -> list["Told"]:
        """The sentence on as many rows as it takes, the further ones a little further in."""
        inset = len(self.text) - len(self.text.lstrip()) + 2
        lines = textwrap.wrap(self.text, max(width - 1, 20), subsequent_indent=" " * inset) if self.wraps else []
        return [replace(self, text=line) for line in lines] if len(lines) > 1 else [self]


@dataclass(frozen=True)
class Heads:
    """The names of the columns over stages, over outputs, over kernels, or over single nodes."""

    of: Literal["stages", "outputs", "kernels", "nodes"]


Item = Told | Heads | StageRow | TensorDiff | KernelError


@dataclass(frozen=True)
class Shown:
    """What the user wants to see of a comparison, and in which order."""

    order: SortOrder = "what failed first"
    failed_only: bool = False
    query: str = ""

    def has(self, words: str) -> bool:
        """Whether the text that is looked for is in these."""
        sought = pattern(self.query)
        return sought is None or sought.search(words) is not None

    def counted(self, count: int) -> str:
        """How many have the text, where one is looked for."""
        return f"; {count:,} with {self.query}" if self.query else ""


def items(report: DiffReport, shown: Shown = Shown(), to_ask: str = "") -> list[Item]:
    """Everything that the report says, in the order that the user chose; of stages, outputs and kernels, those wanted.

    `to_ask` is the key that finds out where a comparison went wrong that did not ask.
    """
    return [
        *_verdict(report, to_ask),
        *_stages(report, shown),
        *_tensors(report, "output", report.outputs, shown),
        *_tensors(report, "gradient", report.gradients, shown),
        *_kernels(report, shown),
        *_trained(report),
    ]


def _trained(report: DiffReport) -> Iterator[Told]:
    """What came of N steps of training, where they were asked for."""
    if report.steps is None:
        return
    look = told_steps.LOOKS[report.steps.verdict]
    yield Told(f" {counted(report.steps.taken, 'step')} of training", "strong")
    style = BAD if look == "wrong" else "" if look == "clean" else "fallback"
    yield Told(f"   {VERDICT_SIGNS[look]} {told_steps.sentence(report.steps, report.test)}", style)


def _stages(report: DiffReport, shown: Shown) -> Iterator[Item]:
    every = stage_rows(report)
    if not every:
        return
    chosen = [row for row in every if (row.wrong or not shown.failed_only) and shown.has(row.words)]
    if shown.order in _WORST:
        chosen.sort(key=badness, reverse=True)
    wrong, unjudged = sum(row.wrong for row in every), len(unknown_stages(report))
    said = (f", {wrong:,} wrong" if wrong else "") + (f", {unjudged:,} not judged" if unjudged else "")
    yield Told(f" {counted(len(every), 'stage')}{said}{shown.counted(len(chosen))}", "strong")
    if chosen:
        yield Heads("stages")
        yield from chosen


def _blame(report: DiffReport, to_ask: str) -> Iterator[Told]:
    """Where the numbers go wrong, in one sentence, or how to find out."""
    if said := blame_sentence(report, place):
        found = report.first_wrong_stage is not None or report.culprit is not None
        yield Told(f"   {said}", BAD if found else "fallback", blames=found)
    elif to_ask and not (report.stages or report.kernels) and (said := where_to_ask(report, to_ask)):
        yield Told(f"   {said}", "fallback")


def _tensors(report: DiffReport, what: str, tensors: Sequence[TensorDiff], shown: Shown) -> Iterator[Item]:
    if not tensors:
        return
    chosen = [one for one in tensors if not (shown.failed_only and one.passed) and shown.has(outputs.words(one))]
    if shown.order != "as they come":
        worst = shown.order in _WORST
        chosen.sort(key=outputs.badness if worst else attrgetter("failed"), reverse=True)
    text = f" {counted(len(tensors), what)}{_standing(report, tensors)}"
    yield Told(text + shown.counted(len(chosen)), "strong")
    if chosen:
        yield Heads("outputs")
        yield from chosen


def _kernels(report: DiffReport, shown: Shown) -> Iterator[Item]:
    if not report.kernels:
        return
    chosen = [one for one in report.kernels if (one.bad or not shown.failed_only) and shown.has(launches.words(one))]
    if shown.order in _WORST:
        chosen.sort(key=partial(_error, alone=shown.order == "the worst alone first"), reverse=True)
    yield Told(f" {kernels_sentence(report)}{shown.counted(len(chosen))}", "strong")
    if chosen:
        yield Heads("nodes" if is_bisected(report) else "kernels")
        places = {id(one): place for place, one in enumerate(report.kernels)}
        for one in chosen:
            yield one
            yield from _owner(report.owner_of(places[id(one)]))


def _owner(owner: KernelAttribution | None) -> Iterator[Told]:
    """Whose the error of the launch above is, and where its script lies."""
    if owner is None:
        return
    sign, style = VERDICT_SIGNS[OWNER_LOOKS[owner.kind]], OWNER_STYLES[owner.kind]
    yield Told(f"     {sign} {owner.sentence}", style)
    if said := script_sentence(owner):
        yield Told(f"       {said}", "dim")


def _error(one: KernelError, *, alone: bool) -> float:
    """What a launch is sorted by: the error with all that came before, or its own; that which is not known is last."""
    error = one.isolated if alone else one.error
    return -1.0 if error is None else error


def _standing(report: DiffReport, tensors: Sequence[TensorDiff]) -> str:
    """ ", 2 failed, 1 waiting"; what nothing will come of is "not compared"."""
    failed, unjudged = sum(one.failed for one in tensors), sum(not one.judged for one in tensors)
    word = "not comparable" if report.not_comparable else "not compared" if report.verdict == "error" else "waiting"
    return (f", {failed:,} failed" if failed else "") + (f", {unjudged:,} {word}" if unjudged else "")


def _verdict(report: DiffReport, to_ask: str) -> Iterator[Told]:
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
    yield from _blame(report, to_ask)
    for said in float64_device.sentences(report.float64_elsewhere):
        yield Told(f"   {said}", "dim")
    failed = [(side.name, f"{side.name} failed", side.failure) for side in report.sides if side.failure is not None]
    if report.failure is not None and not failed and report.verdict != "waiting":
        failed.append(("", "the program did not come to its end", report.failure))
    for name, what, failure in failed:
        said = f"{name} was cancelled" if name and failure.kind == "cancelled" else f"{what}: {failure_said(failure)}"
        yield Told(f"   {said}", BAD, wraps=False, failed=name)
    for text, birth in nan_origin_sentences(report, place):
        yield Told(f"   {text}", "dim" if birth is None else "fallback", birth=birth)
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
    if report.not_comparable:
        return f"not comparable: {report.not_comparable}"
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
