"""Show why two nodes or kernels are not fused."""

from collections.abc import Iterator

from idbg.analysis.decisions.fusion import Subject, why_not
from idbg.schema.code import Kernel
from idbg.schema.graphs import NodeId
from idbg.schema.runs import Run
from idbg.views.fusion import answer_lines
from idbg_tui.controllers.context import Actions, Context, Reasons
from idbg_tui.controllers.listings import Listings
from idbg_tui.messages import PairRequest
from idbg_tui.state.sentences import why_no_graph, why_no_node
from idbg_tui.widgets.listing import Listing
from idbg_tui.widgets.section_rows import Look, Row, fixed, picture, sentences

_MOST = 5000  # nodes that can be picked


class Pairing:
    """Shows why two are not fused; where there is only one, the second is picked from a list."""

    def __init__(self, context: Context, listings: Listings) -> None:
        self._context, self._state, self._listings = context, context.state, listings

    def actions(self) -> Actions:
        """What the keys do."""
        return {"why_not": self.of_selected}

    def reasons(self) -> Reasons:
        return {"why_not": lambda: why_no_node(self._state)}

    def of_selected(self) -> None:
        """The selected node and one that is picked."""
        if self._state.selected is None:
            self._context.flash(why_no_node(self._state))
        else:
            self.ask(PairRequest(self._state.selected))

    def ask(self, request: PairRequest) -> None:
        """Show why two are not fused."""
        run = self._state.shown
        if run is None:
            self._context.flash(why_no_graph(self._state) or "nothing was compiled yet")
        elif request.other is not None:
            self._answer(run, request.one, request.other)
        else:
            self._pick(run, request.one)

    def _pick(self, run: Run, one: Subject) -> None:
        """List the kernels and nodes with which it might be one."""
        from idbg_tui.widgets.picker import Picker

        others = dict(_others(run, one))
        if not others:
            self._context.flash("there is no other kernel or node in this frame: nothing has code of Inductor's")
            return

        def take(name: str | None) -> None:
            if name is not None:
                self._answer(run, one, others[name])

        listed = [(name, _words(run, other)) for name, other in others.items()]
        title = f"Why is {one.name} not fused with..."
        self._context.app.push_screen(Picker(title, listed, next(iter(others))), take)

    def _answer(self, run: Run, one: Subject, other: Subject) -> None:
        answer = why_not(run, one, other)
        lines = answer_lines(run, answer)
        title = "These are in one kernel" if answer.kind in ("one", "one kernel") else "Why are these not fused?"

        def make(look: Look) -> list[Row]:
            return list(_rows(lines, one, other, look))

        self._listings.open(Listing(title, "", make))


def _others(run: Run, one: Subject) -> Iterator[tuple[str, Subject]]:
    """By name: the kernels of the same frame, and the nodes that its code was made of."""
    frame = one.frame if isinstance(one, Kernel) else one.graph.frame
    for kernel in run.kernels:
        if kernel.frame == frame and kernel != one:
            yield kernel.name, kernel
    own = one.graph if isinstance(one, NodeId) else None
    graphs = [id for id in run.graphs if id.frame == frame and (id == own or id.stage == "post_grad")]
    graphs.sort(key=lambda id: id != own)
    seen: set[str] = {one.name}
    for id in graphs:
        for node in run.graphs[id].nodes[:_MOST]:
            if node.op.startswith("call") and node.name not in seen:
                seen.add(node.name)
                yield node.name, NodeId(id, node.name)


def _words(run: Run, other: Subject) -> str:
    if isinstance(other, Kernel):
        return f"kernel, {other.language}"
    return run.graphs[other.graph].by_name[other.name].target


def _rows(lines: list[str], one: Subject, other: Subject, look: Look) -> Iterator[Row]:
    """The two, the answer, and what it rests on."""
    for subject in (one, other):
        kind, nodes = ("kernel", ()) if isinstance(subject, Kernel) else ("node", (subject,))
        yield Row(subject, fixed([(f" {kind:<7}", "dim"), (subject.name, "strong")]), nodes=nodes)
    yield from picture([[("", "")]])
    for number, line in enumerate(lines):
        yield from sentences(line, look, "" if number else "strong")
