"""End the program, after a warning about unsaved rules or running work; or suspend it."""

from idbg_tui.controllers.compiling import Compiling
from idbg_tui.controllers.context import Actions, Context


class Leaving:
    """Quits, but for unsaved rules and for what is being compiled or measured only the second time."""

    def __init__(self, context: Context, compiling: Compiling) -> None:
        self._context, self._state, self._compiling = context, context.state, compiling
        self._warned_of: str | None = None  # unsaved rules of which the user was warned

    def actions(self) -> Actions:
        """What the keys do."""
        return {
            "quit": self.quit,
            "interrupt": self.interrupt,
            "suspend": self.suspend,
            "redraw": self._context.app.refresh,
        }

    def suspend(self) -> None:
        """Stop until the shell continues this process; the worker, in a group of its own, goes on."""
        from idbg_tui.terminal import suspend

        self._context.attempt(lambda: suspend.stop(self._context.app))

    def quit(self) -> None:
        """End the program, unless something would be lost without a warning."""
        if self._nothing_is_lost():
            self._leave()

    def interrupt(self) -> None:
        """Ctrl+C: the first cancels a compile, a measurement or a search, the second quits."""
        busy = self._state.running or self._state.measuring or self._state.searching
        if busy and not self._state.cancelling:
            self._compiling.stop("cancelling; ^c again quits")
        elif busy or self._nothing_is_lost():
            self._leave()

    def _leave(self) -> None:
        """Flash first: on a busy machine it takes seconds to stop what runs."""
        app = self._context.app
        self._context.flash("leaving: what runs is stopped, the session is kept" if self._state.live else "leaving")
        app.call_after_refresh(app.exit)

    def _nothing_is_lost(self) -> bool:
        """Whether nothing is unsaved, or the user was warned of these very edits."""
        from idbg_tui.panes.rules.pane import RulesPane

        rules = self._context.body.panes["rules"]
        if not isinstance(rules, RulesPane):
            return True
        text = rules.document.text
        if not rules.document.edited or text == self._warned_of:
            return True
        self._warned_of = text
        self._context.flash("unsaved rules: q again quits, 8 then ^s saves", "warning")
        return False
