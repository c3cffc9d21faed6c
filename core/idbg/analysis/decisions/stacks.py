"""Tell the user's lines of a stack from those of torch, idbg and libraries."""

from typing import Literal

from idbg.schema.decisions.dynamo import Stack, StackLine

Whose = Literal["user", "torch", "idbg", "library"]

_PACKAGES = ("/site-packages/", "/dist-packages/")
_TORCH = ("torch", "functorch", "torchgen")
_OURS = ("/idbg/worker/", "/idbg/engine/", "/idbg_tui/", "/bin/idbg")


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
    """
    first = next((place for place, line in enumerate(stack) if whose(line.file) == "user"), 0)
    return stack[first:]


def own(stack: Stack) -> StackLine | None:
    """The innermost line of the user's."""
    return next((line for line in reversed(stack) if whose(line.file) == "user"), None)
