"""Read torch's report of a graph break.

"Graph break in user code at FILE:LINE", why it was met, a title, an explanation, hints, torch's page of it, and two
tracebacks: the user's, and that of torch's code, which is left out. A line of a stack is the user's, torch's, idbg's or
a library's by its path.
"""

import re
from functools import lru_cache
from typing import Literal

from idbg.schema.decisions.dynamo import BreakWay, GraphBreak, Stack, StackLine

Whose = Literal["user", "torch", "idbg", "library"]

_NO_TITLES = "Encountered", "Failed to handle", "Higher Order Operator"  # what torch was tracing, and for what
_PACKAGES = ("/site-packages/", "/dist-packages/")
_TORCH = ("torch", "functorch", "torchgen")
_OURS = ("/idbg/worker/", "/idbg/engine/", "/idbg_tui/", "/bin/idbg")


@lru_cache(maxsize=1000)
def whose(file: str) -> Whose:
    """To whom a source file belongs, by its path."""
    for folder in _PACKAGES:
        inside = f"/{file}".rpartition(folder)[2] if folder in f"/{file}" else ""
        if inside:
            package = inside.partition("/")[0]
            return "torch" if package in _TORCH else "library"
    if file.partition("/")[0] in _TORCH:  # a path that was cut where the package begins
        return "torch"
    if any(part in file for part in _OURS):
        return "idbg"
    return "library" if file.startswith("<frozen ") or "/lib/python3" in file or file.endswith("runpy.py") else "user"


def of_program(stack: Stack) -> Stack:
    """The stack from the first of the user's lines on: what started the program stands above it. All of one that has
    none of theirs.

    The outermost "<string>" is the command that started the worker.
    """
    theirs = (at for at, line in enumerate(stack) if whose(line.file) == "user" and (at or line.file != "<string>"))
    return stack[next(theirs, 0) :]


def own(stack: Stack) -> StackLine | None:
    """The innermost line of the user's."""
    return next((line for line in reversed(stack) if whose(line.file) == "user"), None)


_PLACE = re.compile(r"user code at (.+?):(\d+)")
_PAGE = re.compile(r"please visit: (\S+)")
_PART = re.compile(r"^ +(Explanation|Hint|Developer debug context): ?", re.MULTILINE)
_STACK_LINE = re.compile(r'^ {2,3}File "(.+)", line (\d+), in (.+)$')
_WAYS: tuple[tuple[str, BreakWay], ...] = (
    ("Encountered graph break when attempting to trace", "call"),
    ("Encountered graph break that we cannot resume from", "rest"),
    ("Failed to handle graph break gracefully", "frame"),
    ("Data-dependent", "branch"),
)
_LIMIT = re.compile(r"exceeding the (\w+) .*?currently set to (\d+)", re.DOTALL)
_STACK = "User code traceback:"
_FOLLOWS = ("\n*** While handling this graph break", "\nStack variable source attribution:", "\n\n For more details")
_MOST_CONTEXT = 500  # characters: it may hold a whole graph


def read_break(text: str, frame: str = "") -> GraphBreak:
    """The break of a report; where its form is not known, its first words are the reason."""
    place = _PLACE.search(text)
    report, _, stacks = text.partition(_STACK)
    explained = read_explained(report.partition("Graph Break Reason: ")[2] or report.partition("\n")[2] or report)
    way: BreakWay = next((way for words, way in _WAYS if words in report), "")
    return GraphBreak(
        explained.reason or report.strip()[:200],
        place[1] if place else "",
        int(place[2]) if place else 0,
        frame,
        explained.kind,
        explained.explanation,
        explained.hints,
        explained.context,
        explained.page,
        read_stack(stacks.partition("\nTraceback (most recent call last):")[0]),
        way,
    )


def read_explained(text: str) -> GraphBreak:
    """Title, explanation, hints and page of the message of torch's exception, or of a report; the first of several."""
    page = _PAGE.search(text)
    for follows in _FOLLOWS:
        text = text.partition(follows)[0]
    head, *parts = _PART.split(text)
    titles = [line for each in reversed(head.splitlines()) if (line := each.strip()) and not line.endswith(":")]
    if not parts:  # else it stands right before its explanation, also in lower case
        titles = [line for line in titles if line[0].isupper()]
    kind = next((line for line in titles if not line.startswith(_NO_TITLES)), "")
    explanation, context = "", ""
    hints: list[str] = []
    for name, words in zip(parts[::2], parts[1::2], strict=True):
        text_of_part = _outdented(words)
        if name == "Explanation":
            explanation = text_of_part
        elif name == "Hint":
            hints.append(text_of_part)
        else:
            context = text_of_part[:_MOST_CONTEXT]
    reason = ": ".join(part for part in (kind, explanation.partition("\n")[0]) if part)
    return GraphBreak(
        reason, kind=kind, explanation=explanation, hints=tuple(hints), context=context, page=page[1] if page else ""
    )


def limit_hit(text: str) -> str:
    """Which limit of torch's forbids another compile, and what it is ("recompile_limit is 8"); "" if none does."""
    limit = _LIMIT.search(text)
    return f"{limit[1]} is {limit[2]}" if limit else ""


def stack_of_error(text: str) -> Stack:
    """The user's stack in an error of Dynamo's, as Python prints it; () where it has none."""
    return (
        read_stack(text.rpartition("from user code:")[2].strip("\n").partition("\n\n")[0])
        if "from user code:" in text
        else ()
    )


def read_stack(text: str) -> Stack:
    """The program's lines of a printed Python stack; marks below the code are left out."""
    lines = text.splitlines()
    stack: list[StackLine] = []
    for at, line in enumerate(lines):
        if (found := _STACK_LINE.match(line)) is None:
            continue
        following = lines[at + 1] if at + 1 < len(lines) else ""
        code = following.strip() if following.startswith("    ") else ""
        stack.append(StackLine(found[1], int(found[2]), found[3], code))
    return of_program(tuple(stack))


def _outdented(text: str) -> str:
    return "\n".join(line.removeprefix("    ").rstrip() for line in text.strip().splitlines())
