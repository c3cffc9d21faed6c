"""List what the compiler decided about a node, a kernel or a line."""

from collections.abc import Iterator
from dataclasses import replace

from msgspec import structs

from idbg.format import file_names
from idbg.views import about
from idbg_tui.controllers.context import Actions, Context, Reasons
from idbg_tui.controllers.listings import Listings
from idbg_tui.messages import DecisionRequest, WhyRequest
from idbg_tui.state import queries
from idbg_tui.state.sentences import why_no_node
from idbg_tui.state.state import State
from idbg_tui.widgets import sections
from idbg_tui.widgets.listing import Listing
from idbg_tui.widgets.section_rows import Look, Row, picture, sentences


class Deciding:
    """Lists the rows of the pane Why that are about a node, a kernel or a line; enter goes to one there."""

    def __init__(self, context: Context, listings: Listings, keys: dict[str, str]) -> None:
        """`keys` are those in force, by the names of keymap.KEYS."""
        self._context, self._state, self._listings, self._keys = context, context.state, listings, keys

    def actions(self) -> Actions:
        """What the keys do."""
        return {"why": self.of_selected}

    def reasons(self) -> Reasons:
        return {"why": lambda: why_no_node(self._state)}

    def of_selected(self) -> None:
        """Those about the selected node."""
        if self._state.selected is None:
            self._context.flash(why_no_node(self._state))
        else:
            self.ask(WhyRequest(node=self._state.selected))

    def ask(self, request: WhyRequest) -> None:
        """List those about what is requested, over the screen."""
        place = file_names.place(request.file, request.line, queries.source_files(self._state))
        name = request.node.name if request.node else request.kernel[2] if request.kernel else place

        def make(look: Look) -> list[Row]:
            look = replace(look, whole=True, files=queries.source_files(self._state))
            found = list(_rows(self._state, request, look))
            return found or list(sentences("no decision about it was recorded; 0 Why has all others", look, "dim"))

        self._listings.open(Listing(f"Why? {name}", self._keys["why"], make), self._go)

    def _go(self, row: Row) -> None:
        if isinstance(row.key, tuple):
            self.go(DecisionRequest(*row.key))

    def go(self, request: DecisionRequest) -> None:
        """Go to the row in the pane Why."""
        from idbg_tui.panes.why.pane import WhyPane

        pane = self._context.body.panes["why"]
        if isinstance(pane, WhyPane):
            self._context.body.go("why")
            pane.reveal_in(request.view, request.key)


def _rows(state: State, request: WhyRequest, look: Look) -> Iterator[Row]:
    """Each view's rows about it under the view's title; the key of each names its view."""
    subject = _subject(state, request)
    for name, section in about.sections(state.shown, subject) if state.shown is not None and subject else ():
        yield from picture([[(section.title, "strong")]])
        for row in sections.rows(structs.replace(section, summary=""), look):
            yield row if row.head else replace(row, key=(name, row.key), enter="why", fold=None)


def _subject(state: State, request: WhyRequest) -> about.Subject | None:
    run, provenance = state.shown, state.provenance
    if run is None or provenance is None:
        return None
    if request.node is not None:
        return about.node(run, provenance, request.node)
    if request.kernel is not None:
        return about.kernel(run, provenance, *request.kernel)
    return about.line(provenance, request.file, request.line)
