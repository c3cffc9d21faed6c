"""How much worse than eager may the test be, both held against float64, before it is wrong?

Each allowance is `factor * eager's error + floor`. The constants, and why:

- A clean test is not eager's copy: it adds up in another order and rounds at other places, so its error may be `k` (3)
  times eager's. The largest of many errors scatters more than their RMSE: MAXIMUM_FACTOR times k.
- Of n elements the ratio of two RMSEs scatters like the square root of F(n, n): beyond all bounds for a scalar, by
  1e-6 beyond 8.8 for n = 8 and 1.8 for n = 64. So k grows by (1 + SMALL / n)**2: to 48 for a scalar, 5.7 for 8. That
  is for an eager that is right by luck: where it is as wrong as can be expected, 48 times that hides a wrong loss. So
  what the growth adds ends at CLOSE of the magnitude, bfloat16's rtol in torch.testing. One for all dtypes, because a
  float32 loss under autocast is bfloat16's work: resnet18's came to 4 times eager's 2e-4. Not of a gradient, nor of
  what is all rounding: its magnitude is below eager's error.
- Eager may be exact by luck, or because it computes nothing: `ulps` of the dtype, at the RMS of the tensor (for the
  maximum: twice that, at its largest magnitude), are no error. 4 in float32, where functions are good for 1 to 4 ulps;
  1 in 16 bits and less, where both sides compute in float32 and round once. Few elements add up long sums (a loss):
  there are more ulps, by 1 + ulps**2 / n.
- A block may be BLOCK times k as bad as the same block of eager's, or as all of eager's: where one element falls on
  the other side of a ReLU, a channel's gradient is off, and it is another channel in eager. Clean training runs of
  resnet18 come to 7 times k; a lost column, tail or tile is at millions in float32, and at hundreds in 16 bits.
- That hides the loss of a block whose values are small. It is lost where it is BLOCK times k as bad as the same block
  of eager's, and float64, which is read there only then, says that eager has it (its error is below FOUND of the
  block's size) and the test has not (above LOST of it). Of a gradient through noise that is luck now and then. So it
  must also be NOISE times k as bad as all of eager's, less what rounding once explains (half an ulp; of small values
  that is small), and of FEWEST elements or more: without, clean bfloat16 gradients of resnet18 fail.
- Where both sides are further from float64 than FAR of its RMS, it is no judge: a branch or an argmax fell the other
  way there. Nearer, no test is right that is further from it than ZEROS of its RMS, as zeros are. Training in bfloat16
  or under autocast leaves outputs of a clean resnet50 0.56 off and its gradients anything up to 2: so no lower, and not
  for gradients. Nor where float64 is below CANCELLED of eager's error: all that eager holds is rounding then.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from idbg.engine.kerneldiff.tensors import figures as at
from idbg.engine.kerneldiff.tensors.figures import Figures, Grid, Vector
from idbg.format.amounts import share
from idbg.schema.diff import Baseline, Block, Criterion, FailedBy, Term

MAXIMUM_FACTOR = 4.0
SMALL = 3.0
CLOSE = 1.6e-2
BLOCK = 5.0
FOUND, LOST, NOISE, FEWEST = 0.1, 0.5, 2.0, 4
FAR, ZEROS, CANCELLED = 0.75, 0.9, 1e-6
_LOOKS = 16  # suspects of a kind for which float64 is read: where eager is exact by luck, the worst may be no loss
_FLOAT32 = float(np.finfo(np.float32).eps)
Kind = Literal["row", "column", "tile"]
Mask = npt.NDArray[np.bool_]
KINDS: tuple[Kind, ...] = ("row", "column", "tile")


@dataclass(frozen=True)
class Allowance:
    """What a dtype allows: `eps` and `tiny` are its finfo's. Eager's error is the worst of `samples` runs."""

    k: float
    eps: float
    tiny: float
    gradient: bool = False
    samples: int = 1

    @property
    def ulps(self) -> float:
        return 4.0 if self.eps < 1e-6 else 1.0

    def floor(self, magnitude: float, count: float) -> float:
        return self.ulps * (1 + self.ulps**2 / count) * self.eps * max(magnitude, self.tiny)

    def terms(self, eager: float, magnitude: float, count: float, times: float = 1.0) -> tuple[Term, ...]:
        """What is allowed of an error of eager's in `count` elements of this magnitude: `times` what `k` allows, and
        what rounding leaves.
        """
        k = times * self.k
        growth = k * ((1 + SMALL / (count * self.samples)) ** 2 - 1) * eager
        few = growth if self.gradient or eager > magnitude else min(growth, times * CLOSE * magnitude)
        return Term("eager", k * eager, k), Term("few", few), Term("rounding", self.floor(magnitude, count))

    def rmse(self, test: float, eager: float, magnitude: float, count: float) -> Criterion:
        terms = self.terms(eager, magnitude, count)
        zeros = ZEROS * (1 + SMALL / count) ** 2 * magnitude
        if eager < FAR * magnitude and _sum(terms) > zeros:
            terms = (Term("values", zeros, zeros / magnitude),)
        return Criterion("rmse", test, _sum(terms), terms)

    def maximum(self, test: float, eager: float, magnitude: float, count: float) -> Criterion:
        *terms, rounding = self.terms(eager, magnitude, count, MAXIMUM_FACTOR)
        twice = (*terms, Term("rounding", 2 * rounding.amount))
        return Criterion("maximum", test, _sum(twice), twice)

    def factors(self, counts: Vector) -> Vector:
        """How many times eager's error each block of `counts` elements may have."""
        grown: Vector = BLOCK * self.k * (1 + SMALL / counts) ** 2
        return grown

    def floors(self, magnitude: float, counts: Vector) -> Vector:
        least = self.ulps * self.eps * max(magnitude, self.tiny)
        floors: Vector = least * (1 + self.ulps**2 / counts)
        return floors

    def noise(self, eager: float, magnitude: float) -> float:
        """What rounding may leave in any block, however small its values, where this is eager's error in all."""
        once = self.eps / 2 * magnitude
        beyond = sqrt(max(eager - once, 0.0)) * sqrt(eager + once)  # of float64, squares may be beyond its range
        return NOISE * self.k * beyond + 4 * _FLOAT32 * max(magnitude, self.tiny)


def _sum(terms: tuple[Term, ...]) -> float:
    return sum(term.amount for term in terms)


@dataclass(frozen=True)
class Judged:
    criteria: tuple[Criterion, ...]
    baseline: Baseline
    blocks: tuple[Block, ...]
    far: str  # why float64 is no judge, if it is none

    @property
    def failed_by(self) -> tuple[FailedBy, ...]:
        return tuple(each.by for each in self.criteria if each.exceeded)


Size = Callable[[Block], float]
"""The RMS of float64 over a block: reads it."""


def judge(figures: Figures, allowance: Allowance, count: int, left_out: Vector | None, size: Size) -> Judged:
    """The verdict on three sides, `count` elements of which are finite in the test and in float64."""
    header, count = figures.header, max(count, 1)
    scales = figures.scales
    test, eager = (sqrt(header[place] / count) / scales.true_error for place in (at.TEST_ERROR, at.EAGER_ERROR))
    magnitude = sqrt(header[at.FLOAT64_SQUARES] / count) / scales.float64
    criteria = [
        allowance.rmse(test, eager, magnitude, count),
        allowance.maximum(header[at.TEST_MAX], header[at.EAGER_MAX], header[at.FLOAT64_MAX], count),
    ]
    blocks = _judged(figures, allowance, left_out, eager, magnitude, size)
    criteria += [criterion for _, criterion in blocks]
    baseline = Baseline(test, header[at.TEST_MAX], eager, header[at.EAGER_MAX])
    far = "" if allowance.gradient or allowance.samples > 1 else _far(test, eager, magnitude)
    return Judged(tuple(criteria), baseline, tuple(block for block, _ in blocks), far)


def _far(test: float, eager: float, magnitude: float) -> str:
    if min(test, eager) <= FAR * magnitude or 0 < magnitude < CANCELLED * eager:
        return ""
    apart = f"{share(eager / magnitude)} from float64" if magnitude else "not 0, as float64 is"
    return f"eager itself is {apart}: judged by tolerance"


def _judged(
    figures: Figures, allowance: Allowance, left_out: Vector | None, eager: float, magnitude: float, size: Size
) -> list[tuple[Block, Criterion]]:
    """The worst row, column and tile; `eager` is eager's error in all of the tensor."""
    grid, counts = figures.grid, _counts(figures.grid, left_out)
    rmse, own = (np.sqrt(figures.side(which) / counts) / figures.block_scale for which in range(2))
    factors, floors = allowance.factors(counts), allowance.floors(magnitude, counts)
    of_own = factors * own
    of_eager = np.maximum(of_own, factors * eager)
    ratios = rmse / (of_eager + floors)
    suspects = rmse > np.maximum(of_own, allowance.noise(eager, magnitude))
    suspects &= counts >= FEWEST
    found = []
    for kind, span in zip(KINDS, grid.spans, strict=True):
        place = span.start + int(ratios[span].argmax())
        wrong, ratio = float(rmse[place]), float(ratios[place])
        lost = _lost(grid, kind, span, suspects, rmse, own, size) if ratio <= 1 and suspects[span].any() else None
        terms = Term("eager", float(of_eager[place]), float(factors[place])), Term("rounding", float(floors[place]))
        worst = _block(grid, kind, place - span.start, wrong, ratio), Criterion(kind, wrong, _sum(terms), terms)
        found.append(lost or worst)
    return found


def _lost(
    grid: Grid, kind: Kind, span: slice, suspects: Mask, rmse: Vector, own: Vector, size: Size
) -> tuple[Block, Criterion] | None:
    """A block of this kind that eager has and the test has not; None where there is none."""
    places = np.flatnonzero(suspects[span])
    rmse, own = rmse[span][places], own[span][places]
    for one in np.argsort(own / rmse)[:_LOOKS]:
        wrong = float(rmse[one])
        block = _block(grid, kind, int(places[one]), wrong, None)
        values = size(block)
        if own[one] < FOUND * values and wrong > LOST * values:
            terms = (Term("values", LOST * values, LOST),)
            return replace(block, ratio=wrong / terms[0].amount), Criterion(kind, wrong, terms[0].amount, terms)
    return None


def worst_blocks(figures: Figures, left_out: Vector | None) -> tuple[Block, ...]:
    """Of two sides: the row, the column and the tile with the largest RMSE."""
    rmse = np.sqrt(figures.side(0) / _counts(figures.grid, left_out)) / figures.block_scale
    return tuple(
        _block(figures.grid, kind, int(rmse[span].argmax()), float(rmse[span].max()), None)
        for kind, span in zip(KINDS, figures.grid.spans, strict=True)
    )


def _counts(grid: Grid, left_out: Vector | None) -> Vector:
    """How many elements each block's sum is of; 1 for a block of none, whose sum is 0."""
    return grid.lengths if left_out is None else np.maximum(grid.lengths - left_out, 1.0)


def _block(grid: Grid, kind: Kind, worst: int, rmse: float, ratio: float | None) -> Block:
    top, height, left, width = 0, grid.rows, 0, grid.columns
    if kind == "row":
        top, height = worst * grid.row_step, grid.row_step
    elif kind == "column":
        left, width = worst * grid.column_step, grid.column_step
    else:
        row, column = divmod(worst, grid.tile_grid[1])
        top, height, left, width = row * grid.tile_rows, grid.tile_rows, column * grid.tile_columns, grid.tile_columns
    rows, columns = (top, min(top + height, grid.rows)), (left, min(left + width, grid.columns))
    return Block(kind, rows, columns, rmse, ratio)
