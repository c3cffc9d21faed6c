"""Which decisions of the compiler are about what the cursor is on, and where is each shown?"""

from collections.abc import Callable, Iterator, Sequence

from idbg.format import file_names
from idbg.format.amounts import counted
from idbg.schema.decisions.decision import Decision
from idbg_tui.controllers.context import Actions, Context
from idbg_tui.controllers.listings import Listings
from idbg_tui.messages import WhyRequest
from idbg_tui.state import decisions, queries
from idbg_tui.state.decisions import Group
from idbg_tui.state.sentences import why_no_graph
from idbg_tui.state.state import State
from idbg_tui.widgets.lines import StyledRow, clip, fit
from idbg_tui.widgets.listing import Entry, Listing, sentences


class Deciding:
    """Lists the decisions about a node, a kernel or a line; enter goes to the row of the pane "Why" that tells more."""

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

    def ask(self, asked: WhyRequest) -> None:
        """List those about what is asked, over the screen."""
        about = asked.node.name if asked.node else asked.kernel[2] if asked.kernel else _place(self._state, asked)

        def make(width: int) -> list[Entry]:
            return list(_entries(self._found(asked), width, queries.source_files(self._state)))

        self._listings.open(Listing(f"Why? {about}", self._keys["why"], make), self._go)

    def _found(self, asked: WhyRequest) -> list[Group]:
        if asked.node is not None:
            return decisions.of_node(self._state, asked.node)
        if asked.kernel is not None:
            return decisions.of_kernel(self._state, *asked.kernel)
        return decisions.of_line(self._state, asked.file, asked.line)

    def _go(self, target: object) -> None:
        """Go to the row that tells of a decision."""
        from idbg_tui.panes.why.pane import WhyPane

        pane = self._context.body.panes["why"]
        if isinstance(target, Decision) and isinstance(pane, WhyPane):
            self._context.body.go("why")
            pane.reveal(target)


def _place(state: State, asked: WhyRequest) -> str:
    return file_names.place(asked.file, asked.line, queries.source_files(state))


def _entries(groups: Sequence[Group], width: int, files: frozenset[str]) -> Iterator[Entry]:
    """Each decision with its reason under it, in groups."""
    if not groups:
        yield from sentences("the compiler told of no decision about it; 0 Why has those about all else", width, "dim")
        return
    kinds = max(len(one.kind) for _, found in groups for one in found)
    for place, (words, found) in enumerate(groups):
        if place:
            yield Entry.fixed([("", "")], picture=True)
        heading: StyledRow = [(f" {words}: {counted(len(found), 'decision')}", "dim")]
        yield Entry.fixed(heading, picture=True)
        for one in found:
            yield Entry(_drawn(one, kinds, files), target=one)
            if one.why:
                indent = " " * (kinds + 4)
                for entry in sentences(one.why, width - len(indent), "dim"):
                    yield Entry.fixed([(indent + text, style) for text, style in entry.draw(width)], picture=True)


def _drawn(one: Decision, kinds: int, files: frozenset[str]) -> Callable[[int], StyledRow]:
    where = file_names.place(one.file, one.line, files) if one.file else ""

    def draw(width: int) -> StyledRow:
        kind = f"   {fit(one.kind, kinds)}  "
        room = width - len(kind) - (len(where) + 2 if where else 0)
        return [(kind, "accent"), (fit(clip(one.words, room), room), ""), (f"  {where}" if where else "", "dim")]

    return draw
