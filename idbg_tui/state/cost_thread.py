"""Who counts what large graphs cost, so that no key waits for it?"""

from collections.abc import Callable, Sequence
from threading import Lock, Thread

from idbg.constraints import Findings
from idbg_tui.state.costs import CostAnswer, CostQuestion, cost_answers


class CostThread:
    """Answers questions in a thread of its own, one after the other; the latest questions replace all before.

    The thread is a daemon: it holds nothing, and the program does not wait for it to end. `tell` is called on it.
    """

    def __init__(self, tell: Callable[[Findings, CostAnswer], object]) -> None:
        self._tell = tell
        self._lock = Lock()
        self._asked: Sequence[CostQuestion] = ()
        self._working = False

    def ask(self, asked: Sequence[CostQuestion]) -> None:
        """Answer these, and nothing else any more."""
        with self._lock:
            self._asked = asked
            if not self._working and asked:
                self._working = True
                Thread(target=self._work, name="idbg-costs", daemon=True).start()

    def _work(self) -> None:
        done: Sequence[CostQuestion] = ()
        while (asked := self._next(done)) is not None:
            done = asked
            for findings, answer in ((one.findings, answer) for one in asked for answer in cost_answers(one)):
                if self._asked is not asked:
                    break
                self._tell(findings, answer)

    def _next(self, done: Sequence[CostQuestion]) -> Sequence[CostQuestion] | None:
        """What is asked now, unless it is what was done last."""
        with self._lock:
            self._working = self._asked is not done and bool(self._asked)
            return self._asked if self._working else None
