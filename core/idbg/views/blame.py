"""Describe where numbers go wrong: the first wrong stage, its node and line, what made it, and the kernels below.

The one place of that sentence and of the words of the stage table's cells, for the CLI, the JSON and the screen.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from idbg.format.amounts import counted, few, share
from idbg.format.file_names import near_place
from idbg.schema.attribution import FOREIGN_STAGES, Maker, StageError, StageName
from idbg.schema.diff import SIDE_EFFECTS, DiffReport, FailedBy, KernelError, launch_name
from idbg.schema.remarks import Remark
from idbg.views import remarks

Place = Callable[[str, int], str]
"""How a file and a line are written: "" of no file."""

Standing = Literal["right", "first_wrong", "wrong", "faithful", "harmless", "implied", "unjudged"]
"""Of a stage: `first_wrong` is the first wrong one of its frame, `wrong` one that adds to it; a `faithful` one computes
what it was given, a `harmless` one is off in a run whose outputs agree. Two were not judged: an `implied` one is right,
as what is made of it is, and of an `unjudged` one nothing is known."""

_FORMS: frozenset[FailedBy] = frozenset(
    {"missing", "extra", "type", "shape", "dtype", "class", "device", "layout", "alias", "requires_grad", "unsteady"}
)
STRUCTURE = _FORMS | SIDE_EFFECTS  # no kernel is to blame
NO_REASON = "no reason is known"
NAMES_SHOWN = 3  # of stages or frames in a sentence
_STAGES: dict[StageName, str] = {
    "dynamo": "dynamo",
    "pre_grad": "pre-grad",
    "joint": "joint",
    "joint_passes": "joint passes",
    "partitioned": "partitioned",
    "post_grad": "post-grad",
    "kernels": "kernels",
    "imported": "imported model",
    "rewritten": "rewritten model",
}


class StageCells(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the stage table as words. `means` explains a stage that has no bad node."""

    standing: Standing
    stage: str
    node: str = ""
    made_by: str = ""
    means: str = ""


# ---------------------------------------------------------------- the sentence


def blame_sentence(report: DiffReport, place: Place = near_place) -> str:
    """Since where the numbers are wrong, what made that, and whether the kernels are faithful; where nothing is to
    blame, what that leaves; which later call is wrong, and what changed before it. Of a run that passed, which stage
    changed the numbers within rounding. "" where the numbers are not wrong, or it was not requested where.
    """
    return "; ".join(filter(None, (_of_first_calls(report, place), *later_calls(report))))


def later_calls(report: DiffReport) -> list[str]:
    """Which later calls are wrong, and what changed before them: stages and launches are those of first calls."""
    return [remarks.sentence(note) for note in report.notes if isinstance(note, Remark) and note.kind == "later call"]


def _of_first_calls(report: DiffReport, place: Place) -> str:
    if report.raises_alone is not None:
        first = report.first_wrong_stage
        return _since(first, report, place, "a check of eager's is lost") if first is not None else ""
    if (changed := report.changed_stage) is not None:
        return f"within rounding, but {_changed(changed, report, place)}"
    if report.verdict != "failed" or not (report.stages or report.kernels):
        return ""
    wrong_stages, culprit = _first_wrong(report), report.culprit
    if wrong_stages and wrong_stages[0].stage != "kernels":
        more = *_other_frames(wrong_stages[1:], report), _of_kernels(report, place)
        return "; ".join((_since(wrong_stages[0], report, place, _what_is_wrong(report)), *more))
    if culprit is not None:
        others = [stage for stage in wrong_stages if stage.frame != culprit.frame]
        more = *_other_frames(others, report), *_above(report)
        return "; ".join((_since_kernel(culprit, wrong_stages, report, place), *more))
    if wrong_stages:
        more = *_other_frames(wrong_stages[1:], report), *_above(report)
        return "; ".join((_since(wrong_stages[0], report, place, _what_is_wrong(report)), *more))
    return _nothing_found(report) if is_of_numbers(report) and not later_calls(report) else ""


def _what_is_wrong(report: DiffReport) -> str:
    if report.only_draws_fail:
        shares = [remarks.sentence(note) for note in _notes(report) if note.kind == "other share"]
        return "; ".join((*shares, "right with eager's random operators", "with Inductor's own, wrong"))
    return "other side effects" if report.only_effects_differ else "wrong"


def _notes(report: DiffReport) -> Iterator[Remark]:
    yield from (each.note for each in report.outputs if isinstance(each.note, Remark))


def blamed_line(report: DiffReport) -> tuple[str, int]:
    """The user's line since which the numbers are wrong: that of the first bad node or launch, as `blame_sentence` has
    it; where none of those has a line, what made it (a pass, a decomposition). ("", 0) where nothing is accused.
    """
    if _unknown_above(report):
        return "", 0
    wrong_stages, culprit = _first_wrong(report), report.culprit
    stages = [*(stage for stage in wrong_stages if stage.stage != "kernels"), *wrong_stages]
    places = [(stage.file, stage.line) for stage in stages[:1]]
    places += [(culprit.file, culprit.line)] if culprit is not None else []
    places += [(stage.file, stage.line) for stage in stages]
    places += [(stage.made_by.file, stage.made_by.line) for stage in stages if stage.made_by is not None]
    return next(filter(lambda place: place[0], places), ("", 0))


def cause(report: DiffReport, place: Place = near_place) -> str:
    """What makes the numbers wrong, where it is defined, and the first bad node: "post_grad_custom_post_pass
    (wrong.py:4) at `mul`"; of a guess "probably" first. "" where nothing is accused.
    """
    wrong_stages, culprit = _first_wrong(report), report.culprit
    first = wrong_stages[0] if wrong_stages else None
    if report.verdict != "failed" or (first is None and culprit is None) or _unknown_above(report):
        return ""
    if first is None or first.stage == "kernels":
        if culprit is not None:
            return f"{_unit(culprit)} `{launch_name(culprit, report.kernels)}`"
        if first is None or first.made_by is None:
            return ""
    at = f" at `{first.node}`" if first.node else ""
    if (maker := first.made_by) is None:
        return f"stage {stage_name(first, report, whole=True)}{_in_frame(first.frame, report)}{at}"
    sure = "" if _is_sure(maker) else "probably "
    return f"{sure}{maker_name(maker)}{_in(place(maker.file, maker.line))}{at}"


def _changed(stage: StageError, report: DiffReport, place: Place) -> str:
    """What a stage does to the numbers, though the outputs agree."""
    name = f"{stage_name(stage, report, whole=True)}{_in_frame(stage.frame, report)}"
    error = stage.added if stage.node_error is None else stage.node_error
    node = f" at `{stage.node}`{_in(place(stage.file, stage.line))}" if stage.node else ""
    by = f", {_made(stage.made_by)} {maker_name(stage.made_by)}" if stage.made_by is not None else ""
    return f"{name} changed the graph: {share(error or 0.0)} in float64{node}{by}"


def blamed_stage(report: DiffReport) -> str:
    """The stage since which the numbers are wrong, for a line that has no room for the sentence; "" of none."""
    first = report.first_wrong_stage if report.verdict == "failed" or report.raises_alone else None
    return stage_name(first, report, whole=True) if first is not None and not _unknown_above(report) else ""


def is_of_numbers(report: DiffReport) -> bool:
    """Whether a tensor fails by its numbers, and not only by a shape, an alias, or by being missing."""
    return any(set(diff.failed_by) - STRUCTURE for diff in (*report.outputs, *report.gradients))


def why_not_accused(report: DiffReport) -> str:
    """Why what is off is not to blame."""
    if report.passed:
        return "the outputs agree"
    return "eager itself varies" if report.only_eager_varies else "the outputs differ by another cause"


def where_to_ask(report: DiffReport, by: str) -> str:
    """How to find out where the numbers go wrong, of a comparison that did not: `by` is a key or an option."""
    if report.verdict != "failed" or not is_of_numbers(report):
        return ""
    return f"where they go wrong is not known: {by} says which stage, node, pass or kernel"


def _since(stage: StageError, report: DiffReport, place: Place, what: str = "wrong") -> str:
    where = f"{what} {_when(stage, report, _in_frame(stage.frame, report))}"
    if stage.stage != "kernels" and (unknown := report.unknown_before(stage)):
        return f"{where}; before it {_not_judged(unknown, report)}"
    if stage.node:
        where += f": `{stage.node}`{_in(place(stage.file, stage.line))}"
    elif stage.output and stage.above and stage.file:
        lost = f"`{stage.above}`{_in(place(stage.file, stage.line))}"
        where += f": its output `{stage.output}` does not get {lost} of the stage before"
    elif stage.output:
        unknown_node = [each for each in stage.reason if isinstance(each, Remark) and each.kind == "node unknown"]
        why = f" ({remarks.sentence(unknown_node[0].detail)})" if unknown_node else ""
        where += f": its output `{stage.output}`, at no known node{why}"
    if stage.made_by is None:
        return where if stage.stage == "kernels" else f"{where}, what made it is not known"
    return f"{where}, {_made(stage.made_by)} {maker_name(stage.made_by)}"


def _since_kernel(kernel: KernelError, wrong_stages: Sequence[StageError], report: DiffReport, place: Place) -> str:
    name, where = launch_name(kernel, report.kernels), _in(place(kernel.file, kernel.line))
    computes = f", which computes `{kernel.node}`" if kernel.is_foreign and kernel.node else ""
    if _unknown_above(report):
        return f"{_unit(kernel)} `{name}`{computes}{where} is wrong"
    made = wrong_stages[0].made_by if wrong_stages else None
    lowered = f", {_made(made)} {maker_name(made)}" if made is not None and made.kind == "lowering" else ""
    if kernel.bisected:
        return f"wrong since {report.test}{' backward' if kernel.part == 'backward' else ''}: `{name}`{where}"
    if kernel.is_foreign:
        return f"wrong since {report.test}: {kernel.unit} `{name}`{computes}{where}"
    if not report.stages:
        return f"the first bad kernel is `{name}`{where}"
    return f"wrong since kernels{_in_frame(kernel.frame, report)}: `{name}`{where}{lowered}"


def _other_frames(wrong_stages: Sequence[StageError], report: DiffReport) -> Iterator[str]:
    others = [f"{one.frame} {_when(one, report)}" for one in wrong_stages]
    if others:
        yield f"wrong too: frame {few(others, NAMES_SHOWN, ', and {:,} more')}"


def _of_kernels(report: DiffReport, place: Place) -> str:
    """Whether what is below a wrong graph computes what it was given."""
    culprit = report.culprit
    if culprit is not None:
        if culprit.is_foreign:
            return f"the first wrong {culprit.unit} is `{launch_name(culprit, report.kernels)}`"
        where = _in(place(culprit.file, culprit.line))
        return f"{_unit(culprit)} `{launch_name(culprit, report.kernels)}`{where} is wrong too"
    below = next((stage for stage in report.stages if stage.stage == "kernels"), None)
    if below is not None and below.bad:
        return "the kernels add to it" if not is_foreign(report) else f"{report.test} adds to it"
    launches = [kernel for kernel in report.kernels if kernel.is_launch]
    seen = sum(kernel.observed for kernel in launches)
    if launches and seen == len(launches):
        return "kernels are faithful"
    if seen:
        are = "kernel is" if seen == 1 else "kernels are"
        return f"the {seen:,} observed {are} faithful, {len(launches) - seen:,} not observed"
    if below is not None and below.judged:
        return f"{'kernels are' if not is_foreign(report) else f'{report.test} is'} faithful"
    return "no kernel was observed" if launches else "kernels were not compared"


def _above(report: DiffReport) -> Iterator[str]:
    """What is known of the graphs above a wrong kernel, or of another compiler's models."""
    if unknown := _unknown_above(report):
        graphs = "models" if is_foreign(report) else "graphs"
        yield f"whether the {graphs} above it are is not known: {_not_judged(unknown, report)}"
    elif not is_foreign(report) and any(stage.stage != "kernels" for stage in report.stages):
        yield "every graph above is right"


def _nothing_found(report: DiffReport) -> str:
    """What it may be, where no stage and no kernel is to blame."""
    judged = [stage for stage in report.stages if stage.judged and stage.stage != "kernels"]
    unknown = report.unknown_stages
    unseen = sum(not kernel.observed for kernel in report.kernels)
    if unknown or unseen:
        launches = [f"{counted(unseen, 'kernel')} not observed"] if unseen else []
        stages = [f"{_names(unknown, report)} not judged"] if unknown else []
        seen = "nothing that was looked at is wrong" if judged or unseen < len(report.kernels) else "not known where"
        return f"{seen}: suspect {' and '.join((*stages, *launches))}"
    if not judged:
        return (
            "no kernel is worse than what it was given: what they stand for may be wrong itself (a decomposition, a "
            "pass), or what is outside of them, or each error is no more than rounding may be"
        )
    return (
        "no stage and no kernel is wrong: it lies outside of the compiled graphs, or each error is no more than "
        "rounding may be"
    )


# ---------------------------------------------------------------- the table


def stage_cells(report: DiffReport) -> tuple[StageCells, ...]:
    """The words of the stage table's rows, in the order of `report.stages`."""
    return tuple(_cells(stage, report) for stage in report.stages)


def stage_name(stage: StageError, report: DiffReport, *, whole: bool = False) -> str:
    """A stage for people: "post-grad", with its frame in a table where there are several; the `kernels` of a backend
    that has none are the backend. `whole` names the part too.
    """
    name = report.test if stage.stage == "kernels" and is_foreign(report) else _STAGES[stage.stage]
    if stage.part == "backward" and (whole or _has_parts(stage, report)):
        name = f"{name} backward"
    return name if whole or not _has_frames(report) or not stage.frame else f"{stage.frame} {name}"


def is_foreign(report: DiffReport) -> bool:
    """Whether the test's backend is given Dynamo's graphs, and what it makes of them cannot be looked into."""
    stages = {stage.stage for stage in report.stages}
    if any(kernel.bisected or kernel.is_foreign for kernel in report.kernels):
        return True
    return bool(stages) and stages <= {"dynamo", "kernels"} | FOREIGN_STAGES


def standing(stage: StageError, report: DiffReport) -> Standing:
    """How a stage stands; nothing is accused in a run whose outputs agree."""
    if not stage.judged:
        return "unjudged" if any(stage is one for one in report.unknown_stages) else "implied"
    wrong_stages = _first_wrong(report)
    if stage.harmless:
        return "harmless"
    if stage.bad:
        return "harmless" if report.passed else "first_wrong" if any(stage is one for one in wrong_stages) else "wrong"
    above = [one for one in report.stages[: _index(stage, report)] if one.bad and one.frame in ("", stage.frame)]
    return "faithful" if above and not report.passed else "right"


def faithful_to(kernel: KernelError, report: DiffReport) -> StageError | None:
    """The first wrong stage whose graph a launch computes as it should; None of one that is bad or was not observed."""
    if report.verdict != "failed" or kernel.bad or not kernel.observed or kernel.bisected:
        return None
    above = (stage for stage in _first_wrong(report) if stage.stage != "kernels")
    return next(
        (one for one in above if one.frame in ("", kernel.frame) and one.part in ("", kernel.part)),
        None,
    )


def made_by(maker: Maker, place: Place = near_place) -> str:
    """What made a stage wrong, where that is defined, and how it was proven: "made by the decomposition of aten.gelu
    (plant.py:9): without it the outputs are right".
    """
    proven = f": {remarks.sentence(maker.proven)}" if maker.proven else ""
    return f"{_made(maker)} {maker_name(maker)}{_in(place(maker.file, maker.line))}{proven}"


def maker_name(maker: Maker) -> str:
    """What made a stage wrong, by its name: a pass, "the decomposition of aten.gelu"."""
    match maker.kind:
        case "decomposition":
            return f"the decomposition of {maker.name}"
        case "lowering":
            return f"the lowering of {maker.name}"
        case "kernel" | "layer" | "dispatch":
            return f"{maker.kind} {maker.name}"
        case "wrapper":
            return "the code that launches the kernels"
        case "partitioner":
            return maker.name or "the partitioner"
        case "dynamo":
            return maker.name or "Dynamo"
        case _:
            return maker.name


def _made(maker: Maker) -> str:
    return "made by" if _is_sure(maker) else "probably made by"


def _is_sure(maker: Maker) -> bool:
    """Whether it is no guess: what a kernel and a backend give was compared itself."""
    return bool(maker.proven) or maker.kind in ("kernel", "layer", "dispatch", "backend")


def _cells(stage: StageError, report: DiffReport) -> StageCells:
    stands = standing(stage, report)
    means = {
        "unjudged": f"not judged: {remarks.sentence(stage.reason) or NO_REASON}",
        "implied": "not run: what follows from it is right",
        "faithful": "faithful to what it was given",
        "harmless": f"off, and not accused: {why_not_accused(report)}",
        "wrong": "adds to what is wrong already",
        "first_wrong": f"its output {stage.output}" if stage.output else _at_no_node(stage, report),
    }.get(stands, remarks.sentence(stage.reason))
    if stands == "harmless" and stage is not report.changed_stage:  # nothing is accused of what is not proven
        stage = replace(stage, node="", file="", line=0, made_by=None, reason=())
    cells = StageCells(
        standing=stands,
        stage=stage_name(stage, report),
        node=stage.node,
        means="" if stage.node else means,
    )
    maker = stage.made_by
    if maker is None:  # and the reason says why
        return replace(cells, made_by=remarks.sentence(stage.reason)) if stage.bad else cells
    if maker.kind == "backend":  # which is the row's own name
        return cells
    return replace(cells, made_by=made_by(maker))


def _first_wrong(report: DiffReport) -> list[StageError]:
    """The first bad stage of each frame, in their order."""
    first: dict[str, StageError] = {}
    for stage in report.stages:
        if stage.bad:
            first.setdefault(stage.frame, stage)
    return list(first.values())


def _unknown_above(report: DiffReport) -> tuple[StageError, ...]:
    """What was not judged above the first wrong stage, or above the first bad kernel. While there is any, nothing is
    accused where there is no room to say so.
    """
    first = next(iter(_first_wrong(report)), None)
    if first is not None and (first.stage != "kernels" or report.culprit is None):
        return report.unknown_before(first)
    return tuple(stage for stage in report.unknown_stages if stage.stage != "kernels")


def _not_judged(unknown: Sequence[StageError], report: DiffReport) -> str:
    """The stages of which nothing is known, and why: "pre-grad was not judged: its dtype has no float64"."""
    were = "was" if len(unknown) == 1 else "were"
    return f"{_names(unknown, report)} {were} not judged: {remarks.sentence(unknown[0].reason) or NO_REASON}"


def _when(stage: StageError, report: DiffReport, frame: str = "") -> str:
    """Where the numbers go wrong; where what is above was not judged, at the latest."""
    name = f"{stage_name(stage, report, whole=True)}{frame}"
    return f"at {name} at the latest" if report.unknown_before(stage) else f"since {name}"


def _at_no_node(stage: StageError, report: DiffReport) -> str:
    unknown = report.unknown_before(stage) if stage.stage != "kernels" else ()
    return f"or before it: {_not_judged(unknown, report)}" if unknown else "at no known node"


def _unit(kernel: KernelError) -> str:
    return "node" if kernel.bisected else kernel.unit


def _index(stage: StageError, report: DiffReport) -> int:
    return next(at for at, one in enumerate(report.stages) if one is stage)


def _has_frames(report: DiffReport) -> bool:
    return len({stage.frame for stage in report.stages if stage.frame}) > 1


def _has_parts(stage: StageError, report: DiffReport) -> bool:
    same = [one for one in report.stages if (one.stage, one.frame) == (stage.stage, stage.frame)]
    return len({one.part for one in same}) > 1


def _in_frame(frame: str, report: DiffReport) -> str:
    return f" of frame {frame}" if frame and _has_frames(report) else ""


def _in(place: str) -> str:
    return f" ({place})" if place else ""


def _names(stages: Sequence[StageError], report: DiffReport) -> str:
    return few(dict.fromkeys(stage_name(stage, report) for stage in stages), NAMES_SHOWN)
