"""Who asks what a kernel was lowered to?"""

from collections.abc import Callable

from idbg.session.session import Session
from idbg_tui.actions.costs import CostActions
from idbg_tui.messages import LowerAsked


class LoweredActions(CostActions):
    """The part of the app that asks the worker for what lies below a kernel."""

    session: Session

    def attempt(self, do: Callable[[], object]) -> bool:
        """Do something that may be refused; if it is, say why."""
        raise NotImplementedError

    def on_lower_asked(self, message: LowerAsked) -> None:
        self.attempt(lambda: self.session.lower(message.kernel))
