"""Find NaN and infinities: in one tensor, and where two or three sides differ in them."""

from dataclasses import dataclass
from typing import Literal, TypeGuard

import numpy as np
import torch
from torch import Tensor

from idbg.engine.kerneldiff.tensors.figures import Grid, Rule, Vector
from idbg.engine.kerneldiff.tensors.pieces import Matrix, Piece, pieces
from idbg.engine.kerneldiff.tensors.sums import add_blocks
from idbg.engine.kerneldiff.tensors.wrapped import parts
from idbg.schema.diff import Counts

NAN, POSITIVE, NEGATIVE = 1, 2, 3
NONE = Counts()


What = Literal["nan", "inf"]
NAN_KINDS: tuple[What, ...] = ("nan", "inf")


@dataclass(frozen=True)
class FirstNonfinite:
    """How many elements are of a kind, and the index of the first of them."""

    what: What
    index: tuple[int, ...]
    count: int


def can_hold(value: object) -> TypeGuard[Tensor]:
    """Whether it is a readable tensor of numbers that may be NaN."""
    if not isinstance(value, Tensor) or not (value.is_floating_point() or value.is_complex()):
        return False
    return value.layout == torch.strided and not value.is_quantized and not value.is_meta and not parts(value)


def is_finite(value: Tensor) -> bool:
    """Whether every element is finite."""
    return bool(_readable(value).isfinite().all())


def mask(value: Tensor, what: What) -> Tensor:
    """True where an element is of this kind."""
    readable = _readable(value)
    return readable.isnan() if what == "nan" else readable.isinf()


def first_of(where: Tensor, what: What) -> FirstNonfinite | None:
    """The elements that a mask marks; None if it marks none."""
    count = int(where.sum())
    if not count:
        return None
    first = int(where.reshape(-1).to(torch.uint8).argmax())
    index: list[int] = []
    for size in reversed(where.shape):
        index.append(first % size)
        first //= size
    return FirstNonfinite(what, tuple(reversed(index)), count)


def _readable(value: Tensor) -> Tensor:
    """In a dtype that torch can compute with: not in one of 8 bits."""
    return value.float() if value.element_size() == 1 else value


@dataclass
class NonfiniteCounts:
    """The elements that the pass left out. `finite` elements are finite on both sides, `finite_float64` in the
    test and in float64. `differing` are of different kinds on the two sides; `nans` and `infs` are the test's
    errors among them (not where the test has what float64 has). `first` is the flat index of the first error,
    else of the first that differs.
    """

    finite: int
    finite_float64: int
    nan: Counts = NONE
    posinf: Counts = NONE
    neginf: Counts = NONE
    differing: int = 0
    nans: int = 0
    infs: int = 0
    first: int | None = None
    left_out: Vector | None = None  # of every block, how many elements are in no sum


def find(grid: Grid, sides: tuple[Matrix, Matrix, Matrix | None], equal_nan: bool, rule: Rule) -> NonfiniteCounts:
    """Read every element again; only needed if the pass met something nonfinite.

    `rule` is for the finite part of a complex number whose other part is infinite.
    """
    elements = grid.elements
    counts = NonfiniteCounts(elements, elements, left_out=np.zeros(grid.blocks))
    for piece in pieces(grid):
        reference, test = (side.at(piece) for side in sides[:2])
        exact = None if sides[2] is None else sides[2].at(piece).to(sides[1].dtype)
        differing, blamed = _differing(reference, test, exact, equal_nan, rule)
        third = None if exact is None else _kinds(exact)
        _add(counts, grid, piece, _kinds(reference), _kinds(test), third, differing, blamed)
    return counts


def _kinds(value: Tensor) -> Tensor:
    """0 for what is finite, else NAN, POSITIVE or NEGATIVE; a complex number has no sign."""
    value = _readable(value)
    infinite = value.isinf() if value.is_complex() else value.isposinf()
    kinds = torch.where(infinite, POSITIVE, 0)
    if not value.is_complex():
        kinds = torch.where(value.isneginf(), NEGATIVE, kinds)
    return torch.where(value.isnan(), NAN, kinds).to(torch.int8)


def _differing(
    reference: Tensor, test: Tensor, exact: Tensor | None, equal_nan: bool, rule: Rule
) -> tuple[Tensor, Tensor]:
    """Where the test is nonfinite in another way than the reference, and where that is its error."""
    differing = _unlike(reference, test, rule)
    if not equal_nan:
        differing |= reference.isnan()
    return differing, differing if exact is None else differing & _unlike(exact, test, rule)


def _unlike(one: Tensor, other: Tensor, rule: Rule) -> Tensor:
    """Where two values are of different kinds; of complex numbers both parts count: inf+1j is not inf+5j."""
    unlike = _kinds(one) != _kinds(other)
    if not one.is_complex():
        return unlike
    far = torch.zeros_like(unlike)
    for left, right in zip(_parts(one), _parts(other), strict=True):
        finite = left.isfinite() & right.isfinite()
        far |= torch.where(finite, (left - right).abs() > rule.atol + rule.rtol * left.abs(), left != right)
    return unlike | (one.isinf() & other.isinf() & ~one.isnan() & ~other.isnan() & far)


def _parts(value: Tensor) -> tuple[Tensor, Tensor]:
    wide = value.to(torch.complex128)
    return wide.real, wide.imag


def _add(
    counts: NonfiniteCounts,
    grid: Grid,
    piece: Piece,
    reference: Tensor,
    test: Tensor,
    exact: Tensor | None,
    differing: Tensor,
    blamed: Tensor,
) -> None:
    left_out = (reference | test) != 0
    if exact is not None:
        counts.finite -= int(left_out.sum())
        left_out = (test | exact) != 0
        counts.finite_float64 -= int(left_out.sum())
    else:
        counts.finite -= int(left_out.sum())
    assert counts.left_out is not None
    add_blocks(grid, torch.from_numpy(counts.left_out), piece, left_out.double())
    counts.nan = _counted(counts.nan, reference == NAN, test == NAN)
    counts.posinf = _counted(counts.posinf, reference == POSITIVE, test == POSITIVE)
    counts.neginf = _counted(counts.neginf, reference == NEGATIVE, test == NEGATIVE)
    if not differing.any():
        return
    counts.differing += int(differing.sum())
    nans = blamed & ((reference == NAN) | (test == NAN))
    blame_before = counts.nans + counts.infs
    counts.nans += int(nans.sum())
    counts.infs += int((blamed & ~nans).sum())
    if counts.first is None or (blame_before == 0 and bool(blamed.any())):
        row, column = divmod(int((blamed if blamed.any() else differing).int().argmax()), piece.columns)
        counts.first = (piece.row + row) * grid.columns + piece.column + column


def _counted(counts: Counts, reference: Tensor, test: Tensor) -> Counts:
    return Counts(
        counts.reference + int(reference.sum()),
        counts.test + int(test.sum()),
        counts.disagree + int((reference != test).sum()),
    )
