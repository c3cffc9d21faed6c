"""Compare two tensors, and judge the difference.

`compare_tensors` judges by tolerance; `compare_sides` by float64: the test may be as wrong as eager. Both read the data
once: by the compiled kernel if it is ready, by a Triton kernel on CUDA devices, else by torch in chunks.
"""

import importlib
from functools import cache, lru_cache
from math import inf, isfinite, sqrt
from types import ModuleType
from typing import Any

import msgspec
import torch
from msgspec.structs import replace
from torch import Tensor

from idbg.engine.kerneldiff.tensors import figures as at
from idbg.engine.kerneldiff.tensors import native, nonfinite, sums
from idbg.engine.kerneldiff.tensors.allowance import SMALL, ZEROS, Allowance
from idbg.engine.kerneldiff.tensors.figures import Figures, Grid, Rule, grid_of
from idbg.engine.kerneldiff.tensors.nonfinite import NonfiniteCounts
from idbg.engine.kerneldiff.tensors.pair import Pair, dense, pair, unreadable
from idbg.engine.kerneldiff.tensors.pieces import Matrix, Piece, is_exact, pieces
from idbg.engine.kerneldiff.tensors.verdict import SidesVerdict, judge_sides, worst_blocks
from idbg.schema.diff import Block, Criterion, FailedBy, K, TensorDiff, Term, Value, Worst
from idbg.schema.errors import BadInput
from idbg.schema.remarks import Remark

# torch.testing's: dtype -> (rtol, atol); what is not here is compared exactly
TOLERANCES: dict[torch.dtype, tuple[float, float]] = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex32: (1e-3, 1e-5),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}
FEW = 1 << 18
"""A GPU's tensors of fewer elements are copied to memory: a Triton kernel for each of their shapes takes a second to
compile.
"""
_EXACT = (0.0, 0.0)
_SQUARES_LEAVE = (torch.float64, torch.complex128)


Sides = tuple[Matrix, Matrix, Matrix | None]


class TensorPass(msgspec.Struct, frozen=True):
    """The figures of one pass over two or three sides, and their nonfinite elements."""

    sides: Sides
    figures: Figures
    nonfinite: NonfiniteCounts

    def __getitem__(self, place: int) -> float:
        return self.figures.header[place]

    def size(self, block: Block) -> float:
        """The RMS of float64 over a block, where it and the test are finite."""
        grid = grid_of(block.rows[1] - block.rows[0], block.columns[1] - block.columns[0])
        test, exact = (_cut(side, block, grid) for side in self.sides[1:] if side is not None)
        squares, count = 0.0, 0
        for piece in pieces(grid):
            values = exact.at(piece)
            finite = values.isfinite() & test.at(piece).to(values.dtype).isfinite()
            squares += float(values.where(finite, 0).abs().square_().sum())
            count += int(finite.sum())
        return sqrt(squares / max(count, 1))


def _cut(side: Matrix, block: Block, grid: Grid) -> Matrix:
    """A block of a side, as a matrix; copied only if its rows have no single stride."""
    (top, bottom), (left, right) = block.rows, block.columns
    if side.view is None:
        block_values = side.at(Piece(top, bottom - top, left, right - left))
    else:
        block_values = side.view[top:bottom, left:right]
    return Matrix(block_values, grid, side.dtype, side.device)


def compare_tensors(
    reference: Tensor,
    test: Tensor,
    *,
    atol: float | None = None,
    rtol: float | None = None,
    equal_nan: bool = True,
    allowed_mismatch_percent: float = 0.0,
    full: bool = True,
    name: str = "",
) -> TensorDiff:
    """Passes if shapes and dtypes are equal and |test - reference| > atol + rtol * |reference| in no more than
    `allowed_mismatch_percent` of the places.

    Tolerances not given are torch.testing's for the dtypes (0 for integers). NaN on one side and infinities on one side
    are mismatches; NaN on both is one without `equal_nan`. Without `full` only the figures of the verdict are measured.
    Nothing is raised for tensors that cannot be compared: the result says so. Raises BadInput for what is no tensor,
    tolerance or percentage.
    """
    if not (isinstance(reference, Tensor) and isinstance(test, Tensor)):
        other = test if isinstance(reference, Tensor) else reference
        hint = "compare tensors one by one; KernelDiff compares what models return"
        raise BadInput(f"a {type(other).__name__} is not a tensor", hint=hint)
    if not 0 <= allowed_mismatch_percent <= 100:
        hint = "it is a percentage, from 0 to 100"
        raise BadInput(f"allowed_mismatch_percent is {allowed_mismatch_percent}", hint=hint)
    two = pair(reference, test)
    rule = _rule(two.reference.dtype, two.test.dtype, atol, rtol)
    if not two.readable or two.test.numel() == 0:
        return replace(two.unread(name), atol=rule.atol, rtol=rule.rtol)
    done = _pass(two, None, rule, full, equal_nan)
    beyond = _beyond(two, done, rule, two.test.numel() * allowed_mismatch_percent / 100)
    failed = two.failed_by
    if beyond.exceeded:
        failed += _odd(done) + ((beyond.by,) if done[at.MISMATCHES] else ())
    return _described(two, done, rule, failed, name, (beyond,))


def compare_sides(
    eager: Tensor,
    test: Tensor,
    float64: Tensor,
    *,
    k: float = K,
    full: bool = True,
    name: str = "",
    gradient: bool = False,
    samples: int = 1,
) -> TensorDiff:
    """Fails if the test is worse than eager by more than allowance.py allows, both compared with `float64`.

    NaN and infinities fail where the test equals neither eager nor float64. Integers must equal eager's, but for `k`
    times as many as eager itself has wrong. Tensors in float64 are judged by tolerance, as float64 is no more exact
    than eager. So are those of which eager itself is far from float64, except for a `gradient`, which may be noise, and
    if `eager` is the worst of several `samples`, which measure the noise. `baseline` and `blocks` are against float64,
    all else is against eager.
    """
    two = pair(eager, test)
    if float64.shape != test.shape or unreadable(float64):
        by_tolerance = compare_tensors(eager, test, full=full, name=name)
        return replace(by_tolerance, note=Remark("no such float64"))
    rule = _rule(two.reference.dtype, two.test.dtype, None, None)
    if not two.readable or two.test.numel() == 0:
        return replace(two.unread(name), atol=rule.atol, rtol=rule.rtol)
    third = dense(float64).to(two.test.device)  # which may wait in host memory
    done = _pass(two, third, rule, full, equal_nan=True)
    odd, allowance = done.nonfinite, Allowance.of(two.dtype, k, gradient, samples)
    judged = judge_sides(done.figures, allowance, odd.finite_float64, odd.left_out, done.size)
    failed, criteria = two.failed_by + _odd(done), judged.criteria
    if is_exact(two.dtype):
        criteria = (_judged_exact(two, third, k),)
        failed += tuple(each.by for each in criteria if each.exceeded)
    elif why_not := judged.far or _no_judge(two.dtype):
        plain = compare_tensors(eager, test, full=False)
        by_eager = (*plain.criteria, *_as_eager(two, plain, judged.far))
        criteria = (*by_eager, *(replace(each, why_not=why_not) for each in criteria))
        failed += plain.failed_by + tuple(each.by for each in by_eager[1:] if each.exceeded)
    else:
        failed += judged.failed_by
        if full:
            criteria += (replace(_beyond(two, done, rule), why_not=Remark("float64 decides")),)
    diff = _described(two, done, rule, tuple(dict.fromkeys(failed)), name, criteria, judged)
    if is_exact(two.dtype) or (judged.far is None and judged.zero is None):
        return diff
    return with_note(without_relative(diff) if judged.zero else diff, judged.far or judged.zero)


def without_relative(diff: TensorDiff) -> TensorDiff:
    """The diff of values that are zero but for rounding: what is relative to these says nothing."""
    return replace(diff, relative_rmse=None, max_rel=None, mean_rel=None, cosine=None, max_ulp=None)


def with_note(diff: TensorDiff, note: Remark | str | None) -> TensorDiff:
    """The diff with one more note."""
    notes = tuple(each for each in (*(diff.note if isinstance(diff.note, tuple) else (diff.note,)), note) if each)
    return replace(diff, note=notes if len(notes) > 1 else notes[0] if notes else "")


class TensorDistance(msgspec.Struct, frozen=True):
    """The distance of two tensors: the RMSE of the elements finite in both, and the RMS of the reference there.
    `differing` elements are nonfinite on one side only (-1: not comparable, or shapes differ).
    """

    rmse: float
    size: float
    differing: int = 0

    @property
    def relative(self) -> float:
        """RMSE over RMS: 0.0 for equal tensors, inf where they are not finite at the same places."""
        if self.differing or (self.rmse and not self.size):
            return inf
        return self.rmse / self.size if self.rmse else 0.0


def tensor_distance(reference: Tensor, test: Tensor) -> TensorDistance:
    """The distance of the two; `reference` may be in float64 and on another device."""
    two = pair(reference, test)
    if not two.readable:
        return TensorDistance(inf, 0.0, -1)
    if two.test.numel() == 0:
        return TensorDistance(0.0, 0.0)
    done = _pass(two, None, Rule(inf, 0.0), full=False, equal_nan=True)
    scales, count = done.figures.scales, done.nonfinite.finite or 1
    rmse, size = sqrt(done[at.SUM_SQUARES] / count), sqrt(done[at.REFERENCE_SQUARES] / count)
    return TensorDistance(rmse / scales.error, size / scales.reference, done.nonfinite.differing)


def relative_rmse(reference: Tensor, test: Tensor) -> float:
    """RMSE of the elements finite on both sides over the RMS of the reference there: 0.0 for equal tensors, inf where
    NaN or infinities are not at the same places, or shapes differ. `reference` may be float64 and `test` not.
    """
    return tensor_distance(reference, test).relative


def _no_judge(dtype: torch.dtype) -> Remark | None:
    return Remark("no more exact") if dtype.itemsize >= (16 if dtype.is_complex else 8) else None


def _as_eager(two: Pair, plain: TensorDiff, far: Remark | None) -> tuple[Criterion, ...]:
    """If eager decides and not float64: a tolerance of 1e-5 does not catch lost values below it."""
    if not far or not plain.rmse or not (relative := relative_rmse(two.reference, two.test)):
        return ()
    size = plain.rmse / relative
    allowed = ZEROS * (1 + SMALL / two.grid.elements) ** 2
    return (Criterion("rmse", plain.rmse, allowed * size, (Term("values", allowed * size, allowed),)),)


def _beyond(two: Pair, done: TensorPass, rule: Rule, allowed: float = 0.0) -> Criterion:
    """The number of elements beyond the tolerances, or nonfinite on one side only."""
    how: FailedBy = "exact" if is_exact(two.dtype) and (rule.atol, rule.rtol) == _EXACT else "tolerance"
    return Criterion(how, done[at.MISMATCHES] + done.nonfinite.differing, allowed)


def _judged_exact(two: Pair, float64: Tensor, k: float) -> Criterion:
    """Of integers: the test may differ from eager in `k` times as many places as eager does from float64."""
    wrong = _pass(two, None, Rule(*_EXACT), False, True)[at.MISMATCHES]
    if not wrong:
        return Criterion("exact", 0.0, 0.0)
    own = _pass(pair(float64, two.reference), None, Rule(*_EXACT), False, True)[at.MISMATCHES]
    return Criterion("exact", wrong, k * own, (Term("eager", k * own, k),))


@lru_cache(maxsize=64)
def _rule(one: torch.dtype, other: torch.dtype, atol: float | None, rtol: float | None) -> Rule:
    """The loosest of the two dtypes' tolerances where none are given."""
    of = TOLERANCES.get(one, _EXACT), TOLERANCES.get(other, _EXACT)
    return Rule(
        max(default[1] for default in of) if atol is None else tolerance("atol", atol),
        max(default[0] for default in of) if rtol is None else tolerance("rtol", rtol),
    )


def tolerance(name: str, value: float) -> float:
    """The value, if it is a valid tolerance, else raises BadInput: a NaN would pass everything."""
    if not value >= 0:
        raise BadInput(f"{name} is {value}", hint="a tolerance is 0 or more, or infinite")
    return value


def _pass(two: Pair, float64: Tensor | None, rule: Rule, full: bool, equal_nan: bool) -> TensorPass:
    grid, device, dtype = two.grid, two.test.device, two.dtype
    third = None
    if float64 is not None:
        third = Matrix(float64, grid, torch.complex128 if dtype.is_complex else torch.float64, device)
    sides = Matrix(two.reference, grid, dtype, device), Matrix(two.test, grid, dtype, device), third
    figures = _figures(two, rule, sides, full)
    if dtype in _SQUARES_LEAVE and figures.is_beyond:
        figures = sums.rescaled(figures, rule, sides)
    met = figures.header[at.NONFINITE] > 0
    return TensorPass(
        sides,
        figures,
        nonfinite.find(grid, sides, equal_nan, rule) if met else NonfiniteCounts(grid.elements, grid.elements),
    )


def _figures(two: Pair, rule: Rule, sides: Sides, full: bool) -> Figures:
    """Measure by the fastest of the three implementations that can read them."""
    few = two.test.is_cuda and two.grid.elements < FEW
    if (two.test.is_cpu or few) and two.dtype in native.KINDS and (kernel := native.ready()) is not None:
        reference, test, exact = sides
        here = reference.on_cpu(), test.on_cpu(), None if exact is None else exact.on_cpu()
        return native.measure(kernel, two.grid, rule, here, full=full)
    if two.test.is_cuda and (cuda := _cuda()) is not None and cuda.can_read(sides):
        figures: Figures = cuda.measure(two.grid, rule, sides, full=full)
        return figures
    return sums.measure(two.grid, rule, sides, full=full)


@cache
def _cuda() -> ModuleType | None:
    """The Triton kernel, imported when the first CUDA tensor comes; None where there is no Triton."""
    try:
        return importlib.import_module("idbg.engine.kerneldiff.tensors.cuda")
    except ImportError:
        return None


def _odd(done: TensorPass) -> tuple[FailedBy, ...]:
    """Whether the test fails by NaN, by infinities, or both."""
    nan: tuple[FailedBy, ...] = ("nan",) if done.nonfinite.nans else ()
    return (*nan, "inf") if done.nonfinite.infs else nan


def _described(
    two: Pair,
    done: TensorPass,
    rule: Rule,
    failed: tuple[FailedBy, ...],
    name: str,
    criteria: tuple[Criterion, ...],
    judged: SidesVerdict | None = None,
) -> TensorDiff:
    """The record of a pass; figures that were not measured are None. One-sided NaN and infinities are infinite
    errors.
    """
    odd, figures, header = done.nonfinite, done.figures, done.figures.header
    full, count, elements = figures.full, odd.finite or 1, two.grid.elements
    if judged is not None:
        blocks = judged.blocks
    else:
        blocks = worst_blocks(figures, odd.left_out) if full else ()
    measured: dict[str, Any] = {}
    if full or not figures.three:
        mismatches = int(header[at.MISMATCHES]) + odd.differing
        measured = {
            "max_abs": _unless(odd, header[at.MAX_ABS]),
            "rmse": sqrt(header[at.SUM_SQUARES] / count) / figures.scales.error if odd.finite else None,
            "mismatches": mismatches,
            "mismatch_percent": 100 * mismatches / elements,
            "worst": _worst(two, done),
        }
    if full:
        measured |= {
            "mean_abs": header[at.SUM_ABS] / count / figures.scales.error if odd.finite else None,
            "max_rel": _unless(odd, header[at.MAX_REL]),
            "mean_rel": header[at.SUM_REL] / count if odd.finite else None,
            "max_scaled": _unless(odd, header[at.MAX_SCALED]),
            "cosine": _cosine(header),
            "max_ulp": int(header[at.MAX_ULP]) if two.is_floating else None,
            "histogram": _histogram(header, odd.differing),
        }
    return TensorDiff(
        name=name,
        passed=not failed,
        failed_by=failed,
        reference=two.metas[0],
        test=two.metas[1],
        elements=elements,
        nan=odd.nan,
        posinf=odd.posinf,
        neginf=odd.neginf,
        blocks=blocks,
        atol=rule.atol,
        rtol=rule.rtol,
        baseline=judged.baseline if judged is not None and odd.finite_float64 else None,
        criteria=criteria,
        note=two.note or "",
        relative_rmse=_relative_rmse(figures),
        **measured,
    )


def _relative_rmse(figures: Figures) -> float | None:
    """The RMSE of the test over the RMS of float64, or of the reference where there are two sides."""
    header, scales = figures.header, figures.scales
    error, size, scale = header[at.SUM_SQUARES], header[at.REFERENCE_SQUARES], scales.reference / scales.error
    if figures.three:
        error, size, scale = header[at.TEST_ERROR], header[at.FLOAT64_SQUARES], scales.float64 / scales.true_error
    return sqrt(error / size) * scale if size else None


def _unless(odd: NonfiniteCounts, largest: float) -> float:
    return inf if odd.differing else largest


def _cosine(header: list[float]) -> float | None:
    norms = sqrt(header[at.REFERENCE_SQUARES]) * sqrt(header[at.TEST_SQUARES])
    return max(-1.0, min(1.0, header[at.PRODUCTS] / norms)) if norms and isfinite(norms) else None


def _histogram(header: list[float], differing: int) -> tuple[int, ...]:
    histogram = tuple(map(int, header[at.HISTOGRAM :]))
    if not differing:
        return histogram
    # The pass took what is not finite for equal
    return (histogram[0] - differing, *histogram[1:-1], histogram[-1] + differing)


def _worst(two: Pair, done: TensorPass) -> Worst | None:
    place = done.nonfinite.first
    if place is None:
        if not done.figures.header[at.MAX_ABS]:
            return None
        place = int(done.figures.header[at.ARG_MAX])
    index = []
    for size in reversed(two.test.shape):
        place, here = divmod(place, size)
        index.append(here)
    where = tuple(reversed(index))
    if done.figures.worst is not None and done.nonfinite.first is None:
        return Worst(where, *done.figures.worst)
    return Worst(where, _value(two.reference, where), _value(two.test, where))


def _value(tensor: Tensor, where: tuple[int, ...]) -> Value:
    element: bool | int | float | complex = tensor[where].item()
    if isinstance(element, complex) or (isinstance(element, float) and not isfinite(element)):
        return str(element)
    return element
