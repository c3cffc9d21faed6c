"""How often does a failure happen that does not always happen, and how often must a script be tried not to miss it?"""

import math
from collections.abc import Callable

MISSED = 0.05  # how probable it may be that a script that can fail is taken for one that passes
MOST_TRIES = 10


def rate(run: Callable[[], bool], tries: int) -> tuple[int, int]:
    """How many of how many tries failed; `run` says whether one did."""
    return sum(run() for _ in range(tries)), tries


def tries_needed(failed: int, tried: int, most: int = MOST_TRIES) -> int:
    """How many tries miss a failure of this rate less often than MISSED: one where it always fails; at most `most`,
    where it is missed more often (`missed` says how often).
    """
    if failed >= tried:
        return 1
    if failed == 0:
        return most
    return min(most, math.ceil(math.log(MISSED) / math.log1p(-failed / tried)))


def missed(failed: int, tried: int, tries: int) -> float:
    """How probable it is that so many tries of a script that fails at this rate show nothing."""
    return float((1 - failed / tried) ** tries) if tried else 1.0
