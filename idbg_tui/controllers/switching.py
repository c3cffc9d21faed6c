"""Put torch's switches into the target, and compile again."""

from collections.abc import Callable

from msgspec.structs import replace
from textual.timer import Timer

from idbg.config import switches
from idbg.schema.programs import Target
from idbg_tui.controllers.context import Context
from idbg_tui.messages import SwitchRequest
from idbg_tui.state import queries

RECOMPILE = 1.0  # seconds after the last switch: several are one change
_SWITCHED = ("mode", "stance", "dynamic", "dynamic_sources", "cold", "float64")
"""The fields of a target, beside options and settings, that are no other key's."""


class Switching:
    """Puts switches into the target, and compiles when none was flipped for a moment."""

    def __init__(self, context: Context) -> None:
        self._context, self._session, self._state = context, context.session, context.state
        self._recompiling: Timer | None = None
        self._awaited = 0  # the run with the switches, until its result was shown
        self._done: list[Target] = []  # the target before each change

    def take(self, request: SwitchRequest) -> None:
        """Set or flip one switch."""

        def change(target: Target) -> Target:
            switch, value = request.switch, request.value
            if request.flip:
                value = not switches.value_of(switch, target)
            return switches.set_switch(target, switch, value)

        self._change(change)

    def put_back(self) -> None:
        """Reset all switches to torch's defaults."""
        every = self._state.history.switches
        self._change(lambda target: switches.with_defaults(target, [*every, *switches.unlisted(target, every)]))

    def _change(self, change: Callable[[Target], Target]) -> None:
        if not self._session.live:
            self._context.flash("this session was read from disk: idbg-tui FILE compiles it again, with other switches")
            return
        before = self._session.target
        if not self._context.attempt(lambda: self._session.aim(change(before))):
            return
        self._context.show()
        if self._session.target == before:
            self._context.flash("all switches are as torch has them")
            return
        self._done.append(before)
        self._recompile_soon()

    def undo(self) -> None:
        """Set the switches as they were before the last change."""
        if not self._done:
            self._context.flash("no change of switches to undo")
            return
        before, now = self._done.pop(), self._session.target
        switched = {name: getattr(before, name) for name in _SWITCHED}
        options = before.options if before.options_for == now.options_for else now.options
        target = replace(now, **switched, options=options, settings=before.settings)
        if self._context.attempt(lambda: self._session.aim(target)):
            self._context.show()
            self._context.flash("the last change of switches is undone")
            self._recompile_soon()

    def _recompile_soon(self) -> None:
        if self._recompiling is not None:
            self._recompiling.stop()
        self._recompiling = self._context.app.set_timer(RECOMPILE, self._recompile)

    def _recompile(self) -> None:
        """Compile for the target as it is now, unless the last run was or is."""
        run = self._state.run
        if run is not None and run.target == self._session.target and run.ended != "failed":
            return

        def begin() -> None:
            self._awaited = self._session.run(asked=False)

        if self._context.attempt(begin) and self._state.measuring:
            self._context.flash("compiled with these switches when the measurement has ended (r: now)")

    def show(self) -> None:
        """Once the run with other switches has ended, flash what they changed."""
        after = self._state.history.runs.get(self._awaited)
        if after is None or after.ended is None:
            return
        self._awaited = 0
        before = [run for run in queries.ended_runs(self._state) if run.number < after.number]
        if after.verdict != "waiting" and before:
            from idbg.views.compared import summary

            self._context.flash(f"{summary(before[-1], after)}; - Switches, ] has more", of_run=False)
