"""Start and stop compiles: by a key, or after an edit of the rules."""

from textual.timer import Timer

from idbg_tui.controllers.context import Actions, Context
from idbg_tui.messages import LowerRequest

RECOMPILE = 1.0  # seconds after the last edit of the rules


class Compiling:
    """Runs the program, by a key or after an edit of the rules, and cancels what goes on."""

    def __init__(self, context: Context) -> None:
        self._context, self._session, self._state = context, context.session, context.state
        self._recompiling: Timer | None = None

    def actions(self) -> Actions:
        """What the keys do."""
        return {"run": self.run, "cancel": self.cancel}

    def run(self) -> None:
        """Compile for the target as it is."""
        self._context.attempt(self._session.run)

    def run_automatically(self) -> bool:
        """Compile, unless the user has started a run already. False if it was refused."""
        return self._context.attempt(lambda: self._session.run(asked=False))

    def run_soon(self) -> None:
        """Compile again when the rules have not been edited for a moment."""
        if self._recompiling is not None:
            self._recompiling.stop()
        self._recompiling = self._context.app.set_timer(RECOMPILE, self._recompile)

    def _recompile(self) -> None:
        """Compile for the rules as they are now, unless the last run was or is."""
        run = self._state.run
        if run is not None and run.target.rules == self._session.target.rules:
            return
        if self.run_automatically():
            if self._state.measuring:
                self._context.flash("these rules are compiled when the measurement has ended (r: now)")
            elif self._state.running and run is not None and run.comparison:
                self._context.flash("these rules are compiled when the comparison has ended (r: now)")

    def learn_typical(self) -> None:
        """Read on a thread how long each phase usually takes: that is in other sessions' files."""
        app, session = self._context.app, self._session

        def read() -> None:
            app.call_later(self._state.take_typical, session.typical())

        app.run_worker(read, thread=True, exclusive=True, group="typical")

    def cancel(self) -> None:
        """Stop the compile or the measurement, or flash that there is none."""
        if self._state.measuring:
            self.stop("stopping: finished rows stay")
        elif self._state.searching:
            self.stop("stopping: the smallest script so far is kept")
        elif self._state.running or self._state.trying or self._state.measurements.waiting:
            self.stop("cancelling")
        else:
            self._context.flash("nothing is being compiled or measured")

    def stop(self, words: str) -> None:
        """Stop what runs and what waits to be measured, and flash `words`."""
        self._state.cancel()
        self._context.show()
        if self._context.attempt(self._session.cancel):
            self._context.flash(words, of_run=True)

    def lower(self, request: LowerRequest) -> None:
        """Request the lowered code of a kernel from the worker."""
        self._context.attempt(lambda: self._session.lower(request.kernel))
