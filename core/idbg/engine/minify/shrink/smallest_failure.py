"""What is the smallest that has failed so far, and what of several steps can be taken from there?"""

from collections.abc import Callable, Sequence

from idbg.engine.minify.candidate import Candidate
from idbg.engine.minify.shrink.dry_run import DryRun
from idbg.engine.minify.shrink.parts import Parts, taken_apart

Step = Callable[[Parts], Parts | None]
"""One change; None where it changes nothing, or cannot be made there."""


class SmallestFailure:
    """Holds the smallest `parts` that fail. `fails` costs a process; what cannot run, is not smaller, or was asked
    before is not asked.
    """

    def __init__(
        self,
        candidate: Candidate,
        fails: Callable[[Candidate], bool],
        better: Callable[[Candidate], None],
        tell: Callable[[str], None],
    ) -> None:
        self.parts = taken_apart(candidate)
        self.best = candidate
        self.allows = DryRun(self.parts)
        self.tell = tell
        self._fails, self._better = fails, better
        self._asked = {candidate.key}

    def take(self, parts: Parts | None) -> bool:
        """Whether it is smaller and still fails; it is the best from then on."""
        if parts is None or not parts.size() < self.parts.size() or not self.allows(parts):
            return False
        candidate = parts.candidate()
        if candidate.key in self._asked:
            return False
        self._asked.add(candidate.key)
        if not self._fails(candidate):
            return False
        self.parts, self.best = parts, candidate
        self._better(candidate)
        return True

    def at_once(self, steps: Sequence[Step]) -> bool:
        """Takes all of the steps that can be made, or none; whether they were taken."""
        return self.take(self._folded(steps))

    def together(self, steps: Sequence[Step]) -> bool:
        """Takes the steps all at once, else those of each half; whether any was taken."""
        folded = self._folded(steps)
        if folded is self.parts:
            return False
        if self.take(folded):
            return True
        if len(steps) == 1:
            return False
        middle = len(steps) // 2
        first = self.together(steps[:middle])
        return self.together(steps[middle:]) or first

    def _folded(self, steps: Sequence[Step]) -> Parts:
        folded = self.parts
        for step in steps:
            after = step(folded)
            if after is not None and self.allows(after):
                folded = after
        return folded
