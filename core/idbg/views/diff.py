"""Show whether numbers agree with a reference, and where they go wrong: by stage, output, kernel launch and step."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import inf

from msgspec.structs import replace

from idbg.format.amounts import NOT_MEASURED, counted, elapsed, few, figure
from idbg.format.failures import lowering_words
from idbg.format.file_names import near_place
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.format.verdicts import effects_words, raises_words
from idbg.schema.attribution import FOREIGN_STAGES, StageError
from idbg.schema.diff import (
    LARGEST,
    DiffReport,
    ErrorMap,
    KernelError,
    Mode,
    Outcome,
    TensorDiff,
    Variance,
    launch_name,
)
from idbg.schema.graphs import NodeId
from idbg.schema.programs import Failure
from idbg.schema.programs import Verdict as Look
from idbg.schema.remarks import Remark
from idbg.schema.runs import Run
from idbg.schema.steps import StepDistance, TrainingSteps
from idbg.views import error_maps, float64_device, remarks
from idbg.views import steps as training
from idbg.views.attribution import owner_lines
from idbg.views.blame import (
    Standing,
    blame_sentence,
    faithful_to,
    stage_cells,
    stage_name,
    where_to_ask,
)
from idbg.views.breaks import sentence
from idbg.views.criteria import because, form_parts
from idbg.views.faults import crash_lines, nan_origin_lines
from idbg.views.launches import kernels_sentence, unit_noun
from idbg.views.tensors import LOOKS, against, block_words, decided, metrics, outcome, worst_parts, worst_words
from idbg.views.tree import (
    NO_OPTIONS,
    NO_REFS,
    Block,
    Cell,
    Chart,
    Column,
    Options,
    Place,
    Refs,
    Row,
    Section,
    Table,
    Tone,
    Unfolded,
    Verdict,
    words,
)

TITLE = "Numbers (KernelDiff)"
NO_MAPS: Mapping[str, ErrorMap] = {}
NOT_COMPARED = "numbers were not compared"
OUTCOME_SIGNS: dict[Outcome, str] = {"passed": "✔", "failed": "✘", "error": "✘", "empty": "⚠", "waiting": "…"}
STAGE_SIGNS: dict[Standing, str] = {
    "right": VERDICT_SIGNS["clean"],
    "first_wrong": VERDICT_SIGNS["wrong"],
    "wrong": VERDICT_SIGNS["wrong"],
    "faithful": MARKS["arrow"],
    "harmless": MARKS["separator"],
    "implied": MARKS["separator"],
    "unjudged": VERDICT_SIGNS["waiting"],
}
MESSAGE_LINES = 4  # of one message: a C++ compiler's has a thousand
LINE_LENGTH = 300  # its command line alone has thousands of characters
WHOLE = "--json has all of it, and so has the session's events.jsonl"
_NAMES = 3  # of kernels with the same reason
_FIGURED = 40  # outputs, and gradients, whose figures are listed: the JSON has all
_VERDICTS: dict[Look, Verdict] = {"clean": "ok", "wrong": "error", "failed": "error", "violations": "warning"}
_TONES: dict[Look, Tone] = {"clean": "clean", "wrong": "reject", "failed": "reject", "empty": "fallback"}
_STAGES = (
    Column("to float64", "error", 3),
    Column("to before", "error", 2),
    Column("first bad node", "code", 4),
    Column("line", "place", 3),
)
_TENSORS = (
    Column("max |d|", "error", 3),
    Column("RMSE", "error", 2),
    Column("× eager's", "error", 4),
    Column("decided", "text", 1),
    Column("worst at", "text", 2),
    Column("computed, wanted", "text", 2),
)
_ERRORS = (
    Column("alone", "error", 4),
    Column("eager alone", "error", 3),
    Column("so far", "error", 4),
    Column("inputs", "error", 2),
    Column("eager", "error", 3),
)
_FRAME = Column("frame", "text", 3)
_NOUNS = ("stage", "output", "gradient", "kernel launch", "node")
_HEADS = (column.head for column in (*_STAGES, *_TENSORS, _FRAME, *_ERRORS))
SORTED_BY = tuple(dict.fromkeys((*_NOUNS, "computes", *_HEADS, *training.HEADS)))
"""The columns of all tables of a comparison."""


def view(run: Run, options: Options = NO_OPTIONS, to_ask: str = "") -> Section:
    """The verdict, where the numbers go wrong, the stages, outputs and launches, then NaN, training and notes; where
    nothing was compiled, the graph breaks. `to_ask`: see `section`.
    """
    report = run.diff
    if report is None:
        return Section(TITLE, _no_report(run), verdict="unknown")
    made = section(report, run.maps, to_ask)
    if report.verdict != "empty":
        return made
    broken = [Row(("break", at), words((sentence(one), "fallback"))) for at, one in enumerate(run.breaks)]
    return replace(made, body=(*broken, *made.body))


def count(run: Run) -> int:
    """Outputs and gradients that failed."""
    return sum(diff.failed for diff in tensors(run.diff)) if run.diff is not None else 0


def section(report: DiffReport, maps: Mapping[str, ErrorMap] = NO_MAPS, to_ask: str = "") -> Section:
    """The section of a comparison, also of one that belongs to no run; `maps` has error maps by output, and `to_ask` is
    what finds out where the numbers go wrong, if the comparison did not.
    """
    body: list[Block] = [*_sentences(report, to_ask), *_stages(report)]
    for noun, diffs in (("output", report.outputs), ("gradient", report.gradients)):
        body += _tensors(noun, diffs, maps, _pending(report))
    for number, owner in enumerate(report.owners):
        body += [Row(("owner", number, at), words(line)) for at, line in enumerate(owner_lines(owner))]
    body += _launches(report)
    body += [Row(("nan", at), words(line)) for at, line in enumerate(nan_origin_lines(report))]
    if report.steps is not None:
        body += _training(report.steps, report.test)
    body += list(_notes(report))
    failed = sum(diff.failed for diff in tensors(report))
    verdict = _VERDICTS.get(LOOKS[report.verdict], "unknown")
    return Section(TITLE, headline(report), failed, verdict, tuple(body))


def _notes(report: DiffReport) -> Iterator[Row]:
    took: dict[str, float] = {}
    for side in report.sides:
        if side.seconds is not None:
            took[side.name] = took.get(side.name, 0.0) + side.seconds
    if took:
        sides = ", ".join(f"{name} {elapsed(seconds)}" for name, seconds in took.items())
        yield Row("seconds", words((f"ran for: {sides}", "dim")))
    above = (report.not_comparable,)
    shown = (note for note in report.notes if note not in above and not (_is_of_verdict(note) or _is_of_blame(note)))
    for number, note in enumerate(shown):
        first, *others = paragraph("note: ", remarks.sentence(note))
        below = [Row(("note", number, at), words((line, "dim"))) for at, line in enumerate(others)]
        yield Row(("note", number), words((first, "dim")), rows=below, open="all")


def _no_report(run: Run) -> str:
    if run.comparison is None:
        return NOT_COMPARED
    unfinished = run.verdict == "waiting"
    why = "it did not come to its end" if unfinished else "the run ended before both sides were compared"
    return f"the comparison with {run.comparison.reference} has no verdict: {why}"


# ---------------------------------------------------------------- the verdict and sentences


def headline(report: DiffReport) -> str:
    """The verdict, what was compared with what, and by which rule."""
    sign = "⚠" if is_empty(report) else OUTCOME_SIGNS[report.verdict]
    missing = f"   {VERDICT_SIGNS['empty']} {report.not_judged} not judged" if report.not_judged else ""
    return f"{sign} {_verdict(report)}{missing}   {report.test} against {report.reference}   {_rule(report)}".rstrip()


def _verdict(report: DiffReport) -> str:
    if report.verdict == "waiting":
        return "not comparable" if report.not_comparable else f"not finished{_awaited(report)}"
    if raises := raises_words(report):
        return raises
    if report.verdict == "error":
        return "not compared" if any(side.failure for side in report.sides) else "not finished"
    if is_empty(report):
        return "nothing was compared"
    if report.verdict == "empty":
        return "nothing was compiled"
    failed = [diff for diff in tensors(report) if diff.failed and diff.is_tensor]
    wrong = f"{counted(len(failed), 'tensor')} failed" if failed else ""
    return ", ".join(filter(None, (wrong, effects_words(report)))) or report.verdict


def _awaited(report: DiffReport) -> str:
    ended = [side.name for side in report.sides]
    missing = [name for name in dict.fromkeys((report.reference, report.test, "float64")) if name not in ended]
    return f": waiting for {missing[0]}" if missing and report.failure is None else ""


def _rule(report: DiffReport) -> str:
    if report.verdict not in ("passed", "failed") or is_empty(report):
        return ""
    rules: dict[Mode, str] = {
        "float64": "held against float64",
        "rounding": "held against eager's own rounding",
        "tolerance": "by tolerance",
    }
    missing = f" (float64: {first_line(remarks.no_float64(report.float64_missing))})" if report.float64_missing else ""
    return rules[report.mode] + missing


def tensors(report: DiffReport) -> tuple[TensorDiff, ...]:
    """Outputs, then gradients."""
    return (*report.outputs, *report.gradients)


def is_empty(report: DiffReport) -> bool:
    """Whether there was nothing to compare."""
    return report.verdict in ("passed", "failed", "empty") and not tensors(report)


def _sentences(report: DiffReport, to_ask: str) -> Iterator[Row]:
    """Where the numbers go wrong, or how to find out; where float64 was computed; what failed; what varies."""
    kinds = [(diff.name, "; ".join(form_parts(diff).values())) for diff in tensors(report) if diff.failed]
    for name, kind in [each for each in kinds if each[1]][:_NAMES]:
        yield Row(("kind", name), words((f"{name}: {kind}", "strong")))
    if blamed := blame_sentence(report) or (where_to_ask(report, to_ask) if to_ask else ""):
        yield Row("blame", words((blamed, "strong")))
    for number, line in enumerate(float64_device.sentences(report.float64_elsewhere)):
        yield Row(("float64", number), words(line))
    yield from _failures(report)
    for number, line in enumerate((*nothing_lines(report), *variance_lines(report.variance))):
        yield Row(("line", number), words(line))


def nothing_lines(report: DiffReport) -> Iterator[str]:
    """A sentence where the verdict stands without a number behind it, or there is none."""
    if report.not_comparable:
        yield from paragraph("", remarks.sentence(report.not_comparable))
    yield from (remarks.sentence(note) for note in report.notes if _is_of_verdict(note))
    if is_empty(report):
        yield "neither side gave a tensor or a floating number: let the program return what is to be compared"
    elif report.verdict == "passed" and not any(diff.elements for diff in tensors(report)):
        yield "no tensor has any elements: only shapes and dtypes were compared"


def _is_of_verdict(note: Remark | str) -> bool:
    """Whether the verdict cannot be read without it."""
    return isinstance(note, Remark) and note.kind == "parted"


def _is_of_blame(note: Remark | str) -> bool:
    """Whether `blame_sentence` has it."""
    return isinstance(note, Remark) and note.kind == "later call"


def _failures(report: DiffReport) -> Iterator[Row]:
    """Which side failed, and why; why it did not come to its end."""
    failures = [(side.name, f"{side.name} failed", side.failure) for side in report.sides if side.failure]
    same = [failure for _, _, failure in failures if report.failure and failure.message == report.failure.message]
    if report.failure and not same:
        failures.append(("", "it did not come to its end", report.failure))
    elif report.failure and report.failure.file:  # the script's own call fails as the side did, and has the user's line
        failures = [(name, what, report.failure if failure in same else failure) for name, what, failure in failures]
    for name, what, failure in failures:
        first, *others = _failure(what, failure)
        below = [Row(("failure", name, at), words(line)) for at, line in enumerate(others)]
        yield Row(("failure", name), words(first), rows=below, open="all")


def _failure(what: str, failure: Failure) -> Iterator[str]:
    where = near_place(failure.file, failure.line)
    yield from paragraph(f"{what}: ", failure.message, f" ({where})" if where else "")
    yield from crash_lines(failure.crash) if failure.crash else ()
    if failure.lowering:
        yield f"it was raised in {lowering_words(failure.lowering, near_place)}"
    if failure.hint:
        yield from paragraph("", failure.hint)


def variance_lines(variances: tuple[Variance, ...]) -> Iterator[str]:
    """Which outputs are not the same in each run; nothing where runs were not compared."""
    unlike = [each for each in variances if not each.deterministic]
    if variances and not unlike:
        yield f"the same in all of {counted(variances[0].runs, 'run')}"
    for each in unlike:
        elements = counted(each.differing, "element")
        yield f"{each.name} is not the same in {each.runs} runs: {elements} differ, by up to {figure(each.max_abs)}"


def paragraph(head: str, message: str, tail: str = "") -> Iterator[str]:
    """A message; of one that is too long its first line and the first that has an error, and where the rest is."""
    lines = [line.rstrip() for line in message.splitlines() if line.strip()] or [""]
    shown = lines[:MESSAGE_LINES]
    if len(lines) > MESSAGE_LINES and (error := next((line for line in lines if "error:" in line), "")):
        shown = list(dict.fromkeys((lines[0], error)))
    first, *others = (first_line(line) for line in shown)
    yield f"{head}{first}{tail}"
    yield from others
    if len(shown) < len(lines):
        yield f"… and {counted(len(lines) - len(shown), 'line')} more: {WHOLE}"
    elif any(len(line) > LINE_LENGTH for line in lines):
        yield f"… cut: {WHOLE}"


def first_line(text: str) -> str:
    """The first line of the text, cut at LINE_LENGTH."""
    first = text.strip().partition("\n")[0]
    return first if len(first) <= LINE_LENGTH else f"{first[:LINE_LENGTH]}…"


# ---------------------------------------------------------------- stages


def _stages(report: DiffReport) -> Iterator[Block]:
    if not report.stages:
        return
    rows = []
    listed = stage_cells(report)
    for stage, cells in zip(report.stages, listed, strict=True):
        tone: Tone = "reject" if cells.standing in ("first_wrong", "wrong") else ""
        name = f"{STAGE_SIGNS[cells.standing]} {cells.stage}"
        bold: Tone = "reject" if cells.standing == "first_wrong" else ""
        error, added = (stage.error, stage.added) if stage.judged else (None, None)
        lost = f"no {stage.above}" if cells.standing == "first_wrong" and stage.above and stage.file else ""
        place = Place(stage.file, stage.line) if (cells.node or lost) and stage.file else ""
        rows.append(
            Row(
                key := ("stage", stage.frame, stage.stage, stage.part),
                words((name, bold)),
                (Cell(error, tone), Cell(added, tone), Cell(cells.node or lost), Cell(place)),
                rows=list(_made_by(stage, cells.made_by or cells.means, key)),
                open="all",
                refs=_stage_refs(stage),
                opens="node" if stage.node else "",
            )
        )
    wrong, unjudged = sum(cells.standing in ("first_wrong", "wrong") for cells in listed), len(report.unknown_stages)
    counts = (f", {wrong:,} wrong" if wrong else "") + (f", {unjudged:,} not judged" if unjudged else "")
    meaning = "relative RMSE of the worst output, to Dynamo's graph in float64 and to the stage before"
    whose = f" of {report.stages_of}" if report.stages_of else ""
    yield Row("stages", words((counted(len(rows), "stage") + whose + counts, "strong"), (f"   {meaning}", "dim")))
    yield Table(_STAGES, rows, "stage")


def _made_by(stage: StageError, text: str, key: object) -> Iterator[Row]:
    """What made it wrong, and what that changed in the graph."""
    if text:
        maker = stage.made_by
        refs = Refs(file=maker.file, line=maker.line) if maker is not None else NO_REFS
        yield Row((key, "maker"), words(text), refs=refs, opens="edit" if refs.file else "")
    if stage.made_by is not None and stage.made_by.diff:
        changed = Row((key, "diff", "code"), (), code=stage.made_by.diff)
        what = "module or model" if stage.stage in FOREIGN_STAGES else "graph"
        text = f"what {stage.made_by.name} changed in the {what}"
        yield Row((key, "diff"), words(text), rows=(changed,), opens="fold")
    if stage.bad and stage.node:
        above = f"{stage.above}, of {stage.above_graph}" if stage.above_graph else stage.above
        facts = ("worst output", stage.output), ("its graph", str(stage.graph or "")), ("stands for", above)
        figures = [_figure((key, label), label, fact) for label, fact in facts if fact]
        yield Row((key, "figures"), words("details"), rows=figures, opens="fold")


def _stage_refs(stage: StageError) -> Refs:
    nodes = (NodeId(stage.graph, stage.node),) if stage.graph is not None and stage.node else ()
    return Refs(nodes=nodes, file=stage.file, line=stage.line, frame=stage.frame)


# ---------------------------------------------------------------- outputs and gradients


def _pending(report: DiffReport) -> str:
    """The status of a tensor that was not judged."""
    if report.not_comparable:
        return "not comparable"
    return "waiting" if report.verdict == "waiting" and report.failure is None else "not compared"


def _tensors(noun: str, diffs: Sequence[TensorDiff], maps: Mapping[str, ErrorMap], pending: str) -> Iterator[Block]:
    """What failed first, then what was not judged. What is no tensor has a sentence of its own."""
    ordered = sorted(
        ((place, diff) for place, diff in enumerate(diffs) if diff.is_tensor),
        key=lambda each: (not each[1].failed, each[1].passed),
    )
    diffs = [diff for _, diff in ordered]
    if not diffs:
        return
    failed, unjudged = sum(diff.failed for diff in diffs), sum(not diff.judged for diff in diffs)
    counts = [f"{failed} failed"] if failed or not unjudged else []
    counts += [pending if unjudged == len(diffs) else f"{unjudged} {pending}"] if unjudged else []
    yield Row(f"{noun}s", words((f"{counted(len(diffs), noun)}, {', '.join(counts)}", "strong")))
    same = unjudged == len(diffs)  # the line above says why
    rows = [
        _tensor((noun, place), at, diff, maps.get(diff.name), "" if same else _unfolded(noun, at, diff))
        for at, (place, diff) in enumerate(ordered)
    ]
    yield Table(_TENSORS, rows, noun, names=True)


def _unfolded(noun: str, at: int, diff: TensorDiff) -> Unfolded:
    if diff.failed and at == 0 and noun == "output":
        return "all"
    return "text" if not diff.passed or diff.mismatches or remarks.tensor_note(diff) else ""


def _tensor(key: Hashable, at: int, diff: TensorDiff, error_map: ErrorMap | None, unfolded: Unfolded) -> Row:
    look = LOOKS[outcome(diff)]
    figures = map(_error, (diff.max_abs, diff.rmse, against(diff)))
    return Row(
        key,
        words((f"{VERDICT_SIGNS[look]} ", _TONES.get(look, "dim")), (diff.name, "strong"), (f"  {_kind(diff)}", "dim")),
        (*figures, Cell(decided(diff)), *map(Cell, worst_parts(diff))),
        rows=(lambda: tensor_rows(diff, error_map, key)) if at < _FIGURED else (),
        open=unfolded,
        opens="fold",
    )


def _error(value: float | None, tone: Tone = "") -> Cell:
    return Cell(inf if value is not None and value >= LARGEST else value, tone)  # JSON has carried it as a number


def _kind(diff: TensorDiff) -> str:
    return str(diff.test or diff.reference or "")


def tensor_rows(diff: TensorDiff, error_map: ErrorMap | None = None, key: Hashable = "") -> Iterator[Row]:
    """Why it passed or failed, where it is worst, how large errors are how often, and every figure."""
    for name, text in (("because", because(diff)), ("note", first_line(remarks.tensor_note(diff)))):
        if text:
            yield Row((key, name), words(text))
    if diff.failed and diff.worst is not None:
        yield _figure((key, "worst"), "worst", worst_words(diff))
    blocks = [block for block in diff.blocks if block.rmse]
    for block in blocks:
        if block.kind in diff.failed_by:
            yield _figure((key, block.kind), f"worst {block.kind}", block_words(block))
    if any(diff.histogram):
        caption = "How many elements have which |test - reference|; bars grow by the logarithm of the count"
        yield Row((key, "histogram"), (), charts=(Chart("histogram", diff, caption),))
    if error_map is not None and not error_maps.is_equal(error_map):
        yield Row((key, "map"), (), charts=(Chart("error map", error_map, error_maps.title(error_map)),))
    elif error_map is not None:
        yield Row((key, "map"), words((f"The map of its errors: {error_maps.EQUAL}", "dim")))
    figures = (*metrics(diff), *((f"worst {block.kind}", block_words(block)) for block in blocks))
    rows = [_figure((key, "figure", at), *each) for at, each in enumerate(figures)]
    yield Row((key, "figures"), words("every figure"), rows=rows, open="label", opens="fold")


def _figure(key: Hashable, label: str, text: str) -> Row:
    return Row(key, words((f"{label}: ", "dim"), text))


# ---------------------------------------------------------------- launches and training


def _launches(report: DiffReport) -> Iterator[Block]:
    if not report.kernels:
        return
    below = [*_bad(report), *_largest(report), *_unseen(report)]
    yield Row("launches", words((kernels_sentence(report), "strong")), rows=below, open="all", opens="fold")
    yield Chart("launches", report, "The error from launch to launch: the table below has the figures")
    yield launch_table(report)
    meaning = "alone: with exact inputs; so far: with what came before; inputs: the worst of what it reads"
    yield Row(
        "launches meaning",
        words((f"relative RMSE to the graph that they compute, in float64; {meaning}; -: not measured", "dim")),
    )


def launch_table(report: DiffReport) -> Table:
    """A row for each launch: its frame if there are several, its error alone and with all that came before, eager's."""
    first = 0 if any(one.isolated is not None for one in report.kernels) else 2  # none was launched alone
    frames = [_FRAME] if len({one.frame for one in report.kernels}) > 1 else []
    columns = (Column("computes", "code", 1), *frames, *_ERRORS[first:], Column("line", "place", 3))
    rows = [_launch(at, one, report, first, bool(frames)) for at, one in enumerate(report.kernels)]
    return Table(columns, rows, unit_noun(report))


def _bad(report: DiffReport) -> Iterator[Row]:
    """What is known of the first bad launch."""
    one = report.culprit
    if one is None:
        return
    what = "node (bisected)" if one.bisected else one.unit
    where = near_place(one.file, one.line)
    name = f"the first bad {what}: {launch_name(one, report.kernels)}{f' ({where})' if where else ''}"
    computes = "" if one.bisected else f"; computes {', '.join(one.nodes) or 'no known node'}"
    inputs = f"of its inputs {_measured(one.input_error)}"
    lines = [f"relative error {_measured(one.error)}, {inputs}{computes}"]
    if one.isolated is not None:
        exact = f"given exact inputs (eager's {_measured(one.isolated_eager)})"
        lines = [f"relative error {_measured(one.isolated)} by itself, {exact}{computes}"]
        lines.append(f"with what came before {_measured(one.error)}, {inputs}")
    if one.reason and not one.bisected:
        lines.append(first_line(remarks.sentence(one.reason)))
    below = [Row(("bad", at), words(line)) for at, line in enumerate(lines)]
    yield Row("bad", words((f"{VERDICT_SIGNS['wrong']} {name}", "reject")), rows=below, open="all")


def _measured(error: float | None) -> str:
    return NOT_MEASURED if error is None else figure(error)


def _largest(report: DiffReport) -> Iterator[Row]:
    """The launch that adds the most by itself, and the one at which the most has come together."""
    launches = [one for one in report.kernels if not one.bisected]
    alone = max((one for one in launches if one.isolated), key=lambda one: one.isolated or 0.0, default=None)
    so_far = max((one for one in launches if one.error), key=lambda one: one.error or 0.0, default=None)
    if alone is not None and so_far is not None:
        most = f"{figure(alone.isolated)} of {_with_node(alone, report)}"
        together = f"{figure(so_far.error)} of {_with_node(so_far, report)}"
        yield Row("largest", words(f"the largest error by itself: {most}; with what came before: {together}"))


def _with_node(one: KernelError, report: DiffReport) -> str:
    return launch_name(one, report.kernels) + (f" ({one.node})" if one.node and one.node != one.name else "")


def _unseen(report: DiffReport) -> Iterator[Row]:
    """The launches that were not observed, by the reason, the most frequent first."""
    by_reason: dict[str, list[str]] = {}
    for one in report.kernels:
        if not one.observed and not one.bisected:
            by_reason.setdefault(first_line(remarks.sentence(one.reason)) or "no reason is known", []).append(one.name)
    groups = sorted(by_reason.items(), key=lambda group: -len(group[1]))
    rows = []
    for reason, names in groups:
        different = few(dict.fromkeys(names), _NAMES)
        rows.append(Row(("unseen", reason), words(f"{len(names):,} × {different}: {reason}")))
    if rows:
        yield Row("unseen", words("not observed:"), rows=rows, open="all")


def _launch(at: int, one: KernelError, report: DiffReport, first: int, has_frame: bool) -> Row:
    culprit = at == report.first_bad_kernel
    why = remarks.sentence(one.reason)
    name, reason = launch_name(one, report.kernels), (why if one.observed else f"not observed: {why}")
    tone: Tone = "reject" if one.bad else ""
    sign = VERDICT_SIGNS["wrong" if one.bad else "clean" if one.observed else "waiting"]
    wrong_stage = faithful_to(one, report)
    if wrong_stage is not None:
        sign, reason = STAGE_SIGNS["faithful"], reason or f"faithful to {stage_name(wrong_stage, report)}"
    names = list(dict.fromkeys((*([one.node] if one.node else []), *one.nodes)))
    errors = (one.isolated, one.isolated_eager, one.error, one.input_error, one.eager_error)
    return Row(
        ("launch", at),
        words((f"{sign} ", tone), (name, "strong" if culprit else tone), (f"  {reason}" if reason else "", "dim")),
        (
            Cell(few(names, 4)),
            *([Cell(one.frame)] if has_frame else []),
            *(_error(error, tone) for error in errors[first:]),
            Cell(Place(one.file, one.line) if one.file else ""),
        ),
        refs=Refs(
            nodes=tuple(NodeId(one.graph, each) for each in names) if one.graph else (),
            kernel=(one.frame, one.part, one.name) if one.is_launch else None,
            file=one.file,
            line=one.line,
        ),
        opens="kernel" if one.is_launch else "node",
    )


def _training(steps: TrainingSteps, test: str) -> Iterator[Block]:
    look = training.LOOKS[steps.verdict]
    yield Row("training", words((f"{VERDICT_SIGNS[look]} ", _TONES.get(look, "dim")), training.sentence(steps, test)))
    shown = training.shown(steps)
    if shown:
        yield Chart("training", (steps, test), f"{shown[0].tensor}, relative RMSE to {steps.truth}, step by step")
        yield step_table(steps)


def step_table(steps: TrainingSteps) -> Table:
    """A row for each step of a training."""
    columns = tuple(Column(head, "error") for head in training.HEADS[1:])
    return Table(columns, [_step(each) for each in training.shown(steps)], "step")


def _step(row: StepDistance) -> Row:
    figures = (row.test, row.reference, row.sensitivity, row.allowed)
    sign = f" {VERDICT_SIGNS['wrong']}" if row.failed else ""
    return Row(("step", row.step), words(f"{row.step}{sign}"), tuple(map(Cell, figures)))
