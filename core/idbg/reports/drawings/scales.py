"""Place values on an axis, and choose the round values beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

from idbg.schema.diff import LARGEST

_POWERS = 307  # that a float has, on either side of 1
_TAIL = 14.0  # units below a logarithmic axis where what is 0 stands, and above it where what is infinite does


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high`, drawn from `start` to `end`; what lies beyond is drawn at the end that is nearer.

    A logarithmic one has places of their own for what is 0 or less, and for what is infinite or no number.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """Where the value is drawn."""
        toward = 1.0 if self.end > self.start else -1.0
        if self.log and not is_drawn(value):
            return self.end + toward * _TAIL
        if self.log and value <= 0:
            return self.start - toward * _TAIL
        low, high, value = (
            (log10(each) for each in (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        )
        part = (value - low) / (high - low) if high > low else 0.5
        return self.start + min(max(part, 0.0), 1.0) * (self.end - self.start)


def is_drawn(value: float) -> bool:
    """Whether it is a number that an axis can have."""
    return isfinite(value) and abs(value) < LARGEST


def scale(values: Sequence[float], start: float, end: float, *, log: bool = False, zero: bool = True) -> Scale:
    """One that holds these values, from one power of ten to another, or from 0 (where `zero`) to a little more than the
    largest.
    """
    known = [value for value in values if is_drawn(value) and (value > 0 or not log)]
    if log:
        least = min(max(floor(log10(min(known))), -_POWERS), _POWERS - 1) if known else -1
        most = min(max(ceil(log10(max(known))), least + 1), _POWERS) if known else 0
        return Scale(10.0**least, 10.0**most, start, end, log=True)
    low, high = min(known, default=0.0), max(known, default=1.0)
    low = min(low, 0.0) if zero else low
    return Scale(low, high if high > low else low + 1.0, start, end)


def ticks(of: Scale, wanted: int) -> list[float]:
    """About so many round values of the scale; of a logarithmic one powers of ten."""
    if of.log:
        least, most = round(log10(of.low)), round(log10(of.high))
        stride = max(1, ceil((most - least) / max(wanted, 1)))
        return [10.0**power for power in range(least, most + 1, stride)]
    rough = (of.high - of.low) / max(wanted, 1)
    power = 10.0 ** floor(log10(rough))
    step = next(power * part for part in (1, 2, 5, 10) if power * part >= rough * 0.999)
    first = ceil(of.low / step - 1e-6)
    return [step * at for at in range(first, floor(of.high / step + 1e-6) + 1)]
