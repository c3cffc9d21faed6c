"""How is a search's script run: within limits that the whole sets, and once more in a fresh process at its end?"""

from dataclasses import dataclass
from pathlib import Path

from idbg.engine.minify.forks.client import Forks
from idbg.engine.minify.forks.fresh import verified
from idbg.engine.minify.forks.processes import memory_of_machine
from idbg.engine.minify.forks.rate import rate
from idbg.engine.minify.forks.tried import Tried
from idbg.schema.repros import Budget

RATE_TRIES = 10  # of what does not fail every time
_SLOWER = 5  # than the whole: what takes longer than so many times it hangs
_LEAST_SECONDS = 30.0
_FIRST_SECONDS = 900.0  # for the whole, of which nothing is known yet
_FRESH_SECONDS = 60.0  # more than a try: torch is imported first, twice by what runs itself


@dataclass
class Running:
    """Runs scripts, each in a process of its own. A try may take `seconds` (0: the first that ends tells) and `memory`
    bytes. `times`: how often one is run before it counts as passing, where the failure does not come every time.
    """

    forks: Forks
    memory: int
    seconds: float = 0.0
    times: int = 1

    @classmethod
    def within(cls, budget: Budget, forks: Forks) -> "Running":
        """By a budget's limits; without one of memory, half of the machine's."""
        return cls(forks, budget.memory or memory_of_machine() // 2, budget.try_seconds)

    def once(self, script: Path, *arguments: str, seconds: float = 0.0) -> Tried:
        """The script in a forked process; at most `seconds`, where these are given."""
        given = seconds or self.seconds or _FIRST_SECONDS
        tried = self.forks.run(script, seconds=given, memory=self.memory, arguments=arguments)
        if not seconds and not self.seconds and not tried.hung:
            self.seconds = max(_LEAST_SECONDS, _SLOWER * tried.seconds)
        return tried

    def fresh(self, script: Path) -> Tried:
        """The script in a fresh process, as a stranger runs it."""
        seconds = (self.seconds or _FIRST_SECONDS) + _FRESH_SECONDS
        return verified(script, seconds=seconds, memory=self.memory)

    def fresh_often(self, script: Path) -> tuple[Tried, int, int]:
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
