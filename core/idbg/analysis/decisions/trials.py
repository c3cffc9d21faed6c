"""Find the suggestions that can be tried, and count what each changed: a run without it beside one with it."""

from collections import Counter

from idbg.analysis.decisions.breaks import BreakPlace, places, suggestions
from idbg.analysis.decisions.frames import spoken
from idbg.analysis.decisions.recompile_advice import suggestions_for
from idbg.analysis.decisions.recompiles import Timeline, timelines
from idbg.analysis.decisions.suggestions import Suggestion
from idbg.schema.decisions.dynamo import FrameResult, Trial
from idbg.schema.runs import Run

COMPILES, BREAKS = "compiles", "breaks"
"""The names of the sums."""


def of_timeline(timeline: Timeline) -> str:
    """The name of its count."""
    return f"{timeline.function} {timeline.file}:{timeline.line}"


def of_place(place: BreakPlace) -> str:
    """The name of its count."""
    return f"break {place.file}:{place.line}"


def to_try(run: Run) -> list[Suggestion]:
    """The suggestions of a run that a target alone does, each once."""
    found = [each for timeline in timelines(run) for each in suggestions_for(run, timeline)]
    found += [each for place in places(run) for each in suggestions(place.first)]
    kept: list[Suggestion] = []
    for each in found:
        if each.can_be_tried and each.tried(run.target) not in [other.tried(run.target) for other in kept]:
            kept.append(each)
    return kept


def trial(before: Run, after: Run, suggestion: Suggestion) -> Trial:
    """What differs between the two."""
    counts = _counts(before), _counts(after)
    return Trial(
        before.number,
        after.number,
        suggestion.dynamic,
        suggestion.dynamic_sources,
        suggestion.settings,
        tuple((name, number, counts[1][name]) for name, number in counts[0].items()),
        after.cause.first_line if after.cause is not None and before.cause is None else "",
    )


def _counts(run: Run) -> Counter[str]:
    compiled = [frame for frame in run.frames.values() if not _failed(run, frame.id)]
    counts = Counter(f"{spoken(frame)} {frame.file}:{frame.line}" for frame in compiled)
    counts |= Counter({of_place(place): place.count for place in places(run)})
    counts |= Counter({COMPILES: len(compiled), BREAKS: run.times_broken})
    counts[BREAKS] += 0  # has a name also where it is 0
    return counts


def _failed(run: Run, frame: str) -> bool:
    result = run.decided.last(FrameResult).get(frame)
    return result is not None and result.end == "failed"
