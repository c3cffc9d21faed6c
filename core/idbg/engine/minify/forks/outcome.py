"""The result of one try of a script.

Every repro script exits with 1 and prints a line `REPRODUCED signature` if it shows the failure, with 0 if it does not
fail, and with 2 and a line `OTHER signature` if it fails in another way.
"""

from dataclasses import dataclass
from signal import Signals
from typing import Literal

SAME, OTHER = "REPRODUCED", "OTHER"
Verdict = Literal["same", "passes", "other"]
_HEAD = "Traceback (most recent call last):"


@dataclass(frozen=True)
class TryResult:
    """How a script ended: with an exit `status`, by a `signal` ("SIGSEGV"), or at a limit: it `hung`, or was
    `out_of_memory`. `printed`: the beginning and end of both streams, in order; `seconds` since its start; `peak`: the
    most bytes of memory of it and its processes.
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
        """The return code as `subprocess` defines it; None if it was ended at a limit."""
        if self.status is None and self.signal in Signals.__members__:
            return -Signals[self.signal]
        return self.status

    @property
    def verdict(self) -> Verdict:
        """The same failure, none, or another."""
        if self.status == 0:
            return "passes"
        return "same" if self._reported[0] == SAME and self.status != 2 else "other"

    @property
    def signature(self) -> str:
        """The failure's signature: the one that the script printed, or how it ended; "" if it passed."""
        word, signature = self._reported
        if self.status == 0:
            return ""
        if self.verdict == "same" or (word == OTHER and self.status == 2):
            return signature
        return self._end

    @property
    def _reported(self) -> tuple[str, str]:
        """The first word and the rest of the last line that reports a failure."""
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
