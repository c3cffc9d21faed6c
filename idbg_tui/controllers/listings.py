"""What is laid over the screen, and how does it stay true while things change?"""

from collections.abc import Callable

from idbg.schema.graphs import NodeId
from idbg_tui.controllers.context import Context
from idbg_tui.messages import NodeChosen
from idbg_tui.widgets.listing import Listing


class Listings:
    """Opens lists over the screen; what is opened in one is gone to."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._shown: tuple[int, ...] = ()  # versions that the list over the screen tells

    def open(self, listing: Listing, otherwise: Callable[[object], object] | None = None) -> None:
        """Lay a list over the screen; a target that is no node goes to `otherwise`."""

        def go(target: object) -> None:
            if isinstance(target, NodeId):
                self._context.app.post_message(NodeChosen(target, jump=True))
            elif target is not None and otherwise is not None:
                otherwise(target)

        self._context.app.push_screen(listing, go)

    def show(self) -> None:
        """Tell the list that is over the screen, if there is one, what is known now."""
        versions, screen = self._context.state.versions, self._context.app.screen
        now = (versions.run, versions.graphs, versions.rules, versions.costs, versions.selection, versions.decisions)
        if isinstance(screen, Listing) and now != self._shown:
            screen.lines.make()
        self._shown = now
