"""How much worse than eager may the test be, both held against float64, before it is wrong?

Each allowance is `factor * eager's error + floor`. The constants, and why:

- A clean test is not eager's copy: it adds up in another order and rounds at other places, so its error may be `k` (3)
  times eager's. The largest of many errors scatters more than their RMSE: MAXIMUM_FACTOR times k.
- Of n elements the ratio of two RMSEs scatters like the square root of F(n, n): beyond all bounds for a scalar, by
  1e-6 beyond 8.8 for n = 8 and 1.8 for n = 64. So k grows by (1 + SMALL / n)**2: to 48 for a scalar, 5.7 for 8.
- Eager may be exact by luck, or because it computes nothing: `ulps` of the dtype, at the RMS of the tensor (for the
  maximum: twice that, at its largest magnitude), are no error. 4 in float32, where functions are good for 1 to 4 ulps;
  1 in 16 bits and less, where both sides compute in float32 and round once. Few elements add up long sums (a loss):
  there are more ulps, by 1 + ulps**2 / n.
- A block may be BLOCK times k as bad as the same block of eager's, or as all of eager's: where one element falls on
  the other side of a ReLU, a channel's gradient is off, and it is another channel in eager. Clean training runs of
  resnet18 come to 7 times k; a lost column, tail or tile is at millions in float32, and at hundreds in 16 bits.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np

from idbg.diff import Baseline, Block, FailedBy
from idbg.engine.kerneldiff import figures as at
from idbg.engine.kerneldiff.figures import Figures, Grid, Vector

MAXIMUM_FACTOR = 4.0
SMALL = 3.0
BLOCK = 5.0
Kind = Literal["row", "column", "tile"]
KINDS: tuple[Kind, ...] = ("row", "column", "tile")


@dataclass(frozen=True)
class Allowance:
    """What a dtype allows: `eps` and `tiny` are its finfo's."""

    k: float
    eps: float
    tiny: float

    @property
    def ulps(self) -> float:
        return 4.0 if self.eps < 1e-6 else 1.0

    def floor(self, magnitude: float, count: float) -> float:
        return self.ulps * (1 + self.ulps**2 / count) * self.eps * max(magnitude, self.tiny)

    def factor(self, count: float) -> float:
        return float(self.k * (1 + SMALL / count) ** 2)

    def blocks(self, eager: Vector, overall: float, magnitude: float, counts: Vector) -> Vector:
        """The RMSE allowed to each block of `counts` elements, of eager's RMSE there and overall."""
        eager = np.maximum(eager, overall)
        floor = self.ulps * self.eps * max(magnitude, self.tiny)
        allowed: Vector = BLOCK * self.k * (1 + SMALL / counts) ** 2 * eager + floor * (1 + self.ulps**2 / counts)
        return allowed


@dataclass(frozen=True)
class Judged:
    failed_by: tuple[FailedBy, ...]
    baseline: Baseline
    blocks: tuple[Block, ...]


def judge(figures: Figures, allowance: Allowance, count: int, left_out: Vector | None) -> Judged:
    """The verdict on three sides, `count` elements of which are finite in the test and in float64."""
    header, count = figures.header, max(count, 1)
    test, eager, magnitude = (
        sqrt(header[place] / count) for place in (at.TEST_ERROR, at.EAGER_ERROR, at.FLOAT64_SQUARES)
    )
    failed: list[FailedBy] = []
    if test > allowance.factor(count) * eager + allowance.floor(magnitude, count):
        failed.append("rmse")
    largest = MAXIMUM_FACTOR * allowance.factor(count) * header[at.EAGER_MAX]
    if header[at.TEST_MAX] > largest + 2 * allowance.floor(header[at.FLOAT64_MAX], count):
        failed.append("maximum")
    counts = _counts(figures.grid, left_out)
    rmse, eager_rmse = (np.sqrt(figures.side(which) / counts) for which in range(2))
    ratios = rmse / allowance.blocks(eager_rmse, eager, magnitude, counts)
    blocks = _worst(figures.grid, ratios, rmse, judged=True)
    failed += [block.kind for block in blocks if block.ratio is not None and block.ratio > 1]
    baseline = Baseline(test, header[at.TEST_MAX], eager, header[at.EAGER_MAX])
    return Judged(tuple(failed), baseline, blocks)


def worst_blocks(figures: Figures, left_out: Vector | None) -> tuple[Block, ...]:
    """Of two sides: the row, the column and the tile with the largest RMSE."""
    rmse = np.sqrt(figures.side(0) / _counts(figures.grid, left_out))
    return _worst(figures.grid, rmse, rmse, judged=False)


def _counts(grid: Grid, left_out: Vector | None) -> Vector:
    """How many elements each block's sum is of; 1 for a block of none, whose sum is 0."""
    return grid.lengths if left_out is None else np.maximum(grid.lengths - left_out, 1.0)


def _worst(grid: Grid, ratios: Vector, rmse: Vector, *, judged: bool) -> tuple[Block, ...]:
    found = []
    for kind, span in zip(KINDS, grid.spans, strict=True):
        worst = int(ratios[span].argmax())
        ratio = float(ratios[span][worst]) if judged else None
        found.append(_block(grid, kind, worst, float(rmse[span][worst]), ratio))
    return tuple(found)


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
