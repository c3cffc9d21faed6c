"""The figures of one pass over two or three tensors.

One vector of float64, whose layout the torch, C++ and Triton passes share: the header below, the histogram, then the
sums of squared errors of every block of rows, of columns and of tiles (of three sides: the test's, then eager's).
"""

from functools import cached_property, lru_cache
from math import prod

import msgspec
import numpy as np
import numpy.typing as npt

from idbg.schema.diff import DECADES

Vector = npt.NDArray[np.float64]

# Of the test against the reference, over what is finite on both sides (ARG_MAX: the flat index of MAX_ABS)
NONFINITE, SUM_ABS, SUM_SQUARES, MAX_ABS, ARG_MAX, SUM_REL, MAX_REL, MAX_SCALED, MISMATCHES = range(9)
REFERENCE_SQUARES, TEST_SQUARES, PRODUCTS, MAX_ULP = range(9, 13)
# Of both against float64, over what is finite in the test and in float64
TEST_ERROR, EAGER_ERROR, TEST_MAX, EAGER_MAX, FLOAT64_SQUARES, FLOAT64_MAX = range(13, 19)
HISTOGRAM = 19
BINS = len(DECADES) + 2
HEADER = HISTOGRAM + BINS
MAXIMA = (MAX_ABS, MAX_REL, MAX_SCALED, MAX_ULP, TEST_MAX, EAGER_MAX, FLOAT64_MAX)

# Groups and tiles are powers of two, so that a chunk of the data (a power of two as well) never straddles one. At most
# this many, so that the sums take 0.4 MB whatever the size of the tensor: they are copied from a GPU.
GROUPS, TILES, TILE = 4096, 128, 16


def _step(size: int, parts: int, least: int = 1) -> int:
    """The smallest power of two, not below `least`, of which at most `parts` cover `size`."""
    wanted = max(least, -(-size // parts))
    return 1 << (wanted - 1).bit_length()


def _lengths(size: int, step: int) -> Vector:
    """How long each piece is where `size` is cut every `step`: only the last one is shorter."""
    lengths = np.full(-(-size // step), float(step))
    lengths[-1] -= len(lengths) * step - size
    return lengths


class Grid(msgspec.Struct, frozen=True, dict=True, cache_hash=True):
    """The blocks of a tensor, seen as a matrix (leading dims flattened, last dim = columns)."""

    rows: int
    columns: int
    row_step: int
    column_step: int
    tile_rows: int
    tile_columns: int

    @cached_property
    def lengths(self) -> Vector:
        """The number of elements of each block."""
        heights, widths = _lengths(self.rows, self.tile_rows), _lengths(self.columns, self.tile_columns)
        rows = _lengths(self.rows, self.row_step) * self.columns
        columns = _lengths(self.columns, self.column_step) * self.rows
        return np.concatenate((rows, columns, np.multiply.outer(heights, widths).ravel()))

    @cached_property
    def tile_grid(self) -> tuple[int, int]:
        """The number of tiles down and across."""
        return -(-self.rows // self.tile_rows), -(-self.columns // self.tile_columns)

    @cached_property
    def ends(self) -> tuple[int, int, int]:
        """The ends of rows, columns and tiles in the sums of one side."""
        rows = -(-self.rows // self.row_step)
        columns = rows - (-self.columns // self.column_step)
        return rows, columns, columns + prod(self.tile_grid)

    @cached_property
    def spans(self) -> tuple[slice, slice, slice]:
        """The rows, columns and tiles in the sums of one side."""
        rows, columns, tiles = self.ends
        return slice(0, rows), slice(rows, columns), slice(columns, tiles)

    @property
    def blocks(self) -> int:
        """The number of sums of one side."""
        return self.ends[2]

    @property
    def elements(self) -> int:
        """The number of elements of one side."""
        return self.rows * self.columns


@lru_cache(maxsize=16)  # the lengths of a large one take 0.2 MB
def grid_of(rows: int, columns: int) -> Grid:
    """Tiles hold whole groups, since there are fewer of them and all are powers of two."""
    steps = _step(rows, GROUPS), _step(columns, GROUPS)
    return Grid(rows, columns, *steps, _step(rows, TILES, TILE), _step(columns, TILES, TILE))


class Rule(msgspec.Struct, frozen=True):
    """When an element is a mismatch: |d| > atol + rtol * |reference|."""

    atol: float
    rtol: float


class Scales(msgspec.Struct, frozen=True):
    """The powers of two by which numbers were multiplied before they were squared: squares may leave the range of
    float64.

    `error` is of the differences of both sides, `true_error` of those to float64.
    """

    error: float = 1.0
    reference: float = 1.0
    test: float = 1.0
    true_error: float = 1.0
    float64: float = 1.0


AS_THEY_ARE = Scales()
_SMALLEST, _LARGEST = 1e-150, 1e150  # whose squares float64 holds


class Figures(msgspec.Struct, frozen=True, dict=True):
    """The vector of one pass over the elements of `grid`; `full`: whether all of its header was measured.

    `worst` holds both values at ARG_MAX where the pass returned them: a GPU is read only once.
    """

    values: Vector
    grid: Grid
    three: bool
    full: bool
    worst: tuple[float, float] | None = None
    scales: Scales = AS_THEY_ARE

    @property
    def is_beyond(self) -> bool:
        """Whether some sum of squares may have left the range of float64."""
        header = self.header
        errors = header[MAX_ABS], header[TEST_MAX], header[EAGER_MAX]
        sizes = [header[REFERENCE_SQUARES], header[TEST_SQUARES]] if self.full else [header[REFERENCE_SQUARES]]
        sizes = sizes if self.full or not self.three else []
        squares = [*sizes, header[FLOAT64_SQUARES]] if self.three else sizes
        return any(error and not _SMALLEST < error < _LARGEST for error in errors) or any(
            not _SMALLEST**2 < square < _LARGEST**2 for square in squares
        )

    @property
    def block_scale(self) -> float:
        """The scale of the errors in the blocks' sums."""
        return self.scales.true_error if self.three else self.scales.error

    @classmethod
    def empty(cls, grid: Grid, *, three: bool, full: bool, scales: Scales = AS_THEY_ARE) -> "Figures":
        """A vector of zeros for a pass to fill."""
        return cls(np.zeros(cls.length(grid, three=three, full=full)), grid, three, full, scales=scales)

    @staticmethod
    def length(grid: Grid, *, three: bool, full: bool) -> int:
        """The number of figures."""
        return HEADER + (2 if three else 1 if full else 0) * grid.blocks

    @cached_property
    def header(self) -> list[float]:
        """The header, once the pass is over."""
        numbers: list[float] = self.values[:HEADER].tolist()
        return numbers

    def side(self, which: int) -> Vector:
        """The sums of squares of every block of one side: 0 is the test's, 1 eager's."""
        start = HEADER + which * self.grid.blocks
        return self.values[start : start + self.grid.blocks]
