"""Write and minimize repros, and show their scripts."""

from functools import partial
from pathlib import Path

from idbg.schema.repros import Budget
from idbg.views.repros import status_words
from idbg_tui.controllers.context import Actions, Context, Reasons
from idbg_tui.controllers.listings import Listings
from idbg_tui.messages import ReproRequest, ScriptRequest
from idbg_tui.state import queries, repro_targets
from idbg_tui.state.sentences import READ_ONLY
from idbg_tui.widgets.listing import Reading

_ONCE = Budget(calls=1)
"""Of a search that makes nothing smaller: the whole is written, and tried."""
_FIRST = Budget(first=True)
"""Of a wrong result: the first script that shows it."""


class Repros:
    """Writes, tries and minimizes repros, or flashes why there is nothing to reproduce."""

    def __init__(self, context: Context, listings: Listings) -> None:
        self._context, self._state, self._listings = context, context.state, listings

    def actions(self) -> Actions:
        """What the keys do."""
        return {"repro": self.of_selected, "minify": partial(self.of_selected, smallest=True)}

    def reasons(self) -> Reasons:
        return {"repro": self._why_none, "minify": partial(self._why_none, smallest=True)}

    def _why_none(self, *, smallest: bool = False) -> str:
        """Why there is nothing to show again of what the cursor is on."""
        found = repro_targets.of_selected(self._state)
        if not self._state.live:
            return READ_ONLY
        if found is None:
            return repro_targets.why_none(self._state)
        return self._why_not(ReproRequest(found, smallest=smallest))

    def of_selected(self, *, smallest: bool = False) -> None:
        """A repro of the selected node's severest violation; else of how the run failed; else of what feeds it."""
        found = repro_targets.of_selected(self._state)
        if found is None:
            self._context.flash(repro_targets.why_none(self._state))
        else:
            self.ask(ReproRequest(found, smallest=smallest))

    def ask(self, request: ReproRequest) -> None:
        """Have the script written into the session's folder, and tried; or the smallest looked for."""
        if why := self._why_not(request):
            self._context.flash(why, "warning")
            return
        busy = self._state.trying
        if self._context.attempt(lambda: self._begin(request)):
            after = "; it begins when what is done now has ended" if busy else ""
            if request.smallest:
                self._context.flash(f"looking for the smallest script: c stops, and keeps the best so far{after}")
            elif busy:
                self._context.flash(f"the repro is queued{after}")

    def _begin(self, request: ReproRequest) -> None:
        session, sought = self._context.session, request.sought
        if request.smallest:
            session.minify(sought)
        elif sought.kind == "violation" or (sought.kind == "failure" and self._in_worker()):
            session.export_repro(sought.node, sought.rule)
        else:
            session.minify(sought, _FIRST if sought.kind == "wrong" else _ONCE)

    def _in_worker(self) -> bool:
        """Whether the worker has what failed in hand: it raised through the program, and did not end the worker."""
        failure = self._state.run.failure if self._state.run is not None else None
        return failure is not None and failure.kind != "worker"

    def _why_not(self, request: ReproRequest) -> str:
        run, sought = self._state.run, request.sought
        if request.run and run is not None and request.run != run.number:
            return f"run {request.run} is not in the worker any more: r runs again"
        if request.smallest and (why := repro_targets.why_no_smaller(self._state, sought)):
            return why
        if sought.kind == "wrong" and queries.compared_run(self._state) is not run:
            return "another run came after the one that was compared: D compares again"
        return ""

    # ---------------------------------------------------------------- the scripts

    def read(self, request: ScriptRequest) -> None:
        """Show a script, beside the nearest that does not fail where there is one; of none, why there is none."""
        from idbg_tui.panes.kernel_diff import overlays
        from idbg_tui.panes.repros import scripts
        from idbg_tui.panes.repros.reading import ReadingScripts

        repro, other, folder = request.repro, request.other, Path(self._context.session.folder)
        path = other.path if other is not None else repro.path
        if not path and repro.failure is not None and other is None:
            self._listings.open(Reading("No script", "", partial(overlays.failure_rows, repro.failure)))
        elif not path:
            self._context.flash("there is no script of it (yet)")
        elif other is not None:
            self._context.app.push_screen(ReadingScripts(scripts.read(path, folder, f"also met: {other.signature}")))
        else:
            found = repro.minified
            passing = None
            if found is not None and found.passing:
                beside = f"does not fail{': lacks ' if found.difference else ''}{', '.join(found.difference)}"
                passing = scripts.read(found.passing, folder, beside, "what does not fail")
            ended = f" (exit {repro.status})" if repro.status is not None else ""
            title = f"{status_words(repro, live=self._state.live)}{ended}"
            script = scripts.read(path, folder, title, "what fails")
            self._context.app.push_screen(ReadingScripts(script, passing))
