"""How is what can be done about a decision shown, and what can be tried at once?"""

from collections.abc import Hashable, Iterable, Iterator

from idbg.analysis.decisions.suggestions import Suggestion
from idbg.format.glyphs import MARKS
from idbg_tui.panes.why.rows import INDENT, Look, Row, fixed, said


def rows(
    suggestions: Iterable[Suggestion], look: Look, key: Hashable, depth: int, inside: tuple[Hashable, ...]
) -> Iterator[Row]:
    """What to do, and below it in code; t on one that a target alone does tries it."""
    start = " " * (1 + INDENT * depth)
    for number, each in enumerate(suggestions):
        again = each if each.can_be_tried else None
        tries = "  t tries it" if again is not None else ""
        words = [(f"{start}{MARKS['arrow']} {each.words}", "strong"), (tries, "accent")]
        yield Row((key, "advice", number), fixed(words), inside=inside, again=again, copied=each.code or each.words)
        code = said(each.code, look, key=(key, "code", number), depth=depth + 2, inside=inside)
        yield from code if each.code else ()
