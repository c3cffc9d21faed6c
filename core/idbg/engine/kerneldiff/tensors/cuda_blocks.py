"""Triton code that adds an area of a tensor to the sums of its rows, columns and tiles.

Rows are added up area by area. The sums of columns and tiles are accumulated as (columns, tiles, the sum of all) until
these end.
"""

# Triton has no types, and its kernels are not Python: their annotations mean something else.
# mypy: disable-error-code="import-untyped, no-untyped-def, untyped-decorator, misc, no-untyped-call"

import triton
import triton.language as tl


@triton.jit
def fold(values, BY: tl.constexpr):
    """Of every `BY` neighbours in a row."""
    if BY > 1:
        values = tl.sum(tl.reshape(values, (values.shape[0], values.shape[1] // BY, BY)), 2)
    return values


@triton.jit
def keep(squares, kept, CS: tl.constexpr, TC: tl.constexpr):
    """Adds an area's squared errors to what is kept for its columns and tiles; gives the sums of rows' pieces too."""
    by_column, by_tile, error = kept
    groups = fold(squares, CS)
    narrow = fold(groups, TC // CS)
    return (by_column + groups, by_tile + narrow, error), narrow


@triton.jit
def add_rows(by_row, sums, row, rows, row_bits):
    """Adds the sums of an area's rows, which begin at `row`, to those of the groups of rows."""
    place = row + tl.arange(0, by_row.shape[0])
    tl.atomic_add(sums + (place >> row_bits), by_row, mask=place < rows, sem="relaxed")


@triton.jit
def _add_columns(by_column, sums, column, rows, columns, row_bits, column_bits):
    """Adds what was kept, down to the end of a column of areas."""
    place = (column >> column_bits) + tl.arange(0, by_column.shape[1])
    sums += ((rows - 1) >> row_bits) + 1
    tl.atomic_add(sums + place, tl.sum(by_column, 0), mask=place <= (columns - 1) >> column_bits, sem="relaxed")


@triton.jit
def _add_tiles(
    by_tile, sums, row, column, rows, columns, row_bits, column_bits, tile_row_bits, tile_column_bits,
    TR: tl.constexpr,
):  # fmt: skip
    """Adds what was kept, down to the end of a row of tiles; gives the sum of it. Areas and blocks are powers of two:
    none straddles another."""
    across = ((columns - 1) >> tile_column_bits) + 1
    tiles = tl.sum(tl.reshape(by_tile, (by_tile.shape[0] // TR, TR, by_tile.shape[1])), 1)
    top = ((row >> tile_row_bits) + tl.arange(0, tiles.shape[0]))[:, None]
    left = ((column >> tile_column_bits) + tl.arange(0, tiles.shape[1]))[None, :]
    inside = (top <= (rows - 1) >> tile_row_bits) & (left < across)
    sums += ((rows - 1) >> row_bits) + ((columns - 1) >> column_bits) + 2
    tl.atomic_add(sums + top * across + left, tiles, mask=inside, sem="relaxed")
    return tl.sum(tiles)


@triton.jit
def _leave_tiles(
    kept, sums, row, column, rows, columns, row_bits, column_bits, tile_row_bits, tile_column_bits, TR: tl.constexpr
):
    by_column, by_tile, error = kept
    error += _add_tiles(
        by_tile, sums, row, column, rows, columns, row_bits, column_bits, tile_row_bits, tile_column_bits, TR
    )
    return by_column, tl.zeros_like(by_tile), error


@triton.jit
def _leave_columns(kept, sums, column, rows, columns, row_bits, column_bits):
    by_column, by_tile, error = kept
    _add_columns(by_column, sums, column, rows, columns, row_bits, column_bits)
    return tl.zeros_like(by_column), by_tile, error


@triton.jit
def leave_blocks(
    test, eager, sums, blocks, row, column, rows, columns,
    row_bits, column_bits, tile_row_bits, tile_column_bits, below, last, TR: tl.constexpr, THREE: tl.constexpr,
):  # fmt: skip
    """Adds what was kept of both sides where a row of tiles ends, which `below` is the row under, and where it is the
    `last` area of a column of areas or of the program; gives what is kept from there on.
    """
    if last | (below >> tile_row_bits != row >> tile_row_bits):
        test = _leave_tiles(
            test, sums, row, column, rows, columns, row_bits, column_bits, tile_row_bits, tile_column_bits, TR
        )
        if THREE:
            eager = _leave_tiles(
                eager, sums + blocks, row, column, rows, columns,
                row_bits, column_bits, tile_row_bits, tile_column_bits, TR,
            )  # fmt: skip
    if last:
        test = _leave_columns(test, sums, column, rows, columns, row_bits, column_bits)
        if THREE:
            eager = _leave_columns(eager, sums + blocks, column, rows, columns, row_bits, column_bits)
    return test, eager
