"""Show what may help with a decision, and what it changed where it was tried."""

from collections.abc import Hashable, Iterable, Iterator, Sequence

from idbg.analysis.decisions.suggestions import Suggestion
from idbg.analysis.decisions.trials import BREAKS, COMPILES
from idbg.format.amounts import counted
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.schema.decisions.dynamo import Trial
from idbg.views.tree import Row, Tone, words

MAY = "may help: "
"""Before advice that was not tried."""


def rows(
    suggestions: Iterable[Suggestion], key: Hashable, trials: Sequence[Trial] = (), about: str = ""
) -> Iterator[Row]:
    """A row for each, the code that does it below. `about` is what the decision is counted by in a trial."""
    for number, each in enumerate(suggestions):
        sign, tone, after = _result(each, trials, about)
        yield Row(
            (key, "advice", number),
            words((f"{sign} ", tone), (sentence(each, trials), "strong"), (after, tone)),
            code=each.code,
            suggestion=each if each.can_be_tried else None,
            copied=each.code or each.words,
        )


def sentence(suggestion: Suggestion, trials: Sequence[Trial] = ()) -> str:
    """What to do: with "may" where it was not tried."""
    return suggestion.words if suggestion.result(trials) is not None else f"{MAY}{suggestion.words}"


def _result(suggestion: Suggestion, trials: Sequence[Trial], about: str) -> tuple[str, Tone, str]:
    trial = suggestion.result(trials)
    if trial is None:
        return MARKS["arrow"], "strong", ""
    run = f" (run {trial.after})"
    if trial.failure:
        return VERDICT_SIGNS["failed"], "reject", f"  tried: the run failed: {trial.failure}{run}"
    counts = {name: (before, after) for name, before, after in trial.counts}
    before, after = counts.get(about) or counts[COMPILES]
    noun = "break" if about.startswith("break ") else "compile"
    sums = [(name, *counts[name]) for name in (COMPILES, BREAKS) if counts[name][1] > counts[name][0]]
    worse = "".join(f"; in all {was} {name}, then {now}" for name, was, now in sums)
    if after < before:
        return (
            VERDICT_SIGNS["clean"],
            "fallback" if worse else "clean",
            f"  tried: {counted(before, noun)}, then {after}{worse}{run}",
        )
    still = f"still {counted(before, noun)}" if after == before else f"{counted(before, noun)}, then {after}"
    return VERDICT_SIGNS["failed"], "reject", f"  tried: {still}{worse}{run}"


def first_that_can_be_tried(suggestions: Iterable[Suggestion]) -> Suggestion | None:
    """The one that a key tries from a row that has several."""
    return next((each for each in suggestions if each.can_be_tried), None)


def as_json(suggestion: Suggestion, trials: Sequence[Trial]) -> dict[str, object]:
    """What it is, and the trial of it, None where there was none."""
    return {**vars(suggestion), "tried": suggestion.result(trials)}
