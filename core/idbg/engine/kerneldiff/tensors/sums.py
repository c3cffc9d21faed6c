"""One pass over the tensors, computed by torch in float64, in chunks that stay in the cache.

It reads every dtype and device, and is used where neither native.cpp nor the Triton kernel can read a tensor.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from math import inf, isfinite

import torch
from torch import Tensor

from idbg.engine.kerneldiff.tensors import figures as at
from idbg.engine.kerneldiff.tensors.figures import AS_THEY_ARE, Figures, Grid, Rule, Scales
from idbg.engine.kerneldiff.tensors.float64_device import wide_dtype
from idbg.engine.kerneldiff.tensors.pieces import CHUNK, Matrix, Piece, exact_difference, is_exact, ordered, pieces
from idbg.schema.diff import DECADES

BOUNDS = [10.0**exponent for exponent in DECADES]


@dataclass(frozen=True)
class Sums:
    """Adds pieces of the sides to `figures`; `floor` is the smallest divisor of relative errors."""

    figures: Figures
    rule: Rule
    floor: float

    def add(self, piece: Piece, reference: Tensor, test: Tensor, float64: Tensor | None) -> None:
        """Add one piece of the sides, of one dtype but for `float64`'s."""
        if float64 is not None:
            self._add_errors(piece, reference, test, float64)
        if self.figures.full or float64 is None:
            self._add_pair(piece, reference, test)

    def _add_pair(self, piece: Piece, reference: Tensor, test: Tensor) -> None:
        """Elements that are not finite on both sides count as equal."""
        values, full, finite = self.figures.values, self.figures.full, None
        if is_exact(reference.dtype):
            left, right = reference.double(), test.double()
            difference = exact_difference(reference, test)
        else:
            left, right = (side.to(wide_dtype(side.dtype)) for side in (reference, test))
            difference = (right - left).abs()
            if not isfinite(difference.amax().item()):
                finite = left.isfinite() & right.isfinite()
                values[at.NONFINITE] += finite.numel() - int(finite.sum())
                left, right = left.where(finite, 0), right.where(finite, 0)
                difference = (right - left).abs()
        magnitude = left.abs()
        self._add_products(left, right)
        largest = difference.amax().item()
        if full:
            self._add_histogram(difference, largest)
        if largest == 0:
            return
        if largest > values[at.MAX_ABS]:
            row, column = divmod(int(difference.argmax()), piece.columns)
            values[at.MAX_ABS] = largest
            values[at.ARG_MAX] = (piece.row + row) * self.figures.grid.columns + piece.column + column
        allowed = magnitude * self.rule.rtol + self.rule.atol
        values[at.MISMATCHES] += int((difference > allowed).sum())
        scaled = _scaled(difference, self.figures.scales.error)
        values[at.SUM_SQUARES] += _squares(scaled)
        if not full:
            return
        values[at.SUM_ABS] += scaled.sum().item()  # of the largest numbers of float64 a sum leaves its range too
        relative = difference / magnitude.clamp_min(self.floor)
        values[at.SUM_REL] += relative.sum().item()
        self._raise(at.MAX_REL, relative)
        self._raise(at.MAX_SCALED, (difference / allowed).nan_to_num(0.0, inf))  # 0 / 0: no error and none allowed
        if reference.is_floating_point():
            bits = ordered(reference), ordered(test)
            wide = reference.element_size() == 8
            ulps = exact_difference(*bits) if wide else (bits[1].long() - bits[0].long()).abs_()
            self._raise(at.MAX_ULP, ulps if finite is None else ulps.where(finite, 0))
        if not self.figures.three:
            add_blocks(self.figures.grid, torch.from_numpy(self.figures.side(0)), piece, scaled.square())

    def _add_histogram(self, difference: Tensor, largest: float) -> None:
        """Count from the top decade down until all that is not zero is counted: few passes, since errors lie close."""
        histogram = self.figures.values[at.HISTOGRAM : at.HEADER]
        unequal, above = int(torch.count_nonzero(difference)), 0
        histogram[0] += difference.numel() - unequal
        for place in range(len(BOUNDS) - 1, -1, -1):
            if BOUNDS[place] <= largest and above < unequal:
                count = int((difference >= BOUNDS[place]).sum())
                histogram[place + 2] += count - above
                above = count
        histogram[1] += unequal - above

    def _add_products(self, left: Tensor, right: Tensor) -> None:
        values, scales = self.figures.values, self.figures.scales
        left, right = _scaled(left, scales.reference), _scaled(right, scales.test)
        values[at.REFERENCE_SQUARES] += _squares(left)
        if self.figures.full:
            values[at.TEST_SQUARES] += _squares(right)
            values[at.PRODUCTS] += torch.dot(_flat(left), _flat(right)).item()

    def _add_errors(self, piece: Piece, eager: Tensor, test: Tensor, float64: Tensor) -> None:
        """Both sides against float64. What is not finite in the test or in float64 counts on neither side."""
        values, scales = self.figures.values, self.figures.scales
        exact = float64.to(torch.complex128 if test.dtype.is_complex else torch.float64)
        errors = [(side.to(exact.dtype) - exact).abs() for side in (test, eager)]
        if not all(isfinite(each.amax().item()) for each in (exact.abs(), *errors)):
            finite = exact.isfinite() & test.to(exact.dtype).isfinite()
            values[at.NONFINITE] += 1
            exact = exact.where(finite, 0)
            errors = [error.where(finite & error.isfinite(), 0) for error in errors]
        self._raise(at.FLOAT64_MAX, exact.abs())
        values[at.FLOAT64_SQUARES] += _squares(_scaled(exact, scales.float64))
        for which, error in enumerate(errors):
            self._raise(at.TEST_MAX + which, error)
            blocks = torch.from_numpy(self.figures.side(which))
            squares = _scaled(error, scales.true_error).square()
            values[at.TEST_ERROR + which] += add_blocks(self.figures.grid, blocks, piece, squares)

    def _raise(self, place: int, numbers: Tensor) -> None:
        self.figures.values[place] = max(self.figures.values[place], numbers.amax().item())


def _scaled(value: Tensor, scale: float) -> Tensor:
    return value if scale == 1 else value * scale


def _flat(value: Tensor) -> Tensor:
    return (torch.view_as_real(value) if value.is_complex() else value).reshape(-1)


def _squares(value: Tensor) -> float:
    """The sum of squares; of complex numbers, of their magnitudes."""
    flat = _flat(value)
    return torch.dot(flat, flat).item()


def add_blocks(grid: Grid, sums: Tensor, piece: Piece, squares: Tensor) -> float:
    """Add a piece's squared errors to the sums of one side's blocks. Returns their sum."""
    rows_end, columns_end, end = grid.ends
    rows = squares.sum(1)
    _add_at(sums[:rows_end], piece.row // grid.row_step, _fold(rows, grid.row_step))
    _add_at(sums[rows_end:columns_end], piece.column // grid.column_step, _fold(squares.sum(0), grid.column_step))
    few = len(squares) <= grid.tile_rows
    bands = squares.sum(0, keepdim=True) if few else _fold(squares.mT, grid.tile_rows).mT
    tiles = _fold(bands, grid.tile_columns).cpu().double()
    top, left = piece.row // grid.tile_rows, piece.column // grid.tile_columns
    sums[columns_end:end].view(grid.tile_grid)[top : top + len(tiles), left : left + tiles.shape[1]] += tiles
    return rows.sum(dtype=torch.float64).item()


def _add_at(sums: Tensor, start: int, values: Tensor) -> None:
    sums[start : start + len(values)] += values.cpu().double()


def _fold(values: Tensor, step: int) -> Tensor:
    """Sums of every `step` neighbours in the last dim; fewer at the end."""
    if step == 1:
        return values
    padded = torch.nn.functional.pad(values, (0, -values.shape[-1] % step))
    return padded.reshape(*values.shape[:-1], -1, step).sum(-1)


def measure(
    grid: Grid,
    rule: Rule,
    sides: tuple[Matrix, Matrix, Matrix | None],
    *,
    full: bool,
    scales: Scales = AS_THEY_ARE,
) -> Figures:
    """One pass over a reference (or eager), the test and, of three sides, float64."""
    reference, test, float64 = sides
    figures = Figures.empty(grid, three=float64 is not None, full=full, scales=scales)
    sums = Sums(figures, rule, 1.0 if is_exact(test.dtype) else torch.finfo(test.dtype).tiny)
    with _one_thread() if grid.elements > CHUNK else nullcontext():
        for piece in pieces(grid):
            sums.add(piece, reference.at(piece), test.at(piece), None if float64 is None else float64.at(piece))
    return figures


def rescaled(figures: Figures, rule: Rule, sides: tuple[Matrix, Matrix, Matrix | None]) -> Figures:
    """The pass again, with numbers scaled near 1 before they are squared, so that none leaves the range of float64."""
    header = figures.header
    reference, test, float64 = (0.0 if side is None else _size(side) for side in sides)
    true_error = max(header[at.TEST_MAX], header[at.EAGER_MAX])
    largest = header[at.MAX_ABS], reference, test, true_error, float64
    return measure(figures.grid, rule, sides, full=figures.full, scales=Scales(*map(_scale, largest)))


def _size(side: Matrix) -> float:
    """The largest finite magnitude."""
    sizes = (side.at(piece).abs() for piece in pieces(side.grid))
    return max(float(size.where(size.isfinite(), 0).amax()) for size in sizes)


def _scale(largest: float) -> float:
    """The power of two that scales it near 1, in the range of float64."""
    return 2.0 ** max(-1000, min(1000, -math.frexp(largest)[1])) if 0 < largest < inf else 1.0


@contextmanager
def _one_thread() -> Iterator[None]:
    """Steps of a chunk take microseconds: on a busy machine, waiting for a second thread took 10 times as long."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
