"""Triton code of one pass over tensors, which `cuda.py` launches.

What threads tell each other costs more than what they read. So each one keeps its own sums, maxima and columns over all
areas that it sees, and only rows of squared errors and the histogram are added up area by area (`cuda_blocks.py`).
"""

# Triton has no types, and its kernels are not Python: their annotations mean something else.
# mypy: disable-error-code="import-untyped, no-untyped-def, untyped-decorator, misc, no-untyped-call"

import triton
import triton.language as tl

from idbg.engine.kerneldiff.tensors import figures as at
from idbg.engine.kerneldiff.tensors.cuda_blocks import add_rows, fold, keep, leave_blocks

SLOTS = tl.constexpr(32)  # the header's places up to the next power of two
BINS = tl.constexpr(32)  # the histogram without the equal ones, which are the rest
LENGTH = tl.constexpr(64)  # of what one program leaves: both of these
LOWEST, HIGHEST = tl.constexpr(-69), tl.constexpr(36)  # powers of two below 1e-20, and above 1e10
IS_MAXIMUM = tl.constexpr(sum(1 << place for place in at.MAXIMA))
HISTOGRAM, NONFINITE, SUM_ABS, SUM_SQUARES = map(tl.constexpr, (at.HISTOGRAM, at.NONFINITE, at.SUM_ABS, at.SUM_SQUARES))
MAX_ABS, ARG_MAX, SUM_REL, MAX_REL, MAX_SCALED, MISMATCHES = map(
    tl.constexpr, (at.MAX_ABS, at.ARG_MAX, at.SUM_REL, at.MAX_REL, at.MAX_SCALED, at.MISMATCHES)
)
REFERENCE_SQUARES, TEST_SQUARES, PRODUCTS, MAX_ULP = map(
    tl.constexpr, (at.REFERENCE_SQUARES, at.TEST_SQUARES, at.PRODUCTS, at.MAX_ULP)
)
TEST_ERROR, EAGER_ERROR, TEST_MAX, EAGER_MAX, FLOAT64_SQUARES, FLOAT64_MAX = map(
    tl.constexpr, (at.TEST_ERROR, at.EAGER_ERROR, at.TEST_MAX, at.EAGER_MAX, at.FLOAT64_SQUARES, at.FLOAT64_MAX)
)

# Whatever they are, the same code is compiled: Triton would make one for each of them that is 1 or a multiple of 16. Of
# `columns` and the strides it has to know, or it reads number by number
ANY = (
    "rows", "blocks", "bands", "areas", "each", "row_bits", "column_bits", "tile_row_bits", "tile_column_bits",
)  # fmt: skip


@triton.jit
def _greater(one, other):
    """tl.maximum also asks which one is NaN: of float64, that takes longer."""
    return tl.where(one > other, one, other)


@triton.jit
def _max(values, BY: tl.constexpr):
    if BY > 1:
        values = tl.reduce(tl.reshape(values, (values.shape[0], values.shape[1] // BY, BY)), 2, _greater)
    return values


@triton.jit
def _larger(value, by, other_value, other_by):
    """Of two quotients: compared without dividing, which is slow."""
    other = other_value * by > value * other_by
    return tl.where(other, other_value, value), tl.where(other, other_by, by)


@triton.jit
def _ordered(value):
    """Bits as integers in the order of the numbers: neighbours are 1 apart, both zeros are 0."""
    if value.dtype.primitive_bitwidth == 64:
        bits = value.to(tl.int64, bitcast=True)
        sign, magnitude = bits >> 63, 0x7FFFFFFFFFFFFFFF
    elif value.dtype.primitive_bitwidth == 32:
        bits = value.to(tl.int32, bitcast=True)
        sign, magnitude = bits >> 31, 0x7FFFFFFF
    else:
        bits = value.to(tl.int16, bitcast=True).to(tl.int32)
        sign, magnitude = bits >> 31, 0x7FFF
    return (bits ^ (sign & magnitude)) - sign


@triton.jit
def _apart(x, y, both):
    """How many numbers lie between: without a sign, or half of them would not fit."""
    p, q = _ordered(x), _ordered(y)
    between = tl.where(both, tl.maximum(p, q) - tl.minimum(p, q), 0)
    UNSIGNED: tl.constexpr = tl.uint64 if between.dtype == tl.int64 else tl.uint32
    return between.to(UNSIGNED, bitcast=True)


@triton.jit
def _counts(d, powers, SIZE: tl.constexpr):
    """The histogram of an area: which power of two a difference is tells its power of ten, or the one before it."""
    d = tl.reshape(d, (SIZE,))
    if d.dtype == tl.float64:
        octave = ((d.to(tl.int64, bitcast=True) >> 52) - 1023).to(tl.int32)
    else:
        octave = (d.to(tl.int32, bitcast=True) >> 23) - 127
    octave = tl.minimum(tl.maximum(octave, LOWEST), HIGHEST)
    slot = (octave * 1233 >> 12) + 21  # log10(2) is 1233 / 4096
    slot += (d >= tl.gather(powers, slot, 0)).to(tl.int32)
    return tl.histogram(slot, BINS, mask=d > 0.0)


@triton.jit
def _both(one, other, more_of_one, more_of_other):
    return one + more_of_one, other + more_of_other


@triton.jit
def _at(PLACE: tl.constexpr, value):
    """A header that holds `value` at one place."""
    return tl.where(tl.arange(0, SLOTS) == PLACE, value, 0.0)


@triton.jit
def _add_pair(kept, a, b, allowed, area, FOLD: tl.constexpr):
    """What a verdict on two sides needs; gives their differences too."""
    squares, a_squares, over, most, where_most = kept
    d = tl.abs(b - a)
    more = d > most
    most, where_most = tl.where(more, d, most), tl.where(more, area, where_most)
    over += fold((d > allowed).to(tl.int32), FOLD)
    return d, (squares + fold(d * d, FOLD), a_squares + fold(a * a, FOLD), over, most, where_most)


@triton.jit
def _pair_header(kept, down, along, columns, bands):
    squares, a_squares, over, most, where_most = kept
    largest = tl.max(most)
    i = (where_most % bands).to(tl.int64) * down.shape[0] + down
    flat = i * columns + (where_most // bands).to(tl.int64) * along.shape[1] + along
    first = tl.min(tl.where(most == largest, flat, 0x7FFFFFFFFFFFFFFF))
    header = _at(MAX_ABS, largest) + _at(ARG_MAX, first.to(tl.float64)) + _at(MISMATCHES, tl.sum(over).to(tl.float64))
    return header + _at(SUM_SQUARES, tl.sum(squares)) + _at(REFERENCE_SQUARES, tl.sum(a_squares))


@triton.jit
def _add_metrics(kept, a, b, d, allowed, size, apart, FOLD: tl.constexpr):
    """What only a full comparison needs, but for the histogram."""
    b_squares, products, sum_abs, sum_rel, max_rel, max_ulp, scaled, scaled_by = kept
    relative = d * (1.0 / size).to(tl.float64)
    by = tl.where(d > 0.0, allowed, 1.0)
    if size.dtype == tl.float64:  # products could be too large
        d_by, by = d / by, tl.full(d.shape, 1.0, tl.float64)
    else:
        d_by = d
    if FOLD > 1:
        parts: tl.constexpr = (d.shape[0], d.shape[1] // FOLD, FOLD)
        d_by, by = tl.reduce((tl.reshape(d_by, parts), tl.reshape(by, parts)), 2, _larger)
    scaled, scaled_by = _larger(scaled, scaled_by, d_by, by)
    max_rel, max_ulp = _greater(max_rel, _max(relative, FOLD)), tl.maximum(max_ulp, _max(apart, FOLD))
    b_squares, products = b_squares + fold(b * b, FOLD), products + fold(a * b, FOLD)
    sum_abs, sum_rel = sum_abs + fold(d, FOLD), sum_rel + fold(relative, FOLD)
    return b_squares, products, sum_abs, sum_rel, max_rel, max_ulp, scaled, scaled_by


@triton.jit
def _metrics_header(kept):
    b_squares, products, sum_abs, sum_rel, max_rel, max_ulp, scaled, scaled_by = kept
    header = _at(SUM_ABS, tl.sum(sum_abs)) + _at(SUM_REL, tl.sum(sum_rel))
    header += _at(TEST_SQUARES, tl.sum(b_squares)) + _at(PRODUCTS, tl.sum(products))
    header += _at(MAX_REL, tl.max(max_rel)) + _at(MAX_SCALED, tl.max(scaled / scaled_by))
    return header + _at(MAX_ULP, tl.max(max_ulp).to(tl.float64))


@triton.jit
def _add_errors(kept, of_test, of_eager, exact, FOLD: tl.constexpr):
    """Of both sides against float64, but for the sums that blocks have."""
    test_max, eager_max, exact_max, exact_squares = kept
    test_max, eager_max = _greater(test_max, _max(of_test, FOLD)), _greater(eager_max, _max(of_eager, FOLD))
    exact_max = _greater(exact_max, _max(tl.abs(exact), FOLD))
    return test_max, eager_max, exact_max, exact_squares + fold(exact * exact, FOLD)


@triton.jit
def _errors_header(kept):
    test_max, eager_max, exact_max, exact_squares = kept
    header = _at(TEST_MAX, tl.max(test_max)) + _at(EAGER_MAX, tl.max(eager_max))
    return header + _at(FLOAT64_MAX, tl.max(exact_max)) + _at(FLOAT64_SQUARES, tl.sum(exact_squares))


@triton.jit
def _read(side, i, j, side_row, side_column, inside):
    return tl.load(side + i * side_row + j * side_column, mask=inside, other=0.0)


@triton.jit
def _add_two_sides(
    kept, x_raw, y_raw, x, y, both, numbers, bounds, area,
    FOLD: tl.constexpr, FULL: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """What an area says of the reference and the test; gives their differences too."""
    pair, metrics, histogram = kept
    atol, rtol, tiny = numbers
    near, far = tl.where(both, x, 0.0), tl.where(both, y, 0.0)
    a, b = near.to(tl.float64), far.to(tl.float64)
    allowed = atol + rtol * tl.abs(a)
    d, pair = _add_pair(pair, a, b, allowed, area, FOLD)
    if FULL:
        size = tl.maximum(tl.abs(near), tiny.to(x.dtype))
        metrics = _add_metrics(metrics, a, b, d, allowed, size, _apart(x_raw, y_raw, both), FOLD)
        histogram += _counts(tl.abs(far - near), bounds, SIZE)
    return d, (pair, metrics, histogram)


@triton.jit
def _add_to_float64(
    errors, test_blocks, eager_blocks, x, y, x_fine, y_fine, exact, sums, blocks, row, rows, row_bits,
    FOLD: tl.constexpr, CS: tl.constexpr, TC: tl.constexpr,
):  # fmt: skip
    """What an area says of both sides against float64, and where the test and float64 are finite."""
    fine = y_fine & (tl.abs(exact) < float("inf"))
    exact = tl.where(fine, exact, 0.0)
    of_test = tl.where(fine, tl.abs(y.to(tl.float64) - exact), 0.0)
    of_eager = tl.where(fine & x_fine, tl.abs(x.to(tl.float64) - exact), 0.0)
    errors = _add_errors(errors, of_test, of_eager, exact, FOLD)
    test_blocks, of_test = keep(of_test * of_test, test_blocks, CS, TC)
    eager_blocks, of_eager = keep(of_eager * of_eager, eager_blocks, CS, TC)
    of_test, of_eager = tl.reduce((of_test, of_eager), 1, _both)
    add_rows(of_test, sums, row, rows, row_bits)
    add_rows(of_eager, sums + blocks, row, rows, row_bits)
    return fine, errors, test_blocks, eager_blocks


@triton.jit
def _leave_header(
    by_program, program, met, two, errors, down, along, columns, bands, THREE: tl.constexpr, FULL: tl.constexpr
):
    """The header of all areas of a program, and its histogram."""
    pair, metrics, histogram = two
    maxima, test_error, eager_error = errors
    header = _at(NONFINITE, tl.sum(met).to(tl.float64))
    if FULL or not THREE:
        header += _pair_header(pair, down, along, columns, bands)
    if FULL:
        header += _metrics_header(metrics)
    if THREE:
        header += _errors_header(maxima) + _at(TEST_ERROR, test_error) + _at(EAGER_ERROR, eager_error)
    into = by_program + program * LENGTH
    tl.store(into + tl.arange(0, SLOTS), header)
    tl.store(into + SLOTS + tl.arange(0, BINS), histogram.to(tl.float64))


@triton.jit(do_not_specialize=ANY)
def one_pass(
    reference, test, float64, by_program, sums, rule, powers, rows, columns, blocks, bands, areas, each,
    reference_row, reference_column, test_row, test_column, float64_row, float64_column,
    row_bits, column_bits, tile_row_bits, tile_column_bits, HEIGHT: tl.constexpr, WIDE: tl.constexpr,
    FOLD: tl.constexpr, CS: tl.constexpr, TR: tl.constexpr, TC: tl.constexpr,
    THREE: tl.constexpr, FULL: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """A program takes `each` areas, down the rows, and leaves one row of header and histogram in `found`."""
    NARROW: tl.constexpr = reference.dtype.element_ty.primitive_bitwidth <= 32
    WORK: tl.constexpr = tl.float32 if NARROW else tl.float64
    program = tl.program_id(0)
    numbers = tl.load(rule), tl.load(rule + 1), tl.load(rule + 2)
    bounds = tl.load(powers + tl.arange(0, BINS)).to(WORK)
    down, along = tl.arange(0, HEIGHT)[:, None], tl.arange(0, WIDE)[None, :]
    zeros, none = tl.zeros((HEIGHT, WIDE // FOLD), tl.float64), tl.zeros((HEIGHT, WIDE // FOLD), tl.int32)
    most, where_most = tl.zeros((HEIGHT, WIDE), tl.float64), tl.zeros((HEIGHT, WIDE), tl.int32)
    met, histogram, pair = none, tl.zeros((BINS,), tl.int32), (zeros, zeros, none, most, where_most)
    metrics = (zeros, zeros, zeros, zeros, zeros, none.to(tl.uint32 if NARROW else tl.uint64), zeros, zeros + 1.0)
    two, errors = (pair, metrics, histogram), (zeros, zeros, zeros, zeros)
    no_columns, no_tiles = tl.zeros((HEIGHT, WIDE // CS), tl.float64), tl.zeros((HEIGHT, WIDE // TC), tl.float64)
    test_blocks, eager_blocks = (no_columns, no_tiles, numbers[2] * 0.0), (no_columns, no_tiles, numbers[2] * 0.0)

    for area in tl.range(program * each, min(program * each + each, areas), num_stages=STAGES):
        row, column = (area % bands).to(tl.int64) * HEIGHT, (area // bands).to(tl.int64) * WIDE
        i, j = row + down, column + along
        inside = (i < rows) & (j < columns)
        x_raw = _read(reference, i, j, reference_row, reference_column, inside)
        y_raw = _read(test, i, j, test_row, test_column, inside)
        x, y = x_raw.to(WORK), y_raw.to(WORK)
        x_fine, y_fine = tl.abs(x) < float("inf"), tl.abs(y) < float("inf")
        both = x_fine & y_fine
        finite = both
        if FULL or not THREE:
            d, two = _add_two_sides(two, x_raw, y_raw, x, y, both, numbers, bounds, area, FOLD, FULL, HEIGHT * WIDE)
        if FULL and not THREE:
            test_blocks, of_rows = keep(d * d, test_blocks, CS, TC)
            add_rows(tl.sum(of_rows, 1), sums, row, rows, row_bits)
        if THREE:
            exact = _read(float64, i, j, float64_row, float64_column, inside)
            fine, errors, test_blocks, eager_blocks = _add_to_float64(
                errors, test_blocks, eager_blocks, x, y, x_fine, y_fine, exact, sums, blocks, row, rows, row_bits,
                FOLD, CS, TC,
            )  # fmt: skip
            finite = both & fine
        met += fold((~finite).to(tl.int32), FOLD)
        if FULL or THREE:
            last = (area + 1 == areas) | (area + 1 == program * each + each) | (area % bands == bands - 1)
            test_blocks, eager_blocks = leave_blocks(
                test_blocks, eager_blocks, sums, blocks, row, column, rows, columns,
                row_bits, column_bits, tile_row_bits, tile_column_bits, row + HEIGHT, last, TR, THREE,
            )  # fmt: skip

    against_float64 = errors, test_blocks[2], eager_blocks[2]
    _leave_header(by_program, program, met, two, against_float64, down, along, columns, bands, THREE, FULL)


@triton.jit(do_not_specialize=("programs", "end", "rows", "columns"))
def gather(
    by_program, packed, reference, test, programs, end, rows, columns,
    reference_row, reference_column, test_row, test_column, PROGRAMS: tl.constexpr, FULL: tl.constexpr,
):  # fmt: skip
    """The programs' rows into one header, and the worst element's values at the end."""
    slots = tl.arange(0, LENGTH)
    maxima = (slots < SLOTS) & ((IS_MAXIMUM >> (slots & 31)) & 1 == 1)
    total = tl.zeros((PROGRAMS, LENGTH), tl.float64)
    most = tl.zeros((PROGRAMS,), tl.float64)
    first = tl.zeros((PROGRAMS,), tl.float64) + float("inf")
    for start in range(0, programs, PROGRAMS):
        program = start + tl.arange(0, PROGRAMS)
        there = program < programs
        rows_found = tl.load(by_program + program[:, None] * LENGTH + slots[None, :], mask=there[:, None], other=0.0)
        total = tl.where(maxima[None, :], tl.maximum(total, rows_found), total + rows_found)
        largest = tl.load(by_program + program * LENGTH + MAX_ABS, mask=there, other=-1.0)
        place = tl.load(by_program + program * LENGTH + ARG_MAX, mask=there, other=0.0)
        first = tl.where(largest > most, place, tl.where(largest == most, tl.minimum(first, place), first))
        most = tl.maximum(most, largest)
    worst = tl.min(tl.where(most == tl.max(most), first, float("inf")))
    header = tl.where(maxima, tl.max(total, 0), tl.sum(total, 0))
    header = tl.where(slots == ARG_MAX, worst, header)
    counted = tl.sum(tl.where(slots >= SLOTS, header, 0.0))
    tl.store(packed + slots, header, mask=slots < HISTOGRAM)
    if FULL:
        tl.store(packed + HISTOGRAM, tl.full((), rows, tl.float64) * columns - counted)
        tl.store(packed + HISTOGRAM + 1 + slots - SLOTS, header, mask=slots >= SLOTS)
    i, j = worst.to(tl.int64) // columns, worst.to(tl.int64) % columns
    tl.store(packed + end, tl.load(reference + i * reference_row + j * reference_column).to(tl.float64))
    tl.store(packed + end + 1, tl.load(test + i * test_row + j * test_column).to(tl.float64))
