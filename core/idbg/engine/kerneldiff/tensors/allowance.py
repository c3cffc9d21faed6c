"""How much worse than eager may a result be before it is wrong: an output of the program, or what one kernel wrote?

Both are held against float64, and both allowances are `factor * eager's error + floor`. There are two factors, since
two things are asked.

**An output may be K (3) times as wrong as eager's.** It is what people get, there are few of them, and float64, eager
and the test all begin from the same numbers. The constants, and why:

- A clean test is not eager's copy: it adds up in another order and rounds at other places, so its error may be `k` (3)
  times eager's. The largest of many errors scatters more than their RMSE: MAXIMUM_FACTOR times k.
- Of n elements the ratio of two RMSEs scatters like the square root of F(n, n): beyond all bounds for a scalar, by
  1e-6 beyond 8.8 for n = 8 and 1.8 for n = 64. So k grows by (1 + SMALL / n)**2: to 48 for a scalar, 5.7 for 8. That
  is for an eager that is right by luck: where it is as wrong as can be expected, 48 times that hides a wrong loss. So
  what the growth adds ends at CLOSE of the magnitude, bfloat16's rtol in torch.testing. One for all dtypes, because a
  float32 loss under autocast is bfloat16's work: resnet18's came to 4 times eager's 2e-4. Not of a gradient, nor of
  what is all rounding: its magnitude is below eager's error.
- Eager may be exact by luck, or because it computes nothing: `ulps` of the dtype, at the RMS of the tensor (for the
  maximum: twice that, at its largest magnitude), are no error. 4 in float32, where functions are good for 1 to 4 ulps;
  1 in 16 bits and less, where both sides compute in float32 and round once. Few elements add up long sums (a loss):
  there are more ulps, by 1 + ulps**2 / n.
- A block may be BLOCK times k as bad as the same block of eager's, or as all of eager's: where one element falls on
  the other side of a ReLU, a channel's gradient is off, and it is another channel in eager. Clean training runs of
  resnet18 come to 7 times k; a lost column, tail or tile is at millions in float32, and at hundreds in 16 bits.
- That hides the loss of a block whose values are small. It is lost where it is BLOCK times k as bad as the same block
  of eager's, and float64, which is read there only then, says that eager has it (its error is below FOUND of the
  block's size) and the test has not (above LOST of it). Of a gradient through noise that is luck now and then. So it
  must also be NOISE times k as bad as all of eager's, less what rounding once explains (half an ulp; of small values
  that is small), and of FEWEST elements or more: without, clean bfloat16 gradients of resnet18 fail.
- Where both sides are further from float64 than FAR of its RMS, it is no judge: a branch or an argmax fell the other
  way there. Nearer, no test is right that is further from it than ZEROS of its RMS, as zeros are. Training in bfloat16
  or under autocast leaves outputs of a clean resnet50 0.56 off and its gradients anything up to 2: so no lower, and not
  for gradients. Nor where float64 is below CANCELLED of eager's error: all that eager holds is rounding then.

**A kernel may be GIVEN_K (3) times as wrong as eager is, where both begin from what the kernel was really given.** So
no error is passed on to it, and what is left is the rounding of a few ops. A program has hundreds of kernels, each
asked, and a clean one that is accused sends people to look for what is not there: so one that is further off (a batch
norm and its gradient in float32 come to 4 and 5.5 times) is looked at again. Eager is one rounding; what it gives where
its ops round otherwise counts as well then. Rounding once is no error: what float64 loses as it is rounded to a narrow
dtype, and half an ulp of float32. An integer or boolean is wrong where it is neither float64's nor eager's, and
rounding does not turn it over. Only where an output fails is a kernel accused at all.

**A part of a graph may be KERNEL_K (10) times as wrong as the worst of eager's error and its inputs'.** That is for
bisecting, where what a node was really given cannot be had. How much of its inputs' errors an op lets through is not
known: a difference, a quotient or an exponential makes more of it.

- Of one element eager's error may be zero by luck: the factor grows by 8 / sqrt(n) below 64 elements.
- Rounding once is no error: half an ulp of the dtype, at the RMS, and for the maximum at the largest magnitude.
- Integers and booleans come of comparisons: an error e of what is compared turns over about a share e of the results,
  and seldom one by itself.
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
    """What a dtype allows: `eps` and `tiny` are its finfo's. Eager's error is the worst of `samples` runs."""

    k: float
    eps: float
    tiny: float
    gradient: bool = False
    samples: int = 1

    @property
    def ulps(self) -> float:
        """How many units in the last place are no error."""
        return 4.0 if self.eps < 1e-6 else 1.0

    def floor(self, magnitude: float, count: float) -> float:
        """What rounding may leave in `count` elements of this magnitude, whatever eager's error is."""
        return self.ulps * (1 + self.ulps**2 / count) * self.eps * max(magnitude, self.tiny)

    def terms(self, eager: float, magnitude: float, count: float, times: float = 1.0) -> tuple[Term, ...]:
        """What is allowed of an error of eager's in `count` elements of this magnitude: `times` what `k` allows, and
        what rounding leaves.
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
        """How many times eager's error each block of `counts` elements may have."""
        grown: Vector = BLOCK * self.k * (1 + SMALL / counts) ** 2
        return grown

    def floors(self, magnitude: float, counts: Vector) -> Vector:
        """What rounding may leave in each block of `counts` elements."""
        least = self.ulps * self.eps * max(magnitude, self.tiny)
        floors: Vector = least * (1 + self.ulps**2 / counts)
        return floors

    def noise(self, eager: float, magnitude: float) -> float:
        """What rounding may leave in any block, however small its values, where this is eager's error in all."""
        once = self.eps / 2 * magnitude
        beyond = sqrt(max(eager - once, 0.0)) * sqrt(eager + once)  # of float64, squares may be beyond its range
        return NOISE * self.k * beyond + 4 * _FLOAT32 * max(magnitude, self.tiny)


def total(terms: tuple[Term, ...]) -> float:
    """All that a criterion allows."""
    return sum(term.amount for term in terms)


class Size(NamedTuple):
    """How large an error is, over the RMS of what is right: the RMSE of all elements, and that of the worst one."""

    rmse: float = 0.0
    maximum: float = 0.0


@dataclass(frozen=True)
class KernelAllowance:
    """What a kernel's output of `count` elements in `dtype` is allowed; `largest` is its largest magnitude over its RMS
    in float64.
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
