"""Judge the figures of three sides: all elements, the largest error, and the worst row, column and tile."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import inf, sqrt
from typing import Literal

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from idbg.engine.kerneldiff.tensors import figures as at
from idbg.engine.kerneldiff.tensors.allowance import FAR, FEWEST, FOUND, LOST, Allowance, is_rounding_alone, total
from idbg.engine.kerneldiff.tensors.figures import Figures, Grid, Vector
from idbg.format.amounts import figure, share
from idbg.schema.diff import Baseline, Block, Criterion, FailedBy, Term
from idbg.schema.remarks import Remark

_LOOKS = 16  # suspects of a kind for which float64 is read: where eager is exact by luck, the worst may be no loss
Kind = Literal["row", "column", "tile"]
_COUNTLESS, _NONE = np.array([np.inf]), np.array([], np.int64)
_NEARLY = 1 - 1e-9  # rounding may not leave out the worst
Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
KINDS: tuple[Kind, ...] = ("row", "column", "tile")


@dataclass(frozen=True)
class SidesVerdict:
    """The verdict on three sides: `baseline` has both errors, `blocks` the worst block of each kind."""

    criteria: tuple[Criterion, ...]
    baseline: Baseline
    blocks: tuple[Block, ...]
    far: Remark | None  # why float64 is no judge, if it is none
    zero: Remark | None = None  # with what is left of values that are zero in mathematics

    @property
    def failed_by(self) -> tuple[FailedBy, ...]:
        """The rules that were broken."""
        return tuple(each.by for each in self.criteria if each.exceeded)


ReadSize = Callable[[Block], float]
"""The RMS of float64 over a block: reads it."""


def judge_sides(
    figures: Figures, allowance: Allowance, count: int, left_out: Vector | None, size: ReadSize
) -> SidesVerdict:
    """The verdict on three sides, `count` elements of which are finite in the test and in float64."""
    header, count = figures.header, max(count, 1)
    scales = figures.scales
    test, eager, magnitude = (
        min(sqrt(header[squares] / count) / scale, header[largest])  # at the end of the range rounding leaves it
        for squares, scale, largest in (
            (at.TEST_ERROR, scales.true_error, at.TEST_MAX),
            (at.EAGER_ERROR, scales.true_error, at.EAGER_MAX),
            (at.FLOAT64_SQUARES, scales.float64, at.FLOAT64_MAX),
        )
    )
    criteria = [
        allowance.rmse(test, eager, magnitude, count),
        allowance.maximum(header[at.TEST_MAX], header[at.EAGER_MAX], header[at.FLOAT64_MAX], count),
    ]
    blocks = _judged(figures, allowance, left_out, eager, magnitude, size)
    criteria += [criterion for _, criterion in blocks]
    baseline = Baseline(test, header[at.TEST_MAX], eager, header[at.EAGER_MAX])
    far = None if allowance.gradient or allowance.samples > 1 else _far(test, eager, magnitude)
    left = f"{figure(eager)} in eager, {figure(magnitude)} in float64"
    zero = Remark("zero but for rounding", left) if is_rounding_alone(magnitude, eager) else None
    return SidesVerdict(tuple(criteria), baseline, tuple(block for block, _ in blocks), far, zero)


def _far(test: float, eager: float, magnitude: float) -> Remark | None:
    if min(test, eager) <= FAR * magnitude or (magnitude and is_rounding_alone(magnitude, eager)):
        return None
    apart = f"{share(eager / magnitude)} from float64" if magnitude else "not 0, as float64 is"
    return Remark("eager far", apart)


@dataclass(frozen=True)
class _Blocks:
    """Blocks, by their places: the test's error and eager's, what eager's error and rounding allow, and which
    may be lost.
    """

    places: Places
    rmse: Vector
    own: Vector
    factors: Vector
    of_eager: Vector
    floors: Vector
    suspects: Mask

    @cached_property
    def ratios(self) -> Vector:
        """Each error over what is allowed of it; 0 where that is beyond the range of float64."""
        allowed = self.of_eager + self.floors
        ratios: Vector = np.divide(self.rmse, allowed, out=np.zeros_like(allowed), where=np.isfinite(allowed))
        return ratios


@np.errstate(over="ignore")  # where what is allowed leaves the range of float64, nothing exceeds it
def _judged(
    figures: Figures, allowance: Allowance, left_out: Vector | None, eager: float, magnitude: float, size: ReadSize
) -> list[tuple[Block, Criterion]]:
    """The worst row, column and tile; `eager` is eager's error in all of the tensor."""
    grid, counts, scale = figures.grid, _counts(figures.grid, left_out), figures.block_scale
    noise = allowance.noise(eager, magnitude)
    (of_test, of_eager), means = (figures.side(0), figures.side(1)), figures.side(0) / counts

    def blocks_at(places: Places) -> _Blocks:
        of = counts[places]
        rmse, own = (
            np.minimum(np.sqrt(side[places] / of) / scale, figures.header[largest])
            for side, largest in ((of_test, at.TEST_MAX), (of_eager, at.EAGER_MAX))
        )
        factors, floors = allowance.factors(of), allowance.floors(magnitude, of)
        suspects = (rmse > np.maximum(factors * own, noise)) & (of >= FEWEST)
        return _Blocks(places, rmse, own, factors, factors * np.maximum(own, eager), floors, suspects)

    # no block has less allowed to it than one of countless elements
    least = float(allowance.factors(_COUNTLESS)[0] * eager + allowance.floors(magnitude, _COUNTLESS)[0])
    highest = [span.start + int(means[span].argmax()) for span in grid.spans]
    of_highest = blocks_at(np.array(highest))
    kept = []
    for span, one, wrong, ratio in zip(grid.spans, highest, of_highest.rmse, of_highest.ratios, strict=True):
        limit = scale * min(noise, float(ratio) * least if ratio else inf)
        is_limited = wrong and limit < inf
        kept.append(span.start + np.flatnonzero(means[span] >= _NEARLY * limit**2) if is_limited else np.array([one]))
    blocks, ends = blocks_at(np.concatenate(kept)), np.cumsum([0, *map(len, kept)])
    return [
        _worst_of_kind(kind, span, blocks, slice(start, end), grid, size)
        for kind, span, start, end in zip(KINDS, grid.spans, ends, ends[1:], strict=False)
    ]


def _worst_of_kind(
    kind: Kind, span: slice, blocks: _Blocks, part: slice, grid: Grid, size: ReadSize
) -> tuple[Block, Criterion]:
    """The block of this kind, which is a `part` of the blocks, that is most beyond what is allowed, or one that the
    test lost.
    """
    at = part.start + int(blocks.ratios[part].argmax())
    wrong, ratio = float(blocks.rmse[at]), float(blocks.ratios[at])
    found = part.start + np.flatnonzero(blocks.suspects[part]) if ratio <= 1 else _NONE
    if len(found) and (lost := _lost(grid, kind, span, blocks, found, size)):
        return lost
    terms = (
        Term("eager", float(blocks.of_eager[at]), float(blocks.factors[at])),
        Term("rounding", float(blocks.floors[at])),
    )
    place = int(blocks.places[at]) - span.start
    return _block(grid, kind, place, wrong, ratio), Criterion(kind, wrong, total(terms), terms)


def _lost(
    grid: Grid, kind: Kind, span: slice, blocks: _Blocks, found: Places, size: ReadSize
) -> tuple[Block, Criterion] | None:
    """A block of this kind, among those `found`, that eager has and the test has not; None where there is none."""
    rmse, own, places = blocks.rmse[found], blocks.own[found], blocks.places[found] - span.start
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
    grid, blocks = figures.grid, []
    means = figures.side(0) / _counts(grid, left_out)
    for kind, span in zip(KINDS, grid.spans, strict=True):
        of_kind = means[span]
        at = int(of_kind.argmax())
        blocks.append(_block(grid, kind, at, sqrt(of_kind.item(at)) / figures.block_scale, None))
    return tuple(blocks)


def _counts(grid: Grid, left_out: Vector | None) -> Vector:
    """The number of elements in each block's sum; 1 for an empty block, whose sum is 0."""
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
