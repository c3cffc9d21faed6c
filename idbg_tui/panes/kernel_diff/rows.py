"""Choose which rows of a comparison's tables are listed, and in which order."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import inf
from typing import Literal, cast

from msgspec.structs import replace

from idbg.schema.attribution import StageError
from idbg.schema.diff import DiffReport, KernelError, TensorDiff
from idbg.views.blame import standing
from idbg.views.tensors import one_sided
from idbg.views.tree import Block, Row, Section, Table

SortOrder = Literal["what failed first", "the worst first", "the worst alone first", "as they come"]
ORDERS: tuple[SortOrder, ...] = ("what failed first", "the worst first", "the worst alone first", "as they come")
Subject = StageError | TensorDiff | KernelError


@dataclass(frozen=True)
class Choice:
    """Which rows the user wants to see, and in which order: "alone" sorts launches by their own error."""

    order: SortOrder = "what failed first"
    failed_only: bool = False


def root(key: Hashable) -> Hashable:
    """The key of the view's own row, of any row that is part of it or below it."""
    while isinstance(key, tuple) and key and isinstance(key[0], tuple):
        key = key[0]
    return key


def subject(key: Hashable, report: DiffReport) -> Subject | None:
    """The stage, output, gradient or launch that a row is about."""
    match root(key):
        case ("stage", *name):
            found = (each for each in report.stages if [each.frame, each.stage, each.part] == name)
            return next(found, None)
        case ("output", int(at)):
            return report.outputs[at]
        case ("gradient", int(at)):
            return report.gradients[at]
        case ("launch", int(at)):
            return report.kernels[at]
        case "bad" | ("bad", *_):
            return report.culprit
    return None


def leading_key(report: DiffReport) -> Hashable:
    """The row that a failed comparison leads to: its first wrong stage, else its first bad launch, else what failed."""
    if report.verdict != "failed":
        return None
    suspect = next((each for each in report.stages if standing(each, report) == "first_wrong"), None)
    if suspect is not None:
        return "stage", suspect.frame, suspect.stage, suspect.part
    if report.first_bad_kernel is not None:
        return "launch", report.first_bad_kernel
    for noun, diffs in (("output", report.outputs), ("gradient", report.gradients)):
        for at, diff in enumerate(diffs):
            if diff.failed:
                return noun, at
    return None


def choose(section: Section, report: DiffReport, choice: Choice, wanted: Callable[[Row], bool]) -> Section:
    """The section with those rows of its tables that are chosen and `wanted`, in the chosen order."""
    body: list[Block] = []
    for block in section.body:
        if not isinstance(block, Table) or not block.rows or subject(block.rows[0].key, report) is None:
            body.append(block)
            continue
        pairs = [(row, cast("Subject", subject(row.key, report))) for row in block.rows]
        kept = [pair for pair in pairs if not (choice.failed_only and _is_right(pair[1], report)) and wanted(pair[0])]
        if choice.order in ("the worst first", "the worst alone first"):
            alone = choice.order == "the worst alone first"
            kept.sort(key=lambda pair: badness(pair[1], alone=alone), reverse=True)
        elif choice.order == "as they come" and block.noun in ("output", "gradient"):
            kept.sort(key=lambda pair: cast("tuple[str, int]", pair[0].key))
        body += [replace(block, rows=[row for row, _ in kept])] if kept else []
    return replace(section, body=tuple(body))


def _is_right(about: Subject, report: DiffReport) -> bool:
    match about:
        case StageError():
            return standing(about, report) not in ("first_wrong", "wrong")
        case TensorDiff():
            return about.passed
        case _:
            return not about.bad


def badness(about: Subject, *, alone: bool = False) -> float:
    """How bad it is: of an output above 1 fails, and NaN, infinities and what has no figures are the worst; of a launch
    its error, by itself if `alone`; of a stage by how much it is off against the one before. -1.0 is not known.
    """
    match about:
        case StageError():
            return -1.0 if about.added is None or not about.judged else about.added
        case KernelError():
            error = about.isolated if alone else about.error
            return -1.0 if error is None else error
    if about.failed_by and (one_sided(about) or about.max_abs is None):
        return inf
    ratios = [block.ratio for block in about.blocks if block.ratio is not None]
    figures = ratios if about.baseline else [about.max_scaled or 0.0]
    return max(figures, default=0.0) + (1e6 if about.failed_by else 0.0)
