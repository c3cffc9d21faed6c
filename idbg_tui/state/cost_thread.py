"""Compute the costs of large graphs on a thread, so that no key waits for it."""

from collections.abc import Callable, Sequence
from threading import Lock, Thread

from idbg.checking.rule_costs import CostAnswer, CostQuestion, cost_answers
from idbg.constraints import Findings


class CostThread:
    """Answers questions in a thread of its own, one after the other; the latest questions replace all before.

    The thread is a daemon: it has no resources, and the program does not wait for it to end. `take` is called on it.
    """

    def __init__(self, take: Callable[[Findings, CostAnswer], object]) -> None:
        self._take = take
        self._lock = Lock()
        self._questions: Sequence[CostQuestion] = ()
        self._working = False

    def start(self, questions: Sequence[CostQuestion]) -> None:
        """Answer these, and nothing else any more."""
        with self._lock:
            self._questions = questions
            if not self._working and questions:
                self._working = True
                Thread(target=self._work, name="idbg-costs", daemon=True).start()

    def _work(self) -> None:
        done: Sequence[CostQuestion] = ()
        while (questions := self._next(done)) is not None:
            done = questions
            for findings, answer in ((one.findings, answer) for one in questions for answer in cost_answers(one)):
                if self._questions is not questions:
                    break
                self._take(findings, answer)

    def _next(self, done: Sequence[CostQuestion]) -> Sequence[CostQuestion] | None:
        """The present questions, unless they were answered last."""
        with self._lock:
            self._working = self._questions is not done and bool(self._questions)
            return self._questions if self._working else None
