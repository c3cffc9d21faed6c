"""Show the edited versions of kernels: whether their numbers agree, their times beside the original's, and the diff."""

from collections.abc import Hashable, Iterator, Sequence
from difflib import unified_diff
from functools import partial
from typing import cast

import msgspec

from idbg.format.amounts import counted, duration, elapsed, figure, share
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.schema.code import Kernel
from idbg.schema.diff import TensorDiff
from idbg.schema.events import KernelEditing
from idbg.schema.graphs import Part
from idbg.schema.kernel_edits import ORIGINAL, EditVerdict, KernelEdit, TimeChange
from idbg.schema.programs import Verdict as RunVerdict
from idbg.schema.runs import Run
from idbg.schema.written import Written, keys_of, written
from idbg.views.kernel_times import TRUSTED
from idbg.views.tensors import worst_words
from idbg.views.tree import VERDICT_TONES, Cell, Column, Refs, Row, Section, Table, Tone, Verdict, Words, words

TITLE = "Edited kernels"
SCHEMA = "idbg.kernel-edit/1"
_COLUMNS = (
    Column("numbers", "text", 5),
    Column("max |d|", "error", 4),
    Column("to float64", "error", 3),
    Column("kernel", "seconds", 4),
    Column("original's", "seconds", 2),
    Column("speed", "text", 5),
    Column("call", "seconds", 1),
)
_NUMBERS: dict[EditVerdict, str] = {"agrees": "agree", "wrong": "wrong", "failed": "failed"}
VERDICTS: dict[EditVerdict, RunVerdict] = {
    "agrees": "clean",
    "wrong": "wrong",
    "failed": "failed",
    "not compared": "waiting",
}
"""Whose sign and colour a version has."""
_OUTPUTS = 3  # that are wrong, named
_LEAST_P = 1e-6


@keys_of(TimeChange, "original_us edited_us ratio p direction runs")
class TimeReport(Written, frozen=True):
    """Medians in microseconds, the edited one over the original one, and what that says of these samples."""

    original_us: float
    edited_us: float
    runs: int


@keys_of(
    KernelEdit,
    "frame part name version verdict words diff text max_abs error original_error kernel_time call_time build_s "
    "seconds failure line",
)
class VersionReport(Written, frozen=True):
    """One version of a kernel's source. `max_abs`: by how much the program's outputs differ from the original kernel's.
    `error` and `original_error`: the relative error of the kernel's worst launch against float64, for what the launch
    was given. `kernel_time` is of the kernel's launches in one call, `call_time` of whole calls. `line` of `text` is
    where a failed build has its error (0: in no line). `diff` is unified.
    """

    words: str
    diff: str
    max_abs: float | None
    error: float | None
    original_error: float | None
    kernel_time: TimeReport | None
    call_time: TimeReport | None


def reports(run: Run, only: tuple[str, Part, str] | None = None) -> list[VersionReport]:
    """The versions of the run's kernels, or of one of them, oldest first."""
    return [report(edit, _kernel(run, edit)) for edit in run.edits if only in (None, edit.kernel)]


def report(edit: KernelEdit, kernel: Kernel | None) -> VersionReport:
    """One version, with its diff from the kernel of the run."""
    times = edit.times
    return written(
        VersionReport,
        edit,
        words="; ".join(sentences(edit)),
        diff=diff_of(edit, kernel),
        max_abs=max_abs(edit),
        error=edit.edited.isolated if edit.edited else None,
        original_error=edit.original.isolated if edit.original else None,
        kernel_time=_time(times.kernel) if times else None,
        call_time=_time(times.call) if times else None,
    )


class EditReport(msgspec.Struct, frozen=True, kw_only=True):
    """The version of a kernel that was made from a file."""

    schema: str = SCHEMA
    run: int
    file: str
    version: VersionReport


def edit_report(run: Run, edit: KernelEdit, file: str) -> EditReport:
    """What came of the file."""
    return EditReport(run=run.number, file=file, version=report(edit, _kernel(run, edit)))


def edit_lines(edit: KernelEdit, file: str) -> Iterator[str]:
    """The same as text; an error of the build at its line of the file."""
    if edit.line in range(1, len(edit.text.splitlines()) + 1) and edit.failure is not None:
        what = edit.failure.message.partition(f"line {edit.line}: ")[2] or edit.failure.message
        yield f"{file}:{edit.line}: {what}"
        yield f"  {edit.text.splitlines()[edit.line - 1].strip()}"
    first, *rest = sentences(edit)
    yield f"{VERDICT_SIGNS[VERDICTS[edit.verdict]]} version {edit.version} of {edit.name}: {first}"
    yield from (f"  {sentence}" for sentence in rest)
    if edit.failure is not None and edit.failure.hint:
        yield f"  {edit.failure.hint}"


def _kernel(run: Run, edit: KernelEdit) -> Kernel | None:
    return next((kernel for kernel in run.kernels if kernel.key == edit.kernel), None)


def _time(change: TimeChange) -> TimeReport:
    return written(
        TimeReport,
        change,
        original_us=1e3 * change.original.median,
        edited_us=1e3 * change.edited.median,
        runs=len(change.edited.samples),
    )


def view(
    run: Run,
    only: tuple[str, Part, str] | None = None,
    editing: KernelEditing | None = None,
    *,
    named: bool = False,
) -> Section:
    """A table a kernel that was edited (or `only` this one): the original and its versions, the diff of each below it.
    `editing` is what is tried now; `named`: the summary says of which run.
    """
    edits = [edit for edit in run.edits if only in (None, edit.kernel)]
    keys = list(dict.fromkeys([*(edit.kernel for edit in edits), *([_key(editing)] if editing else [])]))
    kernels = {kernel.key: kernel for kernel in run.kernels}
    body = tuple(
        Table(_COLUMNS, list(_rows(run, key, kernels.get(key), editing)), "version", title=key[2], least=12)
        for key in keys
    )
    bad = sum(edit.verdict in ("wrong", "failed") for edit in edits)
    verdict: Verdict = "warning" if bad else "ok"
    what = counted(len(edits), "version") if edits else "no version"
    of = f" of {only[2]}" if only else f" of {counted(len(keys), 'kernel')}" if keys else " of a kernel"
    of += f" of run {run.number}" if named else ""
    return Section(TITLE, f"{what}{of} tried in place of the original", len(edits), verdict, body)


def _rows(run: Run, key: tuple[str, Part, str], kernel: Kernel | None, editing: KernelEditing | None) -> Iterator[Row]:
    edits = run.edits_of(*key)
    judged = next((edit.original for edit in reversed(edits) if edit.original), None)
    cells = (
        Cell(""),
        Cell(None),
        Cell(judged.isolated if judged else None),
        Cell(None),
        Cell(None),
        Cell(""),
        Cell(None),
    )
    yield Row(
        ("version", run.number, *key, 0), words((ORIGINAL, "strong")), cells, refs=Refs(kernel=key), opens="kernel"
    )
    for edit in edits:
        yield _row(run, edit, kernel)
    if editing is not None and _key(editing) == key:
        step = f"{MARKS['ellipsis']} {editing.step or 'waiting'}"
        yield Row(
            ("version", run.number, *key, editing.version), words((f"version {editing.version}", "slow"), f"  {step}")
        )


def _row(run: Run, edit: KernelEdit, kernel: Kernel | None) -> Row:
    times = edit.times
    tones: dict[str, Tone] = {"faster": "clean", "slower": "fallback"}
    cells = (
        Cell(_NUMBERS.get(edit.verdict, "not compared"), VERDICT_TONES[VERDICTS[edit.verdict]]),
        Cell(max_abs(edit)),
        Cell(edit.edited.isolated if edit.edited else None),
        Cell(times.kernel.edited.median / 1e3 if times else None),
        Cell(times.kernel.original.median / 1e3 if times else None),
        Cell(_direction(times.kernel) or "=", tones.get(times.kernel.direction, "dim")) if times else Cell(""),
        Cell(times.call.edited.median / 1e3 if times else None),
    )
    return Row(
        ("version", run.number, *edit.kernel, edit.version),
        words(
            (f"{VERDICT_SIGNS[VERDICTS[edit.verdict]]} ", VERDICT_TONES[VERDICTS[edit.verdict]]),
            (f"version {edit.version}", "strong"),
        ),
        cells,
        rows=partial(_below, run, edit, kernel),
        open="text",
        refs=Refs(kernel=edit.kernel),
        opens="kernel",
    )


def _below(run: Run, edit: KernelEdit, kernel: Kernel | None) -> Iterator[Row]:
    """What came of a version, and its diff."""
    key = ("of version", run.number, *edit.kernel, edit.version)
    yield from (Row((*key, at), line) for at, line in enumerate(_lines(edit)))
    if changed := diff_of(edit, kernel):
        yield Row((*key, "diff"), words(("changed", "dim")), code=changed)


def _lines(edit: KernelEdit) -> Iterator[Words]:
    tone = VERDICT_TONES[VERDICTS[edit.verdict]] if edit.verdict in ("wrong", "failed") else ""
    for at, sentence in enumerate(sentences(edit)):
        yield words((sentence, tone if at == 0 else ""))
    if edit.failure is not None and edit.failure.hint:
        yield words((edit.failure.hint, "dim"))


def sentences(edit: KernelEdit) -> Iterator[str]:
    """What came of a version: why it failed, or its numbers, and its times."""
    if edit.failure is not None:
        yield edit.failure.first_line
        return
    yield from _numbers(edit)
    if edit.times is not None:
        yield f"kernel: {change_words(edit.times.kernel)}"
        call = "forward" if edit.times.kind == "forward" else "training step"
        yield f"{call}: {change_words(edit.times.call)}"
        if (others := edit.times.others) and others > TRUSTED:
            yield f"⚠ other processes used {share(others)} of the processors meanwhile"
    elif edit.report is not None:
        yield "it was not timed: the call that is timed does not launch it"
    built = f"built in {elapsed(edit.build_s)}, " if edit.build_s is not None else ""
    yield f"{built}{elapsed(edit.seconds)} in all"


def brief(edit: KernelEdit) -> str:
    """ "numbers agree · 1.2 times faster", or why it failed."""
    if edit.failure is not None:
        return edit.failure.first_line
    numbers = {"agrees": "numbers agree", "wrong": "numbers are wrong"}.get(edit.verdict, "numbers not compared")
    speed = (_direction(edit.times.kernel) or "time: no difference beyond the noise") if edit.times is not None else ""
    return f" {MARKS['separator']} ".join(filter(None, (numbers, speed)))


def version_of(row: tuple[Hashable, ...]) -> tuple[int, tuple[str, Part, str], int]:
    """The run, kernel and version of a row, by the row's key."""
    _, run, frame, part, name, version = cast("tuple[str, int, str, Part, str, int]", row)
    return run, (frame, part, name), version


def _numbers(edit: KernelEdit) -> Iterator[str]:
    wrong = [diff for diff in _tensors(edit) if diff.failed]
    most = max_abs(edit)
    if wrong:
        named = ", ".join(f"{diff.name} ({worst_words(diff)})" for diff in wrong[:_OUTPUTS])
        more = f" and {len(wrong) - _OUTPUTS:,} more" if len(wrong) > _OUTPUTS else ""
        yield f"the program's outputs are wrong: {named}{more}"
    elif edit.report is None or edit.report.verdict != "passed":
        yield "the program's outputs could not be compared"
    elif most == 0:
        yield "the program's outputs are equal to the original's"
    else:
        how = "within the tolerance" if edit.report.mode == "tolerance" else "within the rounding error"
        yield f"the program's outputs agree, {how}: at most {figure(most)} from the original's"
    if edit.edited is not None and edit.edited.isolated is not None:
        before = f", the original's {figure(edit.original.isolated)}" if edit.original else ""
        bad = " (wrong)" if edit.edited.bad else ""
        yield f"the kernel's own error against float64 is {figure(edit.edited.isolated)}{bad}{before}"
    if edit.edited is not None and edit.original is not None and edit.edited.bad and edit.original.bad:
        yield "the original is wrong too"


def max_abs(edit: KernelEdit) -> float | None:
    """How far the program's outputs and gradients are from those with the original kernel; None if not compared."""
    known = [diff.max_abs for diff in _tensors(edit) if diff.max_abs is not None]
    return max(known, default=None)


def _tensors(edit: KernelEdit) -> Sequence[TensorDiff]:
    return (*edit.report.outputs, *edit.report.gradients) if edit.report is not None else ()


def change_words(change: TimeChange) -> str:
    """ "1.5 times faster: 1.2 ms to 0.8 ms (p < 1e-06)"."""
    was, now = duration(change.original.median), duration(change.edited.median)
    p = f"p {change.p:.2g}" if change.p >= _LEAST_P else f"p < {_LEAST_P:g}"
    return f"{_direction(change) or 'no difference beyond the noise'}: {was} {MARKS['arrow']} {now} ({p})"


def _direction(change: TimeChange) -> str:
    """ "1.5 times faster"; "" where there is no difference beyond the noise."""
    if change.direction == "same":
        return ""
    times = 1 / change.ratio if change.direction == "faster" and change.ratio else change.ratio
    return f"{times:.3g} times {change.direction}"


def diff_of(edit: KernelEdit, kernel: Kernel | None) -> str:
    """The unified diff of the kernel's source and this version of it; "" where the source is not known any more."""
    if kernel is None:
        return ""
    before, after = kernel.source.splitlines(), edit.text.splitlines()
    return "\n".join(unified_diff(before, after, ORIGINAL, f"version {edit.version}", lineterm="", n=2))


def _key(editing: KernelEditing) -> tuple[str, Part, str]:
    return editing.frame, editing.part, editing.name
