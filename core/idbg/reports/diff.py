"""How does a numerical comparison read to a person, and to another program?

The JSON is that of the records in `idbg.diff`, by name, with every key always there and `schema` before them.
It is strict: null is what was not measured (or does not apply), and a figure that JSON has no number for is text:
"nan", "inf", "-inf". `first_bad_kernel` is an index into `kernels`; `variance` has `deterministic` too.
"""

from collections.abc import Iterator
from math import isfinite

import msgspec

from idbg.diff import LARGEST, DiffReport, KernelError, Mode, Outcome, SideResult, TensorDiff, Variance
from idbg.reports.words import count, place

SCHEMA = "idbg.diff/1"
SIGNS: dict[Outcome, str] = {"passed": "✔", "failed": "✘", "error": "✘"}
FAILED_SHOWN = 20  # outputs that failed, and as many gradients: more do not fit a screen
PASSED_SHOWN = 8

Plain = dict[str, "Plain"] | list["Plain"] | str | int | float | bool | None


def to_json(report: DiffReport, *, indent: int = 2) -> str:
    """Strict JSON: no bare NaN."""
    plain = _plain(report)
    assert isinstance(plain, dict)
    return msgspec.json.format(msgspec.json.encode({"schema": SCHEMA, **plain}), indent=indent).decode()


def _plain(value: object) -> Plain:
    """The record as JSON's own types, with no key left out."""
    if isinstance(value, msgspec.Struct):
        found = {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
        return found | {"deterministic": value.deterministic} if isinstance(value, Variance) else found
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return value if isfinite(value) and value < LARGEST else "inf" if value == LARGEST else str(value)
    assert value is None or isinstance(value, (str, int))
    return value


def summary(report: DiffReport) -> str:
    """The verdict, then what failed and by which rule, the first bad kernel, and what could not be done."""
    return "\n".join(_lines(report))


def _lines(report: DiffReport) -> Iterator[str]:
    verdict = f"{SIGNS[report.verdict]} {_verdict(report)}   {report.test} against {report.reference}   {_rule(report)}"
    yield verdict.rstrip()
    yield from (f"  {line}" for side in report.sides for line in _failure(side))
    for noun, diffs in (("output", report.outputs), ("gradient", report.gradients)):
        yield from _diffs(noun, diffs)
    yield from _kernels(report)
    yield from _variance(report.variance)
    yield from (f"  note: {note}" for note in report.notes)


def _verdict(report: DiffReport) -> str:
    if report.verdict == "error":
        return "not compared" if any(side.failure for side in report.sides) else "not finished"
    failed = [diff for diff in (*report.outputs, *report.gradients) if not diff.passed]
    return f"{count(len(failed), 'tensor')} failed" if failed else report.verdict


def _rule(report: DiffReport) -> str:
    if report.verdict == "error":
        return ""
    rules: dict[Mode, str] = {"float64": "held against float64", "tolerance": "by tolerance"}
    return rules[report.mode] + (f" (float64: {report.float64})" if report.float64 else "")


def _failure(side: SideResult) -> Iterator[str]:
    if side.failure is None:
        return
    where = place(side.failure.file, side.failure.line)
    yield f"{side.name} failed: {side.failure.message}{f' ({where})' if where else ''}"
    if side.failure.hint:
        yield f"  {side.failure.hint}"


def _diffs(noun: str, diffs: tuple[TensorDiff, ...]) -> Iterator[str]:
    if not diffs:
        return
    failed = [diff for diff in diffs if not diff.passed]
    passed = [diff for diff in diffs if diff.passed]
    yield ""
    yield f"  {count(len(diffs), noun)}, {len(failed)} failed"
    for shown, limit in ((failed, FAILED_SHOWN), (passed, PASSED_SHOWN)):
        yield from (line for diff in shown[:limit] for line in _diff(diff))
        if len(shown) > limit:
            yield f"    … and {count(len(shown) - limit, noun)} more that {'failed' if shown is failed else 'passed'}"


def _diff(diff: TensorDiff) -> Iterator[str]:
    by = f"   by {', '.join(diff.failed_by)}" if diff.failed_by else ""
    sign = SIGNS["passed" if diff.passed else "failed"]
    yield f"  {sign} {diff.name}   {_kind(diff)}{_figures(diff)}{by}{f'   {diff.note}' if diff.note else ''}"
    if diff.passed:
        return
    if diff.baseline:
        base = diff.baseline
        yield (
            f"      against float64: RMSE {base.rmse:.3g} (the reference's {base.eager_rmse:.3g}), "
            f"largest error {base.max_abs:.3g} (the reference's {base.eager_max_abs:.3g})"
        )
    if diff.worst:
        index = ", ".join(map(str, diff.worst.index))
        yield f"      worst at [{index}]: reference {_value(diff.worst.reference)}, test {_value(diff.worst.test)}"
    for block in diff.blocks:
        if block.kind in diff.failed_by:
            rows, columns = (f"{first}:{end}" for first, end in (block.rows, block.columns))
            yield f"      worst {block.kind}: [{rows}, {columns}], RMSE {block.rmse:.3g}"


def _kind(diff: TensorDiff) -> str:
    return str(diff.reference or diff.test or "")


def _figures(diff: TensorDiff) -> str:
    told = [
        f"max |d| {diff.max_abs:.3g}" if diff.max_abs is not None else "",
        f"{count(diff.mismatches, 'mismatch', 'mismatches')}" if diff.mismatches and not diff.passed else "",
    ]
    return "".join(f"   {each}" for each in told if each)


def _value(value: object) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _kernels(report: DiffReport) -> Iterator[str]:
    if not report.kernels:
        return
    seen = sum(kernel.observed for kernel in report.kernels)
    yield ""
    yield f"  {count(len(report.kernels), 'kernel launch', 'kernel launches')}, {seen} observed"
    if report.first_bad_kernel is None:
        yield "    none is worse than what it was given"
        return
    yield from _bad(report.kernels[report.first_bad_kernel])


def _bad(kernel: KernelError) -> Iterator[str]:
    where = place(kernel.file, kernel.line)
    yield f"  {SIGNS['failed']} the first bad kernel: {kernel.name}{f' ({where})' if where else ''}"
    error = "not measured" if kernel.error is None else f"{kernel.error:.3g}"
    given = "not measured" if kernel.input_error is None else f"{kernel.input_error:.3g}"
    yield f"      relative error {error}, of its inputs {given}; computes {', '.join(kernel.nodes) or 'no known node'}"


def _variance(found: tuple[Variance, ...]) -> Iterator[str]:
    if not found:
        return
    yield ""
    unlike = [each for each in found if not each.deterministic]
    if not unlike:
        yield f"  the same in all of {count(found[0].runs, 'run')}"
    for each in unlike:
        elements = count(each.differing, "element")
        yield f"  {each.name} is not the same in {each.runs} runs: {elements} differ, by up to {each.max_abs:.3g}"
