"""Read a tensor of any dtype and strides as a matrix, piece by piece, without copying all of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import torch
from torch import Tensor

from idbg.engine.kerneldiff.tensors.figures import Grid

CHUNK = 1 << 16  # elements: the buffers that hold a chunk's steps fit into a 2 MB cache
INTS: Final = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True)
class Piece:
    """Where a piece lies: `rows` x `columns` from (`row`, `column`)."""

    row: int
    rows: int
    column: int
    columns: int


def pieces(grid: Grid, chunk: int = CHUNK) -> Iterator[Piece]:
    """At most `chunk` elements each: a power of two of whole rows, or a part of one row."""
    height = 1 << max(1, chunk // grid.columns).bit_length() - 1
    width = min(grid.columns, chunk)
    for row in range(0, grid.rows, height):
        for column in range(0, grid.columns, width):
            yield Piece(row, min(height, grid.rows - row), column, min(width, grid.columns - column))


class Matrix:
    """A tensor as rows x columns; pieces come as `dtype` on `device`."""

    def __init__(self, tensor: Tensor, grid: Grid, dtype: torch.dtype, device: torch.device) -> None:
        self.tensor, self.grid, self.dtype, self.device = tensor, grid, dtype, device

    @property
    def is_whole(self) -> bool:
        """Whether it is as it should be, row after row in memory."""
        tensor = self.tensor
        return tensor.dtype == self.dtype and tensor.device == self.device and tensor.is_contiguous()

    def on_cpu(self) -> "Matrix":
        """The same matrix in the computer's memory."""
        cpu = torch.device("cpu")
        return self if self.device == cpu else Matrix(self.tensor.to(cpu), self.grid, self.dtype, cpu)

    @cached_property
    def view(self) -> Tensor | None:
        """The tensor in two dims where it is; None where its rows lie at no single stride."""
        try:
            return self.tensor.view(self.grid.rows, self.grid.columns)
        except RuntimeError:  # its rows lie at no single stride: each piece gathers its own
            return None

    def at(self, piece: Piece) -> Tensor:
        """A piece in `dtype` on `device`, row after row in memory; a view of the tensor where that is so already."""
        if self.is_whole and not self.dtype.is_complex:
            start = self.tensor.storage_offset() + piece.row * self.grid.columns + piece.column
            return self.tensor.as_strided((piece.rows, piece.columns), (piece.columns, 1), start)
        rows, columns = slice(piece.row, piece.row + piece.rows), slice(piece.column, piece.column + piece.columns)
        if self.view is not None:
            values = self.view[rows, columns]
        else:
            numbers = torch.arange(rows.start, rows.stop, device=self.tensor.device)
            values = self.tensor[..., columns][torch.unravel_index(numbers, self.tensor.shape[:-1])]
        return values.to(self.device, self.dtype).resolve_conj().resolve_neg().contiguous()


def is_exact(dtype: torch.dtype) -> bool:
    """Integers and booleans."""
    return not (dtype.is_floating_point or dtype.is_complex)


def exact_difference(reference: Tensor, test: Tensor) -> Tensor:
    """|test - reference| of integers as float64: exact below 2**53, never zero for two that differ."""
    near = (_int64(test) - _int64(reference)).abs().double()  # wraps around where they are 2**63 and more apart
    far = (test.double() - reference.double()).abs()
    return torch.where(far < 2.0**62, near, far)


def _int64(value: Tensor) -> Tensor:
    return value.view(torch.int64) if value.dtype == torch.uint64 else value.to(torch.int64)


def ordered(value: Tensor) -> Tensor:
    """The bits of floats as integers in the order of the numbers: neighbours are 1 apart, both zeros are 0."""
    if value.dtype == torch.float8_e8m0fnu:  # powers of two, without a sign
        return value.view(torch.uint8).to(torch.int32)
    bits = value.view(INTS[value.element_size()])
    lowest = torch.iinfo(bits.dtype).min
    bits = bits if bits.element_size() >= 4 else bits.to(torch.int32)
    return torch.where(bits < 0, lowest - bits, bits)
