"""Who counts what graphs need and rules cost, and which keys show it?"""

import gc
from collections.abc import Callable, Sequence

from textual.app import App
from textual.message import Message
from textual.timer import Timer

from idbg.constraints import Findings
from idbg.schema.graphs import NodeId
from idbg_tui.messages import NodeChosen
from idbg_tui.state import queries
from idbg_tui.state.background_costs import Counter
from idbg_tui.state.costs import AT_ONCE, CostAnswer, Question, answers
from idbg_tui.state.state import State
from idbg_tui.widgets.listing import Entry, Listing

REST = 0.4  # seconds without another change, after which a large graph is counted


class CostCounted(Message):
    """One answer about one check, from the thread that counts."""

    def __init__(self, findings: Findings, answer: CostAnswer) -> None:
        super().__init__()
        self.findings = findings
        self.answer = answer


class CostActions(App[None]):
    """The part of the app that has costs counted, and shows them."""

    state: State
    keys: dict[str, str]
    _counter: Counter | None = None
    _asked: Sequence[Question] = ()
    _listed: tuple[int, ...] = ()  # versions that the list over the screen tells
    _resting: Timer | None = None

    def show(self) -> None:
        """Show the state in every pane."""
        raise NotImplementedError

    def count_costs(self) -> None:
        """Have counted what is not known: of small graphs at once, of large ones when nothing changes for a moment."""
        asked = queries.uncounted(self.state)
        if sum(len(question.findings.graph.nodes) for question in asked) <= AT_ONCE:
            for question in asked:
                for answer in answers(question):
                    self.state.take_cost(question.findings, answer)
            return
        asking = [question.findings for question in self._asked]
        if any(all(question.findings is not findings for findings in asking) for question in asked):
            self._asked = asked
            if self._resting is not None:
                self._resting.stop()
            self._resting = self.set_timer(REST, lambda: self._ask(asked))

    def _ask(self, asked: Sequence[Question]) -> None:
        if self._counter is None:
            self._counter = Counter(lambda findings, answer: self.post_message(CostCounted(findings, answer)))
        # a collection that walks over 100,000 nodes and their index takes 0.2 s, in which no key is answered
        gc.freeze()
        self._counter.ask(asked)

    def on_cost_counted(self, message: CostCounted) -> None:
        self.state.take_cost(message.findings, message.answer)
        self.show()

    # ---------------------------------------------------------------- the views

    def show_listing(self) -> None:
        """Tell the list that is over the screen, if there is one, what is known now."""
        versions = self.state.versions
        now = (versions.run, versions.graphs, versions.rules, versions.costs, versions.selection)
        if isinstance(self.screen, Listing) and now != self._listed:
            self.screen.lines.make()
        self._listed = now

    def action_memory(self) -> None:
        """List what is alive at the peak of memory."""
        from idbg_tui.panes.graph import memory

        self._open(memory.title(self.state), self.keys["memory"], lambda width: memory.entries(self.state, width))

    def action_partitions(self) -> None:
        """List the partitions and what crosses between them."""
        from idbg_tui.panes.graph import partitions

        title = partitions.title(self.state)
        self._open(title, self.keys["partitions"], lambda width: partitions.entries(self.state, width))

    def _open(self, title: str, key: str, make: Callable[[int], Sequence[Entry]]) -> None:
        self._push(Listing(title, key, make))

    def _push(self, listing: Listing) -> None:
        """Lay the list over the screen; what is opened in it is gone to."""

        def go(node: NodeId | None) -> None:
            if node is not None:
                self.post_message(NodeChosen(node, jump=True))

        self.push_screen(listing, go)
