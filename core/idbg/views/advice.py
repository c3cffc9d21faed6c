"""Show what can be done about a decision."""

from collections.abc import Hashable, Iterable, Iterator

from idbg.analysis.decisions.suggestions import Suggestion
from idbg.format.glyphs import MARKS
from idbg.views.tree import Row, words


def rows(suggestions: Iterable[Suggestion], key: Hashable) -> Iterator[Row]:
    """A row for each, the code that does it below."""
    for number, each in enumerate(suggestions):
        yield Row(
            (key, "advice", number),
            words((f"{MARKS['arrow']} {each.words}", "strong")),
            code=each.code,
            suggestion=each if each.can_be_tried else None,
            copied=each.code or each.words,
        )


def first_that_can_be_tried(suggestions: Iterable[Suggestion]) -> Suggestion | None:
    """The one that a key tries from a row that has several."""
    return next((each for each in suggestions if each.can_be_tried), None)
