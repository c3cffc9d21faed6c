"""One pass over the tensors, computed by torch in chunks that stay in the cache.

It reads every dtype and device, and is used where neither native.cpp nor the Triton kernel can read a tensor.
What float32 holds is computed in float32: 2.5 to 4 times as fast as in float64 (bench_diff, "torch").
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np
import torch
from torch import Tensor

from idbg.engine.kerneldiff.tensors import figures as at
from idbg.engine.kerneldiff.tensors.figures import AS_THEY_ARE, Figures, Grid, Rule, Scales
from idbg.engine.kerneldiff.tensors.pieces import (
    CHUNK,
    INTS,
    Matrix,
    Piece,
    exact_difference,
    is_exact,
    ordered,
    pieces,
)
from idbg.schema.diff import DECADES

# Squares of float32 numbers in this range neither overflow nor lose digits to underflow, also summed over a chunk
SMALLEST, LARGEST = 1e-15, 1e15


def _float32_above(bound: float) -> float:
    """The smallest float32 that is not below `bound`: float32 numbers compare with it as with `bound`."""
    near = np.float32(bound)
    return float(near if float(near) >= bound else np.nextafter(near, np.float32(inf)))


BOUNDS = {
    torch.float64: [10.0**exponent for exponent in DECADES],
    torch.float32: [_float32_above(10.0**exponent) for exponent in DECADES],
}


@dataclass(frozen=True)
class Chunk:
    """A piece of both sides in float32 or float64, with |reference| and |test - reference|.

    Where an element is not finite on some side, it is zero on both and not in `finite`, which is None where all are.
    """

    reference: Tensor
    test: Tensor
    magnitude: Tensor
    difference: Tensor
    finite: Tensor | None = None

    @property
    def narrow(self) -> bool:
        """Whether it is in float32."""
        return self.difference.dtype == torch.float32


def wide(reference: Tensor, test: Tensor) -> Chunk:
    """A chunk in float64: slow, for any dtype and any value; the differences of integers are exact."""
    if is_exact(reference.dtype):
        left, right = reference.double(), test.double()
        return Chunk(left, right, left.abs(), exact_difference(reference, test))
    dtype = torch.complex128 if reference.dtype.is_complex else torch.float64
    left, right = reference.to(dtype), test.to(dtype)
    finite = left.isfinite() & right.isfinite()
    all_finite = bool(finite.all())
    if not all_finite:
        left, right = left.where(finite, 0), right.where(finite, 0)
    magnitude, difference = left.abs(), (right - left).abs()
    if left.is_complex():
        left, right = torch.view_as_real(left), torch.view_as_real(right)
    return Chunk(left, right, magnitude, difference, None if all_finite else finite)


class Sums:
    """Fills `figures` chunk by chunk; without `full`, only those that a verdict needs."""

    def __init__(
        self,
        grid: Grid,
        dtype: torch.dtype,
        rule: Rule,
        device: torch.device,
        three: bool,
        full: bool,
        scales: Scales = AS_THEY_ARE,
    ):
        self.figures = Figures.empty(grid, three=three, full=full, scales=scales)
        self.scales = scales
        self.values, self.grid, self.rule, self.three, self.full = self.figures.values, grid, rule, three, full
        sides = 2 if three else 1 if full else 0
        self.sides = [torch.from_numpy(self.figures.side(which)) for which in range(sides)]
        self.fits = dtype.is_floating_point and dtype.itemsize <= 4  # float32 holds all its values
        self.floor = torch.finfo(dtype).tiny if not is_exact(dtype) else 1.0
        size = min(grid.elements, CHUNK)
        floats, doubles = (  # whatever default dtype the program has set
            torch.empty(rows, size, device=device, dtype=dtype)
            for rows, dtype in ((5, torch.float32), (2, torch.float64))
        )
        self.memory = floats, doubles
        self.shape = torch.Size()

    def add(self, piece: Piece, reference: Tensor, test: Tensor, float64: Tensor | None) -> None:
        """Add one piece of the sides. `reference` and `test` have one dtype."""
        if test.shape != self.shape:  # the buffers' views are made anew for the last piece only
            self.shape = test.shape
            self.floats, self.doubles = ([row[: test.numel()].view(test.shape) for row in of] for of in self.memory)
        if float64 is not None:
            self._add_errors(piece, reference, test, float64)
        if self.full or float64 is None:
            chunk = self._narrow(reference, test) if self.fits else wide(reference, test)
            largest = chunk.difference.amax().item()
            if chunk.narrow and not (SMALLEST < largest < LARGEST or largest == 0):
                chunk = wide(reference, test)
                largest = chunk.difference.amax().item()
            self._add_pair(piece, chunk, largest)
            if self.full and largest > 0 and reference.is_floating_point():
                self._add_ulps(reference, test, chunk.finite)

    def _narrow(self, reference: Tensor, test: Tensor) -> Chunk:
        """A chunk in float32: exact for dtypes that are no wider, except for the last digit of differences."""
        magnitude, difference, left, right, _ = self.floats
        if reference.dtype != torch.float32:
            reference, test = left.copy_(reference), right.copy_(test)
        torch.sub(test, reference, out=difference).abs_()
        return Chunk(reference, test, torch.abs(reference, out=magnitude), difference)

    def _add_pair(self, piece: Piece, chunk: Chunk, largest: float) -> None:
        values, difference = self.values, chunk.difference
        if chunk.finite is not None:
            values[at.NONFINITE] += chunk.finite.numel() - int(chunk.finite.sum())
        if largest > values[at.MAX_ABS]:
            row, column = divmod(int(difference.argmax()), piece.columns)
            values[at.MAX_ABS] = largest
            values[at.ARG_MAX] = (piece.row + row) * self.grid.columns + piece.column + column
        self._add_products(chunk)
        if largest == 0:  # equal, and finite: every error is 0
            values[at.HISTOGRAM] += difference.numel() if self.full else 0
            return
        scaled = difference if self.scales.error == 1 else difference * self.scales.error
        flat = scaled.view(-1)
        values[at.SUM_SQUARES] += torch.dot(flat, flat).item()
        if self.full:
            values[at.SUM_ABS] += scaled.sum().item()  # of the largest numbers of float64 a sum leaves its range too
            self._add_relative(chunk)
            self._add_histogram(chunk, largest)
        if self.full and not self.three:
            add_blocks(self.grid, self.sides[0], piece, torch.mul(scaled, scaled, out=self._spare(chunk)))
        self._add_mismatches(chunk)

    def _add_mismatches(self, chunk: Chunk) -> None:
        over = torch.sub(chunk.difference, chunk.magnitude, alpha=self.rule.rtol, out=chunk.magnitude)
        if over.amax().item() > self.rule.atol:
            self.values[at.MISMATCHES] += int((over > self.rule.atol).sum())

    def _spare(self, chunk: Chunk) -> Tensor | None:
        return self.floats[4] if chunk.narrow else None

    def _add_products(self, chunk: Chunk) -> None:
        """Add the products, in float64: in float32 the cosine has only 7 digits."""
        left, right = chunk.reference.reshape(-1), chunk.test.reshape(-1)
        if self.scales is not AS_THEY_ARE:
            left, right = left * self.scales.reference, right * self.scales.test
        if not self.full:
            squares = torch.dot(left, left).item()
            if chunk.narrow and not SMALLEST < squares < LARGEST**2:
                squares = left.double().square_().sum().item()
            self.values[at.REFERENCE_SQUARES] += squares
            return
        if chunk.narrow:
            one, other = (double.view(-1) for double in self.doubles)
            left, right = one.copy_(left), other.copy_(right)
        self.values[at.REFERENCE_SQUARES] += torch.dot(left, left).item()
        self.values[at.TEST_SQUARES] += torch.dot(right, right).item()
        self.values[at.PRODUCTS] += torch.dot(left, right).item()

    def _add_relative(self, chunk: Chunk) -> None:
        magnitude, difference, values, spare = chunk.magnitude, chunk.difference, self.values, self._spare(chunk)
        relative = torch.div(difference, torch.clamp_min(magnitude, self.floor, out=spare), out=spare)
        total = relative.sum().item()
        if chunk.narrow and not isfinite(total):  # next to a zero
            relative = difference.double() / magnitude.double().clamp_min(self.floor)
            total = relative.sum().item()
        values[at.SUM_REL] += total
        values[at.MAX_REL] = max(values[at.MAX_REL], relative.amax().item())
        allowed = torch.mul(magnitude, self.rule.rtol, out=spare).add_(self.rule.atol)
        scaled = torch.div(difference, allowed, out=spare)
        largest = scaled.amax().item()
        if largest != largest:  # 0 / 0: no error and none allowed
            largest = scaled.nan_to_num(0.0, inf).amax().item()
        values[at.MAX_SCALED] = max(values[at.MAX_SCALED], largest)

    def _add_histogram(self, chunk: Chunk, largest: float) -> None:
        """Count decades from the top until all nonzero errors are counted: few passes, as errors are alike."""
        difference, spare = chunk.difference, self._spare(chunk)
        histogram, bounds = self.values[at.HISTOGRAM : at.HEADER], BOUNDS[difference.dtype]
        unequal = int(torch.sign(difference, out=spare).sum().item())
        histogram[0] += difference.numel() - unequal
        above = 0
        for place in range(len(bounds) - 1, -1, -1):
            if bounds[place] <= largest and above < unequal:
                inside = torch.ge(difference, bounds[place], out=spare)
                count = int(inside.sum().item())
                histogram[place + 2] += count - above
                above = count
        histogram[1] += unequal - above

    def _add_ulps(self, reference: Tensor, test: Tensor, finite: Tensor | None) -> None:
        apart = None if finite is not None else _same_sign_ulps(reference, test)
        if apart is None:
            left, right = ordered(reference), ordered(test)
            apart = exact_difference(left, right)
            apart = apart if finite is None else apart.where(finite, 0)
        self.values[at.MAX_ULP] = max(self.values[at.MAX_ULP], apart.amax().item())

    def _add_errors(self, piece: Piece, eager: Tensor, test: Tensor, float64: Tensor) -> None:
        """Compare both sides with float64. Elements that are not finite in the test or in float64 are left out."""
        values = self.values
        exact = float64.to(torch.complex128 if test.dtype.is_complex else torch.float64)
        errors = [self._error(which, side, exact) for which, side in enumerate((test, eager))]
        maxima = [_largest(error) for error in errors]
        largest = _largest(exact.abs() if exact.is_complex() else exact)
        if not all(map(isfinite, (largest, *maxima))):
            finite = exact.isfinite() & test.to(exact.dtype).isfinite()
            values[at.NONFINITE] += 1
            exact = exact.where(finite, 0)
            largest = _largest(exact.abs() if exact.is_complex() else exact)
            errors = [error.where(finite & error.isfinite(), 0) for error in errors]
            maxima = [_largest(error) for error in errors]
        flat = (torch.view_as_real(exact) if exact.is_complex() else exact).reshape(-1)
        if self.scales.float64 != 1:
            flat = flat * self.scales.float64
        values[at.FLOAT64_SQUARES] += torch.dot(flat, flat).item()
        values[at.FLOAT64_MAX] = max(values[at.FLOAT64_MAX], largest)
        for which, (error, worst) in enumerate(zip(errors, maxima, strict=True)):
            if worst == 0:
                continue
            if self.scales.true_error != 1:
                error = error * self.scales.true_error
            elif SMALLEST < worst < LARGEST:
                error = self.floats[which].copy_(error)
            values[at.TEST_ERROR + which] += add_blocks(self.grid, self.sides[which], piece, error.square_())
            values[at.TEST_MAX + which] = max(values[at.TEST_MAX + which], worst)

    def _error(self, which: int, side: Tensor, exact: Tensor) -> Tensor:
        if exact.is_complex():
            return side.to(exact.dtype).sub(exact).abs()
        error: Tensor = self.doubles[which]
        return error.copy_(side).sub_(exact)


def add_blocks(grid: Grid, sums: Tensor, piece: Piece, squares: Tensor) -> float:
    """Add a piece's squared errors to the sums of one side's blocks. Returns their sum."""
    rows_end, columns_end, end = grid.ends
    rows, bands = squares.sum(1), _bands(squares, grid.tile_rows)
    _add_at(sums[:rows_end], piece.row // grid.row_step, _fold(rows, grid.row_step))
    columns = bands.sum(0) if len(bands) > 1 else bands[0]
    _add_at(sums[rows_end:columns_end], piece.column // grid.column_step, _fold(columns, grid.column_step))
    tiles = _fold(bands, grid.tile_columns).cpu().double()
    top, left = piece.row // grid.tile_rows, piece.column // grid.tile_columns
    sums[columns_end:end].view(grid.tile_grid)[top : top + len(tiles), left : left + tiles.shape[1]] += tiles
    return rows.sum(dtype=torch.float64).item()


def _same_sign_ulps(reference: Tensor, test: Tensor) -> Tensor | None:
    """The distance of floats in ulps, as the distance of their bits; None if the signs of two differ."""
    if reference.element_size() == 1:
        return None
    left, right = (side.view(INTS[side.element_size()]) for side in (reference, test))
    if torch.bitwise_xor(left, right).amin().item() < 0:
        return None
    return left.sub(right).abs_()


def _largest(error: Tensor) -> float:
    low, high = torch.aminmax(error)
    return max(-low.item(), high.item())


def _add_at(sums: Tensor, start: int, values: Tensor) -> None:
    sums[start : start + len(values)] += values.cpu().double()


def _fold(values: Tensor, step: int) -> Tensor:
    """The sums of every `step` neighbours in the last dim; fewer at the end."""
    if step == 1:
        return values
    length = values.shape[-1]
    if length <= step:
        return values.sum(-1, keepdim=True)
    if rest := length % step:
        values = torch.nn.functional.pad(values, (0, step - rest))
    groups = values.view(*values.shape[:-1], -1, step)
    # Sums of a few are slow in torch, products are not
    return groups.sum(-1) if step >= 16 else groups @ torch.ones(step, dtype=values.dtype, device=values.device)


def _bands(squares: Tensor, height: int) -> Tensor:
    """The sums of every `height` rows; fewer at the end."""
    rows, columns = squares.shape
    if rows <= height:
        return squares.sum(0, keepdim=True)
    whole = rows - rows % height
    bands = squares[:whole].view(-1, height, columns).sum(1)
    return bands if whole == rows else torch.cat((bands, squares[whole:].sum(0, keepdim=True)))


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
    sums = Sums(grid, test.dtype, rule, test.device, float64 is not None, full, scales)
    with _one_thread() if grid.elements > CHUNK else nullcontext():
        for piece in pieces(grid):
            exact = None if float64 is None else float64.at(piece)
            sums.add(piece, reference.at(piece), test.at(piece), exact)
    return sums.figures


def rescaled(figures: Figures, rule: Rule, sides: tuple[Matrix, Matrix, Matrix | None]) -> Figures:
    """Repeat the pass with numbers scaled near 1 before they are squared, so that none leaves the range of float64."""
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
    """The power of two that scales it near 1, within the range of float64."""
    return 2.0 ** max(-1000, min(1000, -math.frexp(largest)[1])) if 0 < largest < inf else 1.0


@contextmanager
def _one_thread() -> Iterator[None]:
    """Use one thread: a chunk takes microseconds, and on a busy machine waiting for a second one took 10 times that."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
