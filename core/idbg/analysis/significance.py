"""Test whether two sets of samples differ by more than chance."""

from math import sqrt
from statistics import NormalDist


def mann_whitney(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """The two-sided p-value of the U test: the probability of samples this different from one distribution, by the
    normal approximation with ties (Hollander & Wolfe, 4.1).
    """
    n, m = len(one), len(other)
    values = sorted([(value, 0) for value in one] + [(value, 1) for value in other])
    rank_sum, ties, at = 0.0, 0, 0
    while at < n + m:
        end = at
        while end < n + m and values[end][0] == values[at][0]:
            end += 1
        rank_sum += (at + 1 + end) / 2 * sum(1 for _, side in values[at:end] if side == 0)
        ties += (end - at) ** 3 - (end - at)
        at = end
    total = n + m
    spread = n * m / 12 * (total + 1 - ties / (total * (total - 1))) if total > 1 else 0.0
    if not spread:
        return 1.0
    away = abs(rank_sum - n * (n + 1) / 2 - n * m / 2) - 0.5
    return min(1.0, 2 * (1 - NormalDist().cdf(max(away, 0.0) / sqrt(spread))))
