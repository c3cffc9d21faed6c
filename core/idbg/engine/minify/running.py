"""How is a search's script run: within limits that the whole sets, and once more in a fresh process at its end?"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from idbg.engine.minify.forks.client import Forks, verified
from idbg.engine.minify.forks.outcome import TryResult
from idbg.engine.minify.forks.processes import memory_of_machine
from idbg.schema.repros import Budget

RATE_TRIES = 10  # of what does not fail every time
_SLOWER = 5  # than the whole: what takes longer than so many times it hangs
_LEAST_SECONDS = 30.0
_FIRST_SECONDS = 900.0  # for the whole, of which nothing is known yet
_FRESH_SECONDS = 60.0  # more than a try: torch is imported first, twice by what runs itself


@dataclass
class TryRunner:
    """Runs scripts, each in a process of its own. A try may take `seconds` (0: the first that ends tells) and `memory`
    bytes. `times`: how often one is run before it counts as passing, where the failure does not come every time.
    """

    forks: Forks
    memory: int
    seconds: float = 0.0
    times: int = 1

    @classmethod
    def within(cls, budget: Budget, forks: Forks) -> "TryRunner":
        """By a budget's limits; without one of memory, half of the machine's."""
        return cls(forks, budget.memory or memory_of_machine() // 2, budget.try_seconds)

    def once(self, script: Path, *arguments: str, seconds: float = 0.0) -> TryResult:
        """The script in a forked process; at most `seconds`, where these are given."""
        given = seconds or self.seconds or _FIRST_SECONDS
        tried = self.forks.run(script, seconds=given, memory=self.memory, arguments=arguments)
        if not seconds and not self.seconds and not tried.hung:
            self.seconds = max(_LEAST_SECONDS, _SLOWER * tried.seconds)
        return tried

    def fresh(self, script: Path) -> TryResult:
        """The script in a fresh process, as a stranger runs it."""
        seconds = (self.seconds or _FIRST_SECONDS) + _FRESH_SECONDS
        return verified(script, seconds=seconds, memory=self.memory)

    def fresh_often(self, script: Path) -> tuple[TryResult, int, int]:
        """The script in a fresh process, RATE_TRIES more where it does not fail: a try that tells most, in how many
        tries it failed, and of how many.
        """
        first = self.fresh(script)
        if first.verdict != "passes":
            return first, int(first.verdict == "same"), 1
        seen = [first]

        def fails() -> bool:
            seen.append(self.fresh(script))
            return seen[-1].verdict == "same"

        failed, times = rate(fails, RATE_TRIES)
        return next((one for one in seen if one.verdict == "same"), first), failed, times + 1


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
