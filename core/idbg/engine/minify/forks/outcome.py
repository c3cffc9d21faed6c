"""What did one try of a script come to, and what does that say of the failure that is looked for?

Every script of ours: exit 1 and a line `REPRODUCED signature`: the same failure; 0: it does not fail; 2 and a line
`OTHER signature`: it fails otherwise.
"""

from dataclasses import dataclass
from signal import Signals
from typing import Literal

SAME, OTHER = "REPRODUCED", "OTHER"
Verdict = Literal["same", "passes", "other"]
_HEAD = "Traceback (most recent call last):"


@dataclass(frozen=True)
class TryResult:
    """How a script ended: with exit `status`, or of a `signal` ("SIGSEGV"), or neither, as it `hung` (ran over its
    seconds) or was `out_of_memory` (held more than it might), and was ended. `printed`: what it printed, both streams
    as one, of much the first and the last; `seconds` from its start; `peak`: the most bytes that it and what it started
    were seen to hold.
    """

    status: int | None
    signal: str = ""
    hung: bool = False
    out_of_memory: bool = False
    printed: str = ""
    seconds: float = 0.0
    peak: int = 0

    @property
    def code(self) -> int | None:
        """The exit status, or that of a process that a signal ended, as `subprocess` gives it; None of one that was
        ended for its limits.
        """
        if self.status is None and self.signal in Signals.__members__:
            return -Signals[self.signal]
        return self.status

    @property
    def verdict(self) -> Verdict:
        """The same failure, none, or another."""
        said, _ = self._said
        if self.status == 0:
            return "passes"
        return "same" if said == SAME and self.status != 2 else "other"

    @property
    def signature(self) -> str:
        """What names its failure: what the script said of it, or how it ended where it said nothing; "" of none."""
        said, signature = self._said
        if self.status == 0:
            return ""
        if self.verdict == "same" or (said == OTHER and self.status == 2):
            return signature
        return self._end

    @property
    def _said(self) -> tuple[str, str]:
        """The last line that tells of a failure: its word, and the rest."""
        for line in reversed(self.printed.splitlines()):
            word, _, rest = line.partition(" ")
            if word in (SAME, OTHER):
                return word, rest.strip()
        return "", ""

    @property
    def _end(self) -> str:
        if self.hung:
            return "hung"
        if self.out_of_memory:
            return "out of memory"
        if self.signal:
            return self.signal
        raised = self._raised
        return f"exit {self.status}: {raised}" if raised else f"exit {self.status}"

    @property
    def _raised(self) -> str:
        """The exception of the last traceback."""
        _, head, rest = self.printed.rpartition(_HEAD)
        lines = (line.strip() for line in rest.splitlines() if line.strip() and not line.startswith(" "))
        return next(lines, "") if head else ""
