"""Let the ranks of a job run the same graph together: one that runs it alone waits for the others in a collective.

They agree through the store that torch's process groups were made with, which all ranks reach.
"""

import time
from dataclasses import dataclass, field

from idbg.engine.compat.distributed import Store
from idbg.schema.errors import BadInput

SECONDS = 60.0
"""That a rank waits for the others to come to the same graph, and to each of their runs of it."""
_PAUSE = 0.01


class RanksApart(BadInput):
    """Not all ranks run the graph."""


@dataclass
class Lockstep:
    """One graph that `size` ranks compare at the same time."""

    store: Store
    size: int
    _steps: int = field(default=0, init=False)

    def begin(self) -> None:
        """Wait for all ranks. Raises RanksApart where one did not come: then none of them begins."""
        self.store.add("here", 1)
        came = self._all_at("here", SECONDS)
        decision = self.store.compare_set("decision", "", "begin" if came else "leave out")
        if decision != b"begin":
            raise RanksApart(
                f"not all of the {self.size} ranks came to this graph within {SECONDS:g} s",
                hint="its collectives need all of them: see idbg analyze --type ranks for where they part",
            )

    def any(self, wanted: bool) -> bool:
        """Whether any rank wants what comes next. Raises RanksApart where one did not answer."""
        self._steps += 1
        step = f"step {self._steps}"
        self.store.add(f"{step} wanted", int(wanted))
        self.store.add(step, 1)
        if not self._all_at(step, 10 * SECONDS):
            raise RanksApart("a rank ended while they compared this graph", hint="see why it ended")
        return self.store.add(f"{step} wanted", 0) > 0

    def _all_at(self, key: str, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while self.store.add(key, 0) < self.size:
            if time.monotonic() > until:
                return False
            time.sleep(_PAUSE)
        return True
