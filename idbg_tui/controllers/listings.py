"""Show lists over the screen, and keep them up to date."""

from collections.abc import Callable

from idbg_tui.controllers.context import Context
from idbg_tui.messages import NodeChosen
from idbg_tui.widgets.listing import Listing
from idbg_tui.widgets.section_rows import Row


class Listings:
    """Opens lists over the screen, and goes to what is chosen in one."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._shown: tuple[int, ...] = ()  # versions that the list over the screen shows

    def open(self, listing: Listing, take: Callable[[Row], object] | None = None) -> None:
        """Show a list over the screen; a chosen row that is about no node goes to `take`."""

        def go(row: Row | None) -> None:
            if row is not None and row.nodes:
                self._context.app.post_message(NodeChosen(row.nodes[0], jump=True))
            elif row is not None and take is not None:
                take(row)

        self._context.app.push_screen(listing, go)

    def show(self) -> None:
        """Update the list over the screen, if there is one."""
        versions, screen = self._context.state.versions, self._context.app.screen
        now = (versions.run, versions.graphs, versions.rules, versions.costs, versions.selection, versions.decisions)
        if isinstance(screen, Listing) and now != self._shown:
            screen.lines.make()
        self._shown = now
