"""How does a numerical comparison read to a person, and to another program?

The JSON is that of the records in `idbg.schema.diff`, by name, with every key always there and `schema` before them.
It is strict: null is what was not measured (or does not apply), and a figure that JSON has no number for is text:
"nan", "inf", "-inf". `first_bad_kernel` is an index into `kernels`; `variance` has `deterministic` too. `blame` is the
sentence that says where the numbers go wrong, and `faithful_to` the stage whose wrong graph a kernel computes rightly.
"""

from collections.abc import Iterator
from math import isfinite

import msgspec
from msgspec.structs import asdict

from idbg.format.amounts import NOT_MEASURED, counted, figure
from idbg.format.file_names import near_place
from idbg.reports import notebook, stage_table
from idbg.schema import strict_json
from idbg.schema.diff import (
    LARGEST,
    DiffReport,
    KernelError,
    TensorDiff,
    Variance,
    launch_name,
)
from idbg.views import elsewhere, steps
from idbg.views.because import because
from idbg.views.blame import blame_sentence, faithful_to, where_to_ask
from idbg.views.diff import OUTCOME_SIGNS, failure_lines, first_line, headline, nothing_lines, paragraph, variance_lines
from idbg.views.faults import birth_lines
from idbg.views.owner import owner_lines

SCHEMA = "idbg.diff/1"
FAILED_SHOWN = 20  # outputs that failed, and as many gradients: more do not fit a screen
PASSED_SHOWN = 8
REASONS_SHOWN = 6  # why kernels were not observed
NAMES_SHOWN = 3  # of kernels with the same reason

JsonValue = dict[str, "JsonValue"] | list["JsonValue"] | str | int | float | bool | None


class ReadableReport(DiffReport, frozen=True, kw_only=True):
    """A comparison as Python code gets it from `KernelDiff.compare`: the record, and how it reads."""

    @classmethod
    def of(cls, report: DiffReport) -> "ReadableReport":
        """The same figures, with `summary` and `to_json`."""
        return cls(**asdict(report))

    def summary(self) -> str:
        """The verdict for a person: what failed, by which rule, and the first bad kernel."""
        return summary(self)

    def to_json(self) -> str:
        """Strict JSON, as docs/json-schema.md has it."""
        return to_json(self)

    def _repr_html_(self) -> str:
        return notebook.of_diff(self)


def to_json(report: DiffReport, *, indent: int = 2) -> str:
    """The report as strict JSON, with every key, and with NaN and infinities as text."""
    return strict_json.formatted(as_json(report), indent=indent).decode()


def as_json(report: DiffReport) -> dict[str, JsonValue]:
    """The same as JSON's own types."""
    told: dict[str, JsonValue] = {"schema": SCHEMA, "blame": blame_sentence(report), **_json_object(report)}
    told["kernels"] = _json_kernels(report)
    if report.steps is not None:
        told["steps"] = {"said": steps.sentence(report.steps, report.test), **_json_object(report.steps)}
    return told


def _json_object(record: msgspec.Struct) -> dict[str, JsonValue]:
    plain = _plain(record)
    assert isinstance(plain, dict)
    return plain


def _json_kernels(report: DiffReport) -> list[JsonValue]:
    """The launches, each with the guilty stage whose graph it computes as it should."""
    kernels: list[JsonValue] = []
    for kernel in report.kernels:
        stage = faithful_to(kernel, report)
        kernels.append({**_json_object(kernel), "faithful_to": stage.stage if stage else None})
    return kernels


def _plain(value: object) -> JsonValue:
    """The record as JSON's own types, with no key left out."""
    if isinstance(value, msgspec.Struct):
        names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        fields = {key: _plain(getattr(value, name)) for name, key in names}
        more = {"deterministic": value.deterministic} if isinstance(value, Variance) else {}
        return fields | more | ({"because": because(value)} if isinstance(value, TensorDiff) else {})
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return value if isfinite(value) and value < LARGEST else "inf" if value == LARGEST else str(value)
    assert value is None or isinstance(value, (str, int))
    return value


def summary(report: DiffReport, to_ask: str = "") -> str:
    """The verdict, where the numbers go wrong, stage by stage, then what failed and by which rule, the first bad
    kernel, and what could not be done. `to_ask` is the option that finds out where, of a comparison that did not ask.
    """
    return "\n".join(_lines(report, to_ask))


def _lines(report: DiffReport, to_ask: str) -> Iterator[str]:
    yield headline(report)
    if blamed := blame_sentence(report) or (where_to_ask(report, to_ask) if to_ask else ""):
        yield f"  {blamed}"
    yield from stage_table.lines(report)
    for sentence in elsewhere.sentences(report.float64_elsewhere):
        yield from paragraph("  ", sentence)
    yield from failure_lines(report)
    yield from nothing_lines(report)
    for noun, diffs in (("output", report.outputs), ("gradient", report.gradients)):
        yield from _diffs(noun, diffs)
    yield from _kernels(report)
    births = list(birth_lines(report))
    yield from ("", *(f"  {line}" for line in births)) if births else ()
    yield from steps.lines(report.steps, report.test)
    yield from variance_lines(report.variance)
    for note in report.notes:
        yield from paragraph("  note: ", note)


def _diffs(noun: str, diffs: tuple[TensorDiff, ...]) -> Iterator[str]:
    if not diffs:
        return
    failed = [diff for diff in diffs if diff.failed]
    passed = [diff for diff in diffs if diff.passed]
    unjudged = [diff for diff in diffs if not diff.judged]
    yield ""
    said = [f"{len(failed)} failed"] if failed or not unjudged else []
    said += ["not compared" if len(unjudged) == len(diffs) else f"{len(unjudged)} not compared"] if unjudged else []
    yield f"  {counted(len(diffs), noun)}, {', '.join(said)}"
    groups = ((failed, FAILED_SHOWN, "failed"), (passed, PASSED_SHOWN, "passed"))
    for shown, limit, what in (*groups, (unjudged, PASSED_SHOWN, "were not compared")):
        yield from (line for diff in shown[:limit] for line in _diff(diff))
        if len(shown) > limit:
            yield f"    … and {counted(len(shown) - limit, noun)} more that {what}"


def _diff(diff: TensorDiff) -> Iterator[str]:
    by = f"   by {', '.join(diff.failed_by)}" if diff.failed_by else ""
    note = f"   {first_line(diff.note)}" if diff.note else ""
    sign = OUTCOME_SIGNS["passed" if diff.passed else "failed" if diff.judged else "waiting"]
    yield f"  {sign} {diff.name}   {_kind(diff)}{_figures(diff)}{by}{note}"
    if (why := because(diff)) and (not diff.passed or diff.mismatches or diff.note):
        yield f"      {why}"
    if diff.passed:
        return
    if diff.baseline:
        base = diff.baseline
        yield (
            f"      against float64: RMSE {figure(base.rmse)} (the reference's {figure(base.reference_rmse)}), "
            f"largest error {figure(base.max_abs)} (the reference's {figure(base.reference_max_abs)})"
        )
    if diff.worst:
        index = ", ".join(map(str, diff.worst.index))
        yield f"      worst at [{index}]: reference {_value(diff.worst.reference)}, test {_value(diff.worst.test)}"
    for block in diff.blocks:
        if block.kind in diff.failed_by:
            rows, columns = (f"{first}:{end}" for first, end in (block.rows, block.columns))
            yield f"      worst {block.kind}: [{rows}, {columns}], RMSE {figure(block.rmse)}"


def _kind(diff: TensorDiff) -> str:
    return str(diff.reference or diff.test or "")


def _figures(diff: TensorDiff) -> str:
    told = [
        f"max |d| {figure(diff.max_abs)}" if diff.max_abs is not None else "",
        f"{counted(diff.mismatches, 'mismatch')}" if diff.mismatches and not diff.passed else "",
    ]
    return "".join(f"   {each}" for each in told if each)


def _value(value: object) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _kernels(report: DiffReport) -> Iterator[str]:
    if not report.kernels:
        return
    launches = [kernel for kernel in report.kernels if not kernel.bisected]
    unseen = [kernel for kernel in launches if not kernel.observed]
    bad = report.culprit
    yield ""
    if launches:
        seen = len(launches) - len(unseen)
        yield f"  {counted(len(launches), 'kernel launch')}, {seen} observed"
    if bad:
        yield from _bad(bad, launches)
    else:
        yield f"    {_none_bad(len(launches) - len(unseen), len(unseen), [one for one in launches if one.harmless])}"
    yield from _largest(launches)
    yield from _unseen(unseen)
    for owner in report.owners:
        yield ""
        yield from (f"  {line}" for line in owner_lines(owner))


def _bad(kernel: KernelError, launches: list[KernelError]) -> Iterator[str]:
    where = near_place(kernel.file, kernel.line)
    what = "node (bisected)" if kernel.bisected else "kernel"
    name = launch_name(kernel, launches)
    yield f"  {OUTCOME_SIGNS['failed']} the first bad {what}: {name}{f' ({where})' if where else ''}"
    computes = "" if kernel.bisected else f"; computes {', '.join(kernel.nodes) or 'no known node'}"
    given = f"of its inputs {_measured(kernel.input_error)}"
    if kernel.isolated is None:
        yield f"      relative error {_measured(kernel.error)}, {given}{computes}"
    else:
        exact = f"given exact inputs (eager's {_measured(kernel.isolated_eager)})"
        yield f"      relative error {_measured(kernel.isolated)} by itself, {exact}{computes}"
        yield f"      with what came before {_measured(kernel.error)}, {given}"
    if kernel.reason and not kernel.bisected:
        yield f"      {first_line(kernel.reason)}"


def _measured(error: float | None) -> str:
    return NOT_MEASURED if error is None else figure(error)


def _largest(launches: list[KernelError]) -> Iterator[str]:
    """The launch that adds the most by itself, and the one at which the most has come together."""
    alone = max((one for one in launches if one.isolated), key=lambda one: one.isolated or 0.0, default=None)
    so_far = max((one for one in launches if one.error), key=lambda one: one.error or 0.0, default=None)
    if alone is not None and so_far is not None:
        most = f"{figure(alone.isolated)} of {launch_name(alone, launches)}{_of_node(alone)}"
        together = f"{figure(so_far.error)} of {launch_name(so_far, launches)}{_of_node(so_far)}"
        yield f"    the largest error by itself: {most}; with what came before: {together}"


def _of_node(kernel: KernelError) -> str:
    return f" ({kernel.node})" if kernel.node and kernel.node != kernel.name else ""


def _none_bad(seen: int, unseen: int, harmless: list[KernelError]) -> str:
    if not seen:
        return "none of them was observed: whether one is wrong is not known"
    if harmless:
        names = ", ".join(dict.fromkeys(kernel.name for kernel in harmless[:NAMES_SHOWN]))
        more = f", +{len(harmless) - NAMES_SHOWN}" if len(harmless) > NAMES_SHOWN else ""
        return f"worse than what was given to it, and none accused, as the outputs agree all the same: {names}{more}"
    if not unseen:
        return "none is worse than what it was given"
    those = f"none of the {seen:,} observed kernels is" if seen > 1 else "the one observed kernel is not"
    return f"{those} worse than what it was given; {unseen:,} {'was' if unseen == 1 else 'were'} not observed"


def _unseen(kernels: list[KernelError]) -> Iterator[str]:
    """The kernels that were not observed, by the reason, the most frequent first."""
    by_reason: dict[str, list[str]] = {}
    for kernel in kernels:
        by_reason.setdefault(first_line(kernel.reason) or "no reason is known", []).append(kernel.name)
    groups = sorted(by_reason.items(), key=lambda group: -len(group[1]))
    if groups:
        yield "    not observed:"
    for reason, launched in groups[:REASONS_SHOWN]:
        names = list(dict.fromkeys(launched))
        more = f", +{len(names) - NAMES_SHOWN}" if len(names) > NAMES_SHOWN else ""
        yield f"      {len(launched):,} × {', '.join(names[:NAMES_SHOWN])}{more}: {reason}"
    if rest := sum(len(launched) for _, launched in groups[REASONS_SHOWN:]):
        yield f"      … and {rest:,} more, for other reasons: --json has them"
