"""How is a user's stack told? Theirs line by line, and what lies between in one."""

from collections.abc import Iterator

from idbg.analysis.decisions.stacks import Folded, folded
from idbg.format.amounts import counted
from idbg.format.file_names import near_place
from idbg.schema.decisions.dynamo import Stack

NAMES = {"torch": "of torch", "idbg": "of idbg", "library": "of libraries"}


def stack_lines(stack: Stack) -> Iterator[str]:
    """Outermost first."""
    for line in folded(stack):
        if isinstance(line, Folded):
            yield f"({counted(line.count, 'line')} {NAMES[line.whose]})"
        else:
            yield f"{near_place(line.file, line.line)} in {line.function}   {line.code}".rstrip()
