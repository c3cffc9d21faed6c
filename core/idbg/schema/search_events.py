"""The events of minifications and bisections."""

from idbg.schema.bisection import Bisected, Question, Tried
from idbg.schema.event import Event
from idbg.schema.programs import Failure
from idbg.schema.repros import Minified, MinifyProgress, Sought


class MinifyStarted(Event, frozen=True, kw_only=True, tag="minify_started"):
    """A search began for the smallest script that shows a failure of a run."""

    run: int
    sought: Sought


class MinifyProgressed(Event, frozen=True, kw_only=True, tag="minify_progressed"):
    """How far the search has come."""

    run: int
    progress: MinifyProgress


class MinifyEnded(Event, frozen=True, kw_only=True, tag="minify_ended"):
    """The search is over. `minified` is what was found, also by one that was stopped; None where it could not begin."""

    run: int
    minified: Minified | None = None
    failure: Failure | None = None


class BisectStarted(Event, frozen=True, kw_only=True, tag="bisect_started"):
    """A bisection of a run's failure began."""

    run: int
    question: Question


class BisectProgressed(Event, frozen=True, kw_only=True, tag="bisect_progressed"):
    """A try of that bisection begins, described by `what`; with `tried`, it ended."""

    run: int
    what: str
    tried: Tried | None = None


class BisectEnded(Event, frozen=True, kw_only=True, tag="bisect_ended"):
    """The bisection ended: `bisected` is None where nothing could be tried."""

    run: int
    bisected: Bisected | None = None
    failure: Failure | None = None
