"""Track the smallest failing candidate, and try steps from there."""

from collections.abc import Callable, Sequence

from idbg.engine.minify.shrink.dry_run import DryRun
from idbg.engine.minify.shrink.parts import Parts, taken_apart
from idbg.engine.repro.draft import Candidate

Step = Callable[[Parts], Parts | None]
"""One change; None if it changes nothing, or cannot be made."""


class SmallestFailure:
    """The smallest failing `parts` so far. `fails` costs a process: it is not called for candidates that cannot run,
    are not smaller, or were tried before.
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
        self._tried = {candidate.key}

    def take(self, parts: Parts | None) -> bool:
        """Whether these parts are smaller and still fail; if so, they become the smallest."""
        if parts is None or not parts.size() < self.parts.size() or not self.allows(parts):
            return False
        candidate = parts.candidate()
        if candidate.key in self._tried:
            return False
        self._tried.add(candidate.key)
        if not self._fails(candidate):
            return False
        self.parts, self.best = parts, candidate
        self._better(candidate)
        return True

    def at_once(self, steps: Sequence[Step]) -> bool:
        """Take all steps that can be made, or none; returns whether they were taken."""
        return self.take(self._folded(steps))

    def together(self, steps: Sequence[Step]) -> bool:
        """Take all steps at once, else those of each half; returns whether any was taken."""
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
