"""Write a whole session as one file: one format a module.

A module here has ABOUT (a few words), SUFFIXES (of file names, the first is the usual one) and `render`.
"""

import dataclasses
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from msgspec.structs import replace

from idbg.format.amounts import few
from idbg.schema.errors import BadInput, output_errors
from idbg.schema.runs import History
from idbg.whole_file import write_whole


@dataclass(frozen=True)
class SessionData:
    """What a document is made of: a session's history, or that of several as one (`together`).

    `name` is the session's, for titles; `folder` where it is, "" where it is nowhere. `other` is what it is compared
    with. Nothing of it is changed.
    """

    name: str
    history: History
    folder: str = ""
    other: "SessionData | None" = None


class Document(Protocol):
    """A format."""

    ABOUT: str
    SUFFIXES: tuple[str, ...]

    def render(self, session: SessionData) -> bytes:
        """The file's content. Raises BadInput where this format cannot hold such a session."""


@cache
def formats() -> tuple[str, ...]:
    """The name of each format."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def document(name: str) -> Document:
    """The format of this name, one of `formats()`."""
    return cast("Document", import_module(f"{__name__}.{name}"))


def format_of(path: Path) -> str:
    """The format that a file's name asks for. Raises BadInput where it asks for none that is known."""
    name = path.name.lower()
    found = [(suffix, each) for each in formats() for suffix in document(each).SUFFIXES if name.endswith(suffix)]
    if not found:
        known = ", ".join(suffix for each in formats() for suffix in document(each).SUFFIXES)
        raise BadInput(f"{path}: no format of a report is written to such a name", hint=f"end it with {known}")
    return max(found, key=lambda each: len(each[0]))[1]


def write(path: Path, content: bytes) -> None:
    """Write the file as a whole, or leave it as it was; its folder is made. Raises OutputError."""
    with output_errors(f"cannot write {path}", "name another file"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)


def together(sessions: Sequence[SessionData]) -> SessionData:
    """Several sessions as one: their runs are numbered one after another, their repros and rows follow."""
    if len(sessions) == 1:
        return sessions[0]
    whole = History()
    for session in sessions:
        first = max(whole.runs, default=0)
        for number, run in sorted(session.history.runs.items()):
            whole.runs[first + number] = dataclasses.replace(run, number=first + number)
        whole.repros += [replace(each, run=first + each.run) for each in session.history.repros]
        whole.rows += session.history.rows
        whole.missing += [f"{session.name}: {text}" for text in session.history.missing]
        whole.worker = whole.worker or session.history.worker
        whole.kernels = whole.kernels or session.history.kernels
        whole.switches = whole.switches or session.history.switches
    names = [session.name for session in sessions]
    return SessionData(few(names, 3, " and {:,} more"), whole)
