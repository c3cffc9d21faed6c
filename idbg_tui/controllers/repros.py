"""Of what can a repro be written?"""

from idbg.schema.violations import SEVERITIES
from idbg_tui.controllers.context import Actions, Context
from idbg_tui.messages import ReproAsked
from idbg_tui.state import queries
from idbg_tui.state.sentences import why_no_graph


class Repros:
    """Has repros written and tried, or says why there is nothing to reproduce."""

    def __init__(self, context: Context) -> None:
        self._context, self._state = context, context.state

    def actions(self) -> Actions:
        """What the keys do."""
        return {"repro": self.of_selected}

    def of_selected(self) -> None:
        """A repro of the selected node's severest violation; of the failed compile where the node breaks no rule."""
        selected = self._state.selected
        broken = queries.violations_of(self._state, selected) if selected else []
        run = self._state.run
        if broken:
            severest = min(broken, key=lambda violation: SEVERITIES.index(violation.severity))
            self.export(ReproAsked(severest.node, severest.rule))
        elif run is not None and run.failure is not None:
            self.export(ReproAsked(None))
        else:
            self._context.flash(self._why_none())

    def export(self, asked: ReproAsked) -> None:
        """Have a repro written into the session's folder, and tried."""
        self._context.attempt(lambda: self._context.session.export_repro(asked.node, asked.rule))

    def _why_none(self) -> str:
        """What breaks no rule and did not fail, or what is not known yet."""
        if self._state.graph is None:
            return f"nothing to reproduce: {why_no_graph(self._state)}"
        if self._state.running:
            return "nothing to reproduce yet: this node breaks no rule, and the compile has not ended (v finds one)"
        if self._state.run is not None and self._state.run.frame_failures:
            return "this node breaks no rule; of a frame that did not compile 7 Log has the error (v finds a violation)"
        return "nothing to reproduce: this node breaks no rule and the compile did not fail (v finds one)"
