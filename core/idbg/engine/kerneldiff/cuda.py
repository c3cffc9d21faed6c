"""What does one pass over tensors on a CUDA device say, by one Triton kernel and one copy back?

Import it only where there is Triton. TRITON_INTERPRET=1 runs the kernel on tensors in memory.
"""

# Triton has no types, and its kernels are not Python: their annotations mean something else.
# mypy: disable-error-code="import-untyped, no-untyped-def, untyped-decorator, misc, no-untyped-call"

import math
from contextlib import nullcontext
from functools import lru_cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from idbg.diff import DECADES
from idbg.engine.kerneldiff import figures as at
from idbg.engine.kerneldiff.figures import BINS, HEADER, Figures, Grid, Rule
from idbg.engine.kerneldiff.pieces import Matrix

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
WORDS = {8: tl.int64, 4: tl.int32, 2: tl.int16}
AREA = 2048  # elements that a program looks at in one go: 8 a thread, or float64 spills registers
WIDTH = 256  # columns of an area at most
PER_PROCESSOR = 4  # programs for each of the device's processors

OCTAVES = 112  # powers of two that the histogram tells apart: from below 1e-20 to above 1e10
FIRST_OCTAVE = tl.constexpr(1023 - 68)
LAST_OCTAVE = tl.constexpr(OCTAVES - 1)
SLOTS = tl.constexpr(32)  # the header's places up to the next power of two
BIN_SLOTS = tl.constexpr(64)  # the histogram's bins up to the next power of two; the last one takes what is outside
HISTOGRAM, SPECIALS, SUM_ABS, SUM_SQUARES = map(tl.constexpr, (at.HISTOGRAM, at.SPECIALS, at.SUM_ABS, at.SUM_SQUARES))
MAX_ABS, ARG_MAX, SUM_REL, MAX_REL, MAX_SCALED, MISMATCHES = map(
    tl.constexpr, (at.MAX_ABS, at.ARG_MAX, at.SUM_REL, at.MAX_REL, at.MAX_SCALED, at.MISMATCHES)
)
REFERENCE_SQUARES, TEST_SQUARES, PRODUCTS, MAX_ULP = map(
    tl.constexpr, (at.REFERENCE_SQUARES, at.TEST_SQUARES, at.PRODUCTS, at.MAX_ULP)
)
TEST_ERROR, EAGER_ERROR, TEST_MAX, EAGER_MAX, FLOAT64_SQUARES, FLOAT64_MAX = map(
    tl.constexpr, (at.TEST_ERROR, at.EAGER_ERROR, at.TEST_MAX, at.EAGER_MAX, at.FLOAT64_SQUARES, at.FLOAT64_MAX)
)
ROW_LENGTH = HEADER - BINS + 64  # of what one program leaves: the header, with all the slots of the histogram


@triton.jit
def _ordered(value, WORD: tl.constexpr, MAGNITUDE: tl.constexpr):
    """Bits as integers in the order of the numbers: neighbours are 1 apart, both zeros are 0."""
    bits = value.to(WORD, bitcast=True).to(tl.int64)
    return tl.where(bits < 0, -(bits & MAGNITUDE), bits)


@triton.jit
def _add_blocks(
    squares, sums, row, column, rows, columns, row_step, column_step, tile_rows, tile_columns,
    HEIGHT: tl.constexpr, WIDE: tl.constexpr, RS: tl.constexpr, CS: tl.constexpr, TR: tl.constexpr, TC: tl.constexpr,
):  # fmt: skip
    """Adds an area's squared errors to one side's blocks; gives their sum. Areas and blocks are powers of two: none
    straddles another."""
    row_groups, column_groups = (rows + row_step - 1) // row_step, (columns + column_step - 1) // column_step
    across = (columns + tile_columns - 1) // tile_columns
    down = (rows + tile_rows - 1) // tile_rows
    narrow = tl.sum(tl.reshape(squares, (HEIGHT, WIDE // TC, TC)), 2)

    by_row = tl.sum(tl.reshape(tl.sum(narrow, 1), (HEIGHT // RS, RS)), 1)
    place = row // row_step + tl.arange(0, HEIGHT // RS)
    tl.atomic_add(sums + place, by_row, mask=place < row_groups, sem="relaxed")

    by_column = tl.sum(tl.reshape(tl.sum(squares, 0), (WIDE // CS, CS)), 1)
    place = column // column_step + tl.arange(0, WIDE // CS)
    tl.atomic_add(sums + row_groups + place, by_column, mask=place < column_groups, sem="relaxed")

    by_tile = tl.sum(tl.reshape(narrow, (HEIGHT // TR, TR, WIDE // TC)), 1)
    top = (row // tile_rows + tl.arange(0, HEIGHT // TR))[:, None]
    left = (column // tile_columns + tl.arange(0, WIDE // TC))[None, :]
    tiles = sums + row_groups + column_groups + top * across + left
    tl.atomic_add(tiles, by_tile, mask=(top < down) & (left < across), sem="relaxed")
    return tl.sum(by_row)


@triton.jit
def _at(PLACE: tl.constexpr, value):
    """A header that holds `value` at one place."""
    return tl.where(tl.arange(0, SLOTS) == PLACE, value, 0.0)


@triton.jit
def _pair(
    x_raw, y_raw, x, y, both, inside, flat, atol, rtol, tiny, bases, nexts,
    WORD: tl.constexpr, MAGNITUDE: tl.constexpr, SIZE: tl.constexpr, FULL: tl.constexpr,
):  # fmt: skip
    """Of the test against the reference: what to add up, maxima, the histogram, squares, the largest and its place."""
    a, b = tl.where(both, x, 0.0), tl.where(both, y, 0.0)
    d, size = tl.abs(b - a), tl.abs(a)
    squares = d * d
    allowed = atol + rtol * size
    largest = tl.max(d)
    first = tl.min(tl.where(d == largest, flat, 0x7FFFFFFFFFFFFFFF))
    over = tl.sum((d > allowed).to(tl.int32)).to(tl.float64)
    adds = _at(MISMATCHES, over) + _at(SUM_SQUARES, tl.sum(squares)) + _at(REFERENCE_SQUARES, tl.sum(a * a))
    maxima = _at(MAX_ABS, largest)
    histogram = tl.zeros((BIN_SLOTS,), tl.int32)
    if FULL:
        relative = d / tl.maximum(size, tiny)
        scaled = tl.where(d > 0.0, d / allowed, 0.0)
        p, q = _ordered(x_raw, WORD, MAGNITUDE), _ordered(y_raw, WORD, MAGNITUDE)
        apart = tl.where(p > q, p - q, q - p).to(tl.uint64, bitcast=True).to(tl.float64)
        adds += _at(SUM_ABS, tl.sum(d)) + _at(SUM_REL, tl.sum(relative))
        adds += _at(TEST_SQUARES, tl.sum(b * b)) + _at(PRODUCTS, tl.sum(a * b))
        maxima += _at(MAX_REL, tl.max(relative)) + _at(MAX_SCALED, tl.max(scaled))
        maxima += _at(MAX_ULP, tl.max(tl.where(both, apart, 0.0)))
        octave = (d.to(tl.int64, bitcast=True) >> 52).to(tl.int32) - FIRST_OCTAVE
        octave = tl.minimum(tl.maximum(octave, 0), LAST_OCTAVE)
        slot = tl.load(bases + octave) + (d >= tl.load(nexts + octave)).to(tl.int32)
        slot = tl.where(inside, slot, BIN_SLOTS - 1)
        histogram += tl.histogram(tl.reshape(slot, (SIZE,)), BIN_SLOTS)
    return adds, maxima, histogram, squares, largest, first


@triton.jit
def _errors(x, y, exact, fine, x_fine):
    """Of both sides against float64: what to add up, maxima, and the squared errors of the test and of eager."""
    exact = tl.where(fine, exact, 0.0)
    of_test = tl.where(fine, tl.abs(y - exact), 0.0)
    of_eager = tl.where(fine & x_fine, tl.abs(x - exact), 0.0)
    adds = _at(FLOAT64_SQUARES, tl.sum(exact * exact))
    maxima = _at(TEST_MAX, tl.max(of_test)) + _at(EAGER_MAX, tl.max(of_eager))
    maxima += _at(FLOAT64_MAX, tl.max(tl.abs(exact)))
    return adds, maxima, of_test * of_test, of_eager * of_eager


@triton.jit
def _pass(
    reference, test, float64, found, sums, rule, bases, nexts, rows, columns, blocks, areas, areas_across,
    reference_row, reference_column, test_row, test_column, float64_row, float64_column,
    row_step, column_step, tile_rows, tile_columns, LENGTH: tl.constexpr, WORD: tl.constexpr, MAGNITUDE: tl.constexpr,
    HEIGHT: tl.constexpr, WIDE: tl.constexpr, RS: tl.constexpr, CS: tl.constexpr, TR: tl.constexpr, TC: tl.constexpr,
    THREE: tl.constexpr, FULL: tl.constexpr,
):  # fmt: skip
    """A program takes every n-th area, and leaves one row of header and histogram in `found`."""
    program = tl.program_id(0)
    atol, rtol, tiny = tl.load(rule), tl.load(rule + 1), tl.load(rule + 2)
    adds, maxima = tl.zeros((SLOTS,), tl.float64), tl.zeros((SLOTS,), tl.float64)
    histogram = tl.zeros((BIN_SLOTS,), tl.int64)
    most, where_most = tiny * 0.0, tl.full((), 0, tl.int64)

    for area in range(program, areas, tl.num_programs(0)):
        row, column = (area // areas_across).to(tl.int64) * HEIGHT, (area % areas_across).to(tl.int64) * WIDE
        down, along = (row + tl.arange(0, HEIGHT))[:, None], (column + tl.arange(0, WIDE))[None, :]
        inside = (down < rows) & (along < columns)
        x_raw = tl.load(reference + down * reference_row + along * reference_column, mask=inside, other=0.0)
        y_raw = tl.load(test + down * test_row + along * test_column, mask=inside, other=0.0)
        x, y = x_raw.to(tl.float64), y_raw.to(tl.float64)
        x_fine, y_fine = tl.abs(x) < float("inf"), tl.abs(y) < float("inf")
        finite = x_fine & y_fine
        if FULL or not THREE:
            more, larger, counts, squares, largest, first = _pair(
                x_raw, y_raw, x, y, finite, inside, down * columns + along, atol, rtol, tiny, bases, nexts,
                WORD, MAGNITUDE, HEIGHT * WIDE, FULL,
            )  # fmt: skip
            adds += more
            maxima = tl.maximum(maxima, larger)
            histogram += counts.to(tl.int64)
            where_most = tl.where(largest > most, first, where_most)
            most = tl.maximum(most, largest)
            if FULL and not THREE:
                _add_blocks(
                    squares, sums, row, column, rows, columns, row_step, column_step, tile_rows, tile_columns,
                    HEIGHT, WIDE, RS, CS, TR, TC,
                )  # fmt: skip
        if THREE:
            exact = tl.load(float64 + down * float64_row + along * float64_column, mask=inside, other=0.0)
            fine = y_fine & (tl.abs(exact) < float("inf"))
            finite = finite & fine
            more, larger, of_test, of_eager = _errors(x, y, exact, fine, x_fine)
            adds += more
            maxima = tl.maximum(maxima, larger)
            adds += _at(TEST_ERROR, _add_blocks(
                of_test, sums, row, column, rows, columns, row_step, column_step, tile_rows, tile_columns,
                HEIGHT, WIDE, RS, CS, TR, TC,
            ))  # fmt: skip
            adds += _at(EAGER_ERROR, _add_blocks(
                of_eager, sums + blocks, row, column, rows, columns, row_step, column_step, tile_rows, tile_columns,
                HEIGHT, WIDE, RS, CS, TR, TC,
            ))  # fmt: skip
        adds += _at(SPECIALS, tl.sum((~finite).to(tl.int32)).to(tl.float64))

    into = found + program.to(tl.int64) * LENGTH
    header = adds + maxima + _at(ARG_MAX, where_most.to(tl.float64))
    slots = tl.arange(0, SLOTS)
    tl.store(into + slots, header, mask=slots < HISTOGRAM)
    tl.store(into + HISTOGRAM + tl.arange(0, BIN_SLOTS), histogram.to(tl.float64))


@lru_cache(maxsize=8)
def _tables(device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Of every octave the bin that it begins in, and the power of ten inside it (one at most) at which the next begins;
    and which places of the header are maxima."""
    bounds = [10.0**exponent for exponent in DECADES]
    lows = [2.0 ** (octave - 68) for octave in range(OCTAVES)]
    bases = [1 + sum(bound <= low for bound in bounds) for low in lows]
    nexts = [next((bound for bound in bounds if low < bound < 2 * low), math.inf) for low in lows]
    bases[0], nexts[0] = 0, 5e-324  # zero, and all else that is too small
    maxima = [place in at.MAXIMA for place in range(HEADER)]
    return (
        torch.tensor(bases, dtype=torch.int32, device=device),
        torch.tensor(nexts, dtype=torch.float64, device=device),
        torch.tensor(maxima, device=device),
    )


def can_read(sides: tuple[Matrix, Matrix, Matrix | None]) -> bool:
    """Whether the kernel can read them where they are: as matrices with any strides, of a dtype it knows."""
    present = [side for side in sides if side is not None]
    in_place = all(side.tensor.dtype == side.dtype and side.tensor.device == side.device for side in present)
    return in_place and present[1].dtype in DTYPES and all(side.view is not None for side in present)


def measure(grid: Grid, rule: Rule, sides: tuple[Matrix, Matrix, Matrix | None], *, full: bool) -> Figures:
    """One pass over sides that `can_read`; the values of the worst element come along, so that nothing more is read."""
    views = [side.view for side in sides if side is not None and side.view is not None]
    reference, test, exact, three = views[0], views[1], views[-1], len(views) == 3
    device, dtype = test.device, test.dtype
    figures = Figures.empty(grid, three=three, full=full)
    height, width = _area(grid)
    areas_across = -(-grid.columns // width)
    areas = areas_across * -(-grid.rows // height)
    numbers = torch.tensor([rule.atol, rule.rtol, torch.finfo(dtype).tiny], dtype=torch.float64)
    with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
        bases, nexts, maxima = _tables(device)
        programs = min(areas, PER_PROCESSOR * _processors(device))
        found = torch.empty(programs, ROW_LENGTH, dtype=torch.float64, device=device)
        packed = torch.zeros(len(figures.values) + 2, dtype=torch.float64, device=device)
        _pass[(programs,)](
            reference, test, exact, found, packed[HEADER:], numbers.to(device, non_blocking=True), bases, nexts,
            grid.rows, grid.columns, grid.blocks, areas, areas_across,
            *reference.stride(), *test.stride(), *exact.stride(),
            grid.row_step, grid.column_step, grid.tile_rows, grid.tile_columns, LENGTH=ROW_LENGTH,
            WORD=WORDS[dtype.itemsize], MAGNITUDE=2 ** (8 * dtype.itemsize - 1) - 1, HEIGHT=height, WIDE=width,
            RS=min(grid.row_step, height), CS=min(grid.column_step, width),
            TR=min(grid.tile_rows, height), TC=min(grid.tile_columns, width), THREE=three, FULL=full, num_warps=8,
        )  # fmt: skip
        _gather(found, packed, maxima, reference, test)
        values = packed.cpu().numpy()
    figures.values[:] = values[:-2]
    return Figures(figures.values, grid, three, full, (float(values[-2]), float(values[-1])))


def _area(grid: Grid) -> tuple[int, int]:
    """Rows and columns of an area: powers of two that waste little on tensors of few rows or few columns."""
    rows, columns = triton.next_power_of_2(grid.rows), triton.next_power_of_2(grid.columns)
    height = min(rows, AREA // min(WIDTH, columns))
    return height, min(columns, AREA // height)


def _gather(found: Tensor, packed: Tensor, maxima: Tensor, reference: Tensor, test: Tensor) -> None:
    """The programs' rows into one header, and the worst element's values at the end. All of it on the device: an index
    of one element is not read here, as one without dims would be."""
    header = found[:, :HEADER]
    packed[:HEADER] = torch.where(maxima, header.amax(0), header.sum(0))
    best = header[:, at.MAX_ABS].argmax(keepdim=True)
    index = header[best, at.ARG_MAX]
    packed[at.ARG_MAX : at.ARG_MAX + 1] = index
    row, column = index.long() // test.shape[1], index.long() % test.shape[1]
    packed[-2:-1], packed[-1:] = reference[row, column], test[row, column]


def _processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2
