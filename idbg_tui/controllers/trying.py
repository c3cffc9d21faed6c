"""Run the program again with a suggestion applied, and compare the two runs."""

from dataclasses import dataclass

from idbg.render.text import lines
from idbg.views.tree import Section, Suggestion
from idbg_tui.controllers.context import Context
from idbg_tui.controllers.listings import Listings
from idbg_tui.messages import TryRequest
from idbg_tui.widgets.listing import Reading
from idbg_tui.widgets.section_rows import Look, Row, sentences


@dataclass(frozen=True)
class _Trial:
    """A suggestion that is tried, and the numbers of the runs without and with it."""

    suggestion: Suggestion
    before: int
    after: int


class Trying:
    """Runs once with a suggestion, then lists what it changed; later runs are without it."""

    def __init__(self, context: Context, listings: Listings) -> None:
        self._context, self._session, self._state = context, context.session, context.state
        self._listings = listings
        self._trial: _Trial | None = None

    def ask(self, request: TryRequest) -> None:
        """Run again with the suggestion."""
        run, suggestion = self._state.run, request.suggestion
        if run is None or not self._state.live:
            self._context.flash("a saved session runs nothing: open the program itself to try it")
            return
        if self._state.running:
            self._context.flash("a run goes on: try it when that has ended")
            return
        if suggestion.tried(run.target) == run.target:
            self._context.flash("that is in force already: the run that is shown was made with it")
            return

        def begin() -> None:
            self._trial = _Trial(suggestion, run.number, self._session.try_out(run, suggestion))

        if self._context.attempt(begin):
            self._context.flash(f"running again: {suggestion.words}", of_run=True)
            self._context.show()

    def show(self) -> None:
        """Show what the suggestion changed once its run has ended; nothing if it was cancelled."""
        trial, runs = self._trial, self._state.history.runs
        after = runs.get(trial.after) if trial is not None else None
        if trial is None or after is None or after.ended is None:
            return
        self._trial = None
        before = runs.get(trial.before)
        if before is None or after.verdict == "waiting":
            return
        self._session.tried(before, after, trial.suggestion)
        from idbg.views import compared

        section = compared.view(before, after)
        self._context.flash(section.summary)

        def make(look: Look) -> list[Row]:
            return _rows(trial.suggestion, section, look)

        self._listings.open(Reading(f"Tried: {trial.suggestion.words}", "", make))


def _rows(suggestion: Suggestion, section: Section, look: Look) -> list[Row]:
    code = [f"in the program: {suggestion.code}"] if suggestion.code else []
    return [row for line in (*code, "", *lines(section)) for row in sentences(line, look)]
