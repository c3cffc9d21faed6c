"""How is a Python stack shown: the user's lines, with all between them folded?"""

from collections.abc import Hashable, Iterator
from itertools import groupby

from idbg.analysis.decisions.stacks import Whose, whose
from idbg.format import file_names
from idbg.format.amounts import counted
from idbg.schema.decisions.dynamo import Stack, StackLine
from idbg_tui.widgets.section_rows import INDENT, Look, Row, fixed, sign, widest

_OF: dict[Whose, str] = {"torch": "of torch", "idbg": "of idbg", "library": "of Python and libraries", "user": ""}


def rows(stack: Stack, look: Look, key: Hashable, depth: int, inside: tuple[Hashable, ...]) -> Iterator[Row]:
    """A line a row, the outermost first; enter on one opens it."""
    places = widest((file_names.place(line.file, line.line, look.files) for line in stack), 40)
    for number, (owner, lines) in enumerate(groupby(stack, key=lambda line: whose(line.file))):
        together = list(lines)
        if owner == "user":
            yield from (_row(line, look, places, (key, number, at), depth, inside) for at, line in enumerate(together))
            continue
        fold = (key, "others", number)
        is_open = look.is_open(fold)
        words = f"{' ' * (1 + INDENT * depth)}{sign(is_open=is_open)} {counted(len(together), 'line')} {_OF[owner]}"
        yield Row(fold, fixed([(words, "dim")]), "fold", fold, is_open, inside)
        for at, line in enumerate(together) if is_open else ():
            yield _row(line, look, places, (key, number, at), depth + 1, (*inside, fold))


def _row(line: StackLine, look: Look, places: int, key: Hashable, depth: int, inside: tuple[Hashable, ...]) -> Row:
    place = file_names.place(line.file, line.line, look.files)
    start = " " * (1 + INDENT * depth)
    words = [(f"{start}{place:<{places}}  ", "accent"), (line.code, ""), (f"  in {line.function}", "dim")]
    return Row(key, fixed(words), "edit", inside=inside, file=line.file, line=line.line)
