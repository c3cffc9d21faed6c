"""Show a Python stack: the user's lines, with those of libraries folded."""

from collections.abc import Hashable, Iterator
from itertools import groupby

from idbg.analysis.decisions.break_report import Whose, whose
from idbg.format.amounts import counted
from idbg.schema.decisions.dynamo import Stack, StackLine
from idbg.views.tree import Place, Refs, Row, words

_OWNERS: dict[Whose, str] = {"torch": "torch", "idbg": "idbg", "library": "Python and libraries", "user": ""}


def rows(stack: Stack, key: Hashable) -> Iterator[Row]:
    """A row a line, the outermost first."""
    for number, (owner, lines) in enumerate(groupby(stack, key=lambda line: whose(line.file))):
        found = [_row(line, (key, number, at)) for at, line in enumerate(lines)]
        if owner == "user":
            yield from found
        else:
            text = f"{counted(len(found), 'line')} of {_OWNERS[owner]}"
            yield Row((key, "others", number), words((text, "dim")), rows=found, opens="fold")


def _row(line: StackLine, key: Hashable) -> Row:
    shown = words(Place(line.file, line.line), f"  {line.code}", (f"  in {line.function}", "dim"))
    return Row(key, shown, refs=Refs(file=line.file, line=line.line), opens="edit")
