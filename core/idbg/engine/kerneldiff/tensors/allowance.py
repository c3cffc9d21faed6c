"""Bounds of the error of an output of the program, or of one kernel.

Errors are measured against float64, and a bound is `factor * eager's error + floor`. An output may be K times as wrong
as eager's. A launch that starts from the inputs it really received may be GIVEN_K times as wrong as eager from the same
inputs, and a part of a graph, for which these are not available, KERNEL_K times the worst of eager's error and its
inputs'.

docs/numerics.md has the formulas and, for each constant, the reason and the test that fails without it.
"""

from dataclasses import dataclass
from math import inf, sqrt
from typing import Final, NamedTuple

import numpy as np
import torch

from idbg.engine.kerneldiff.tensors.figures import Vector
from idbg.schema.diff import Criterion, Term

KERNEL_K: Final = 10.0
GIVEN_K: Final = 3.0
MAXIMUM_FACTOR = 4.0
SMALL = 3.0
CLOSE = 1.6e-2
BLOCK = 5.0
FOUND, LOST, NOISE, FEWEST = 0.1, 0.5, 2.0, 4
FAR, ZEROS, CANCELLED = 0.75, 0.9, 1e-6
_FLOAT32 = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Allowance:
    """The bounds for a dtype: `eps` and `tiny` are its finfo's. Eager's error is the worst of `samples` runs."""

    k: float
    eps: float
    tiny: float
    gradient: bool = False
    samples: int = 1

    @classmethod
    def of(cls, dtype: torch.dtype, k: float, gradient: bool = False, samples: int = 1) -> "Allowance":
        """The bounds for values of this dtype; those of integers are float64's."""
        info = torch.finfo(dtype if dtype.is_floating_point or dtype.is_complex else torch.float64)
        return cls(k, info.eps, info.tiny, gradient, samples)

    @property
    def ulps(self) -> float:
        """The number of ulps that are no error."""
        return 4.0 if self.eps < 1e-6 else 1.0

    def floor(self, magnitude: float, count: float) -> float:
        """The error that rounding alone allows in `count` elements of this magnitude."""
        return self.ulps * (1 + self.ulps**2 / count) * self.eps * max(magnitude, self.tiny)

    def terms(self, eager: float, magnitude: float, count: float, times: float = 1.0) -> tuple[Term, ...]:
        """The terms of the bound for an error of eager's in `count` elements of this magnitude: `times` `k`,
        and rounding.
        """
        k = times * self.k
        growth = k * ((1 + SMALL / (count * self.samples)) ** 2 - 1) * eager
        few = growth if self.gradient or eager > magnitude else min(growth, times * CLOSE * magnitude)
        return Term("eager", k * eager, k), Term("few", few), Term("rounding", self.floor(magnitude, count))

    def rmse(self, test: float, eager: float, magnitude: float, count: float) -> Criterion:
        """The rule for the RMSE of `count` elements: the test's, eager's and the RMS of float64."""
        terms = self.terms(eager, magnitude, count)
        zeros = ZEROS * (1 + SMALL / count) ** 2 * magnitude
        if eager < FAR * magnitude and total(terms) > zeros:
            terms = (Term("values", zeros, zeros / magnitude),)
        return Criterion("rmse", test, total(terms), terms)

    def maximum(self, test: float, eager: float, magnitude: float, count: float) -> Criterion:
        """The rule for the largest error: the test's, eager's and the largest magnitude of float64."""
        *terms, rounding = self.terms(eager, magnitude, count, MAXIMUM_FACTOR)
        twice = (*terms, Term("rounding", 2 * rounding.amount))
        return Criterion("maximum", test, total(twice), twice)

    def factors(self, counts: Vector) -> Vector:
        """The allowed factor of eager's error for each block of `counts` elements."""
        grown: Vector = BLOCK * self.k * (1 + SMALL / counts) ** 2
        return grown

    def floors(self, magnitude: float, counts: Vector) -> Vector:
        """The error that rounding alone allows in each block of `counts` elements."""
        least = self.ulps * self.eps * max(magnitude, self.tiny)
        floors: Vector = least * (1 + self.ulps**2 / counts)
        return floors

    def noise(self, eager: float, magnitude: float) -> float:
        """The error that rounding allows in any block, however small its values; `eager` is eager's error in
        all of the tensor.
        """
        once = self.eps / 2 * magnitude
        beyond = sqrt(max(eager - once, 0.0)) * sqrt(eager + once)  # of float64, squares may be beyond its range
        return NOISE * self.k * beyond + 4 * _FLOAT32 * max(magnitude, self.tiny)


def total(terms: tuple[Term, ...]) -> float:
    """The sum of a bound's terms."""
    return sum(term.amount for term in terms)


def is_rounding_alone(magnitude: float, eager: float) -> bool:
    """Whether values of this RMS in float64, of which eager has this error, are zero in mathematics (a sum that
    cancels): all that eager holds is rounding, and an error relative to float64's values says nothing.
    """
    return magnitude < CANCELLED * eager


class Size(NamedTuple):
    """An error relative to the RMS of the right values: the RMSE of all elements, and the largest."""

    rmse: float = 0.0
    maximum: float = 0.0


@dataclass(frozen=True)
class KernelAllowance:
    """The bounds for a kernel's output of `count` elements in `dtype`; `largest` is its largest magnitude over
    its RMS in float64.
    """

    dtype: torch.dtype
    count: int
    largest: float
    k: float = KERNEL_K

    def of(self, worst: Size) -> Size:
        """The error that is allowed where `worst` is the worst of eager's, the inputs' and rounding's."""
        count = max(1, self.count)
        factor = self.k * max(1.0, 8 / sqrt(count))
        if not (self.dtype.is_floating_point or self.dtype.is_complex):
            flips = sqrt(self.k * worst.rmse + (4 / count if count >= 64 else 0))
            return Size(max(factor * worst.rmse, flips), inf)
        once = epsilon(self.dtype) / 2
        return Size(factor * max(worst.rmse, once), factor * max(worst.maximum, once * self.largest))


def epsilon(dtype: torch.dtype) -> float:
    """An ulp of 1.0. Of float64 it is that of sums of thousands of numbers, as the reference is no better itself."""
    if not (dtype.is_floating_point or dtype.is_complex):
        return torch.finfo(torch.float32).eps
    return max(torch.finfo(dtype).eps, 1e-13)
