"""How is what can be done about a decision shown, and what can be tried at once?"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace

from idbg.analysis.decisions.suggestions import Suggestion
from idbg.format.glyphs import MARKS
from idbg_tui.widgets.section_rows import INDENT, Look, Row, fixed, said, wrapped


def rows(
    suggestions: Iterable[Suggestion], look: Look, key: Hashable, depth: int, inside: tuple[Hashable, ...]
) -> Iterator[Row]:
    """What to do, on as many rows as it takes, and below it in code; t on any of them tries it, where a target
    alone can.
    """
    start = " " * (1 + INDENT * depth)
    for number, each in enumerate(suggestions):
        again = each if each.can_be_tried else None
        tries = "  t tries it" if again is not None else ""
        lines = wrapped(each.words, look.width - len(start) - len(tries) - 3)
        for place, line in enumerate(lines):
            mark, end = f"{MARKS['arrow']} " if place == 0 else "  ", tries if place == len(lines) - 1 else ""
            words, name = [(f"{start}{mark}{line}", "strong"), (end, "accent")], (key, "advice", number, place)
            yield Row(name, fixed(words), inside=inside, again=again, copied=each.code or each.words)
        code = said(each.code, look, key=(key, "code", number), depth=depth + 2, inside=inside)
        yield from (replace(row, again=again) for row in code if each.code)
