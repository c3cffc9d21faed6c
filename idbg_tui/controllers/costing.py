"""Compute the memory of graphs and the cost of rules, and list them."""

import gc
import time
from collections.abc import Sequence
from functools import partial

from textual.timer import Timer

from idbg.checking.rule_costs import CostAnswer, CostQuestion, cost_answers
from idbg.constraints import Findings
from idbg_tui.controllers.context import Actions, Context
from idbg_tui.controllers.listings import Listings
from idbg_tui.state import queries
from idbg_tui.state.cost_thread import CostThread
from idbg_tui.state.costs import AT_ONCE
from idbg_tui.state.inbox import APART
from idbg_tui.widgets.listing import Listing

SOON = 0.02  # seconds until an answer is shown
REST = 0.4  # seconds without another change, after which a large graph is counted


class Costing:
    """Has counted what is not known, and lists memory and partitions; `keys` are those in force."""

    def __init__(self, context: Context, listings: Listings, keys: dict[str, str]) -> None:
        self._context, self._state, self._listings, self._keys = context, context.state, listings, keys
        self._thread: CostThread | None = None
        self._questions: Sequence[CostQuestion] = ()
        self._resting: Timer | None = None
        self._showing: Timer | None = None
        self._pause = SOON

    def actions(self) -> Actions:
        """What the keys do."""
        return {"memory": self.list_memory, "partitions": self.list_partitions}

    def count(self) -> None:
        """Have counted what is not known: of small graphs at once, of large ones when nothing changes for a moment."""
        questions = queries.cost_questions(self._state)
        if sum(len(question.findings.graph.nodes) for question in questions) <= AT_ONCE:
            for question in questions:
                for answer in cost_answers(question):
                    self._state.take_cost(question.findings, answer)
            return
        pending = [question.findings for question in self._questions]
        if any(all(question.findings is not findings for findings in pending) for question in questions):
            self._questions = questions
            if self._resting is not None:
                self._resting.stop()
            self._resting = self._context.app.set_timer(REST, lambda: self._start(questions))

    def _start(self, questions: Sequence[CostQuestion]) -> None:
        if self._thread is None:
            self._thread = CostThread(lambda *counted: self._context.app.call_later(self._take, *counted))
        # a collection that walks over 100,000 nodes and their index takes 0.2 s, in which no key is answered
        gc.freeze()
        self._thread.start(questions)

    def _take(self, findings: Findings, answer: CostAnswer) -> None:
        """Take in one answer about one check, which the counting thread found. Of thousands of graphs each show takes
        long: keys come first.
        """
        self._state.take_cost(findings, answer)
        if self._showing is None:
            self._showing = self._context.app.set_timer(self._pause, self._show)

    def _show(self) -> None:
        self._showing = None
        began = time.perf_counter()
        self._context.show()
        self._pause = max(SOON, APART * (time.perf_counter() - began))

    def list_memory(self) -> None:
        """List what is alive at the peak of memory."""
        from idbg_tui.panes.graph import memory
        from idbg_tui.panes.graph.title import list_title

        make = partial(memory.rows, self._state)
        self._listings.open(Listing(list_title("The peak of memory", self._state), self._keys["memory"], make))

    def list_partitions(self) -> None:
        """List the partitions and what crosses between them."""
        from idbg_tui.panes.graph import memory
        from idbg_tui.panes.graph.title import list_title

        make = partial(memory.partition_rows, self._state)
        self._listings.open(Listing(list_title("Partitions", self._state), self._keys["partitions"], make))
