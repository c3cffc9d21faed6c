"""List the compiler's decisions about a node, a kernel or a line."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from idbg.format import file_names
from idbg.format.amounts import counted
from idbg.schema.decisions.decided import Decision
from idbg_tui.controllers.context import Actions, Context
from idbg_tui.controllers.listings import Listings
from idbg_tui.messages import WhyRequest
from idbg_tui.state import decisions, queries
from idbg_tui.state.decisions import Group
from idbg_tui.state.sentences import why_no_graph
from idbg_tui.state.state import State
from idbg_tui.widgets.lines import StyledRow, clip, fit
from idbg_tui.widgets.listing import Listing
from idbg_tui.widgets.section_rows import Look, Row, picture, sentences


class Deciding:
    """Lists the decisions about a node, a kernel or a line; enter goes to its row in the pane Why."""

    def __init__(self, context: Context, listings: Listings, keys: dict[str, str]) -> None:
        """`keys` are those in force, by the names of keymap.KEYS."""
        self._context, self._state, self._listings, self._keys = context, context.state, listings, keys

    def actions(self) -> Actions:
        """What the keys do."""
        return {"why": self.of_selected}

    def of_selected(self) -> None:
        """Those about the selected node."""
        if self._state.selected is None:
            self._context.flash(why_no_graph(self._state) or "no node is selected")
        else:
            self.ask(WhyRequest(node=self._state.selected))

    def ask(self, request: WhyRequest) -> None:
        """List those about what is request, over the screen."""
        about = (
            request.node.name if request.node else request.kernel[2] if request.kernel else _place(self._state, request)
        )

        def make(look: Look) -> list[Row]:
            return list(_rows(self._found(request), look, queries.source_files(self._state)))

        self._listings.open(Listing(f"Why? {about}", self._keys["why"], make), self._go)

    def _found(self, request: WhyRequest) -> list[Group]:
        if request.node is not None:
            return decisions.of_node(self._state, request.node)
        if request.kernel is not None:
            return decisions.of_kernel(self._state, *request.kernel)
        return decisions.of_line(self._state, request.file, request.line)

    def _go(self, row: Row) -> None:
        """Go to the row of a decision."""
        from idbg_tui.panes.why.pane import WhyPane

        pane = self._context.body.panes["why"]
        if isinstance(row.key, Decision) and isinstance(pane, WhyPane):
            self._context.body.go("why")
            pane.reveal(row.key)


def _place(state: State, request: WhyRequest) -> str:
    return file_names.place(request.file, request.line, queries.source_files(state))


def _rows(groups: Sequence[Group], look: Look, files: frozenset[str]) -> Iterator[Row]:
    """Each decision with its reason under it, in groups."""
    if not groups:
        yield from sentences("no decision about it was recorded; 0 Why has all others", look, "dim")
        return
    kinds = max(len(one.kind) for _, found in groups for one in found)
    for place, (words, found) in enumerate(groups):
        lead: list[StyledRow] = [[("", "")]] if place else []
        yield from picture([*lead, [(f" {words}: {counted(len(found), 'decision')}", "dim")]])
        for one in found:
            yield Row(one, _drawn(one, kinds, files), "why")
            for row in sentences(" " * (kinds + 4) + one.why, look, "dim") if one.why else ():
                yield replace(row, head=True)


def _drawn(one: Decision, kinds: int, files: frozenset[str]) -> Callable[[int], StyledRow]:
    where = file_names.place(one.file, one.line, files) if one.file else ""

    def draw(width: int) -> StyledRow:
        kind = f"   {fit(one.kind, kinds)}  "
        room = width - len(kind) - (len(where) + 2 if where else 0)
        return [(kind, "accent"), (fit(clip(one.words, room), room), ""), (f"  {where}" if where else "", "dim")]

    return draw
