"""How is a Python stack shown: the user's lines, with all between them folded?"""

import re
from collections.abc import Hashable, Iterator
from itertools import groupby

from idbg.format import file_names
from idbg.format.amounts import counted
from idbg.schema.decisions.dynamo import Stack, StackLine
from idbg_tui.panes.why.rows import INDENT, Look, Row, fixed, sign, widest

_OTHERS = re.compile(
    r"^<frozen |[\\/](?:site|dist)-packages[\\/]torch[\\/]|[\\/]torch[\\/]_|[\\/]idbg[\\/](?:engine|worker)[\\/]"
)
_OF = "Python, torch and idbg"


def rows(stack: Stack, look: Look, key: Hashable, depth: int, inside: tuple[Hashable, ...]) -> Iterator[Row]:
    """A line a row, the outermost first; enter on one opens it."""
    places = widest((file_names.place(line.file, line.line, look.files) for line in stack), 40)
    for number, (others, lines) in enumerate(groupby(stack, key=is_others)):
        together = list(lines)
        if not others:
            yield from (_row(line, look, places, (key, number, at), depth, inside) for at, line in enumerate(together))
            continue
        fold = (key, "others", number)
        is_open = look.is_open(fold)
        words = f"{' ' * (1 + INDENT * depth)}{sign(is_open=is_open)} {counted(len(together), 'line')} of {_OF}"
        yield Row(fold, fixed([(words, "dim")]), "fold", fold, is_open, inside)
        for at, line in enumerate(together) if is_open else ():
            yield _row(line, look, places, (key, number, at), depth + 1, (*inside, fold))


def is_others(line: StackLine) -> bool:
    """Whether it is none of the program's."""
    return _OTHERS.search(line.file) is not None


def _row(line: StackLine, look: Look, places: int, key: Hashable, depth: int, inside: tuple[Hashable, ...]) -> Row:
    place = file_names.place(line.file, line.line, look.files)
    start = " " * (1 + INDENT * depth)
    words = [(f"{start}{place:<{places}}  ", "accent"), (line.code, ""), (f"  in {line.function}", "dim")]
    return Row(key, fixed(words), "edit", inside=inside, file=line.file, line=line.line)
