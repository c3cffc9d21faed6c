"""Describe a failure so that it can be recognized in a smaller program: exception, message, and line of the user's.

Line numbers change as a file gets smaller, so a place is the text of its line.
"""

import linecache
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from idbg.engine.compat import exceptions
from idbg.engine.failures.owners import chain, is_own, own_frames
from idbg.engine.repro.error_message import fragment, shortened
from idbg.engine.repro.failed_compile import telling
from idbg.schema.decisions.dynamo import GraphBreak
from idbg.schema.errors import exception_text
from idbg.schema.repros import Signature, Sought
from idbg.schema.runs import Run

_NUMBER = re.compile(r"(?<![A-Za-z])\d.*", re.DOTALL)
_ADDRESS = re.compile(r"\d{7}")  # of an object: another in each process
_VALUES = re.compile(r"[\[(]")  # what follows has types and values
_ENTRY = re.compile(r"^\s*\d+/\d+: ")  # which cache entry's guard it was
_RESUMED = re.compile(r"(?<=_at_)\d+$")  # a line, in the name of what runs on after a break


@dataclass(frozen=True)
class FailurePattern:
    """A failure to search for: an exception of the type `error` ("": any) whose message contains all `pieces`, raised
    at a `line` with this text; or a message of torch about a break or a recompile that contains them.

    With `command`, the failure is that this command, given the file's path, exits with the `status` of the whole.
    """

    signature: Signature
    title: str
    error: str = ""
    pieces: tuple[str, ...] = ()
    line: str = ""
    source: str = ""
    message: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    status: int = 0

    @property
    def is_logged(self) -> bool:
        """Whether torch logs it while the program continues."""
        return self.signature.kind in ("break", "recompile")


def pattern_of(sought: Sought, error: BaseException | None, run: Run) -> FailurePattern:
    """The pattern of a run's failure. Raises ValueError if the run has no such failure."""
    match sought.kind:
        case "check":
            words = " ".join(sought.command)
            return FailurePattern(Signature("check", message=words), f"`{words} FILE` fails", command=sought.command)
        case "break":
            return of_break(_at(sought.place, run.breaks))
        case "recompile":
            return _recompile_at(sought.place, run)
        case "failure" if error is not None:
            return of_error(error)
        case _:
            raise ValueError(
                "no graph of the program has it by itself, and a crash, a hang or a wrong result is not looked for in "
                "the source: the program as it is shows it"
            )


def of_error(error: BaseException) -> FailurePattern:
    """An exception that ended the program."""
    link = telling(error)
    message = shortened(exception_text(link))
    name = type(link).__name__
    traced = next(filter(None, map(exceptions.traced_stack, (link, *chain(error)))), ())
    frames = [frame for frame in traced if is_own(frame.filename)] or list(own_frames(error))
    last = frames[-1] if frames else None
    piece = fragment(message)
    line = _line(last.filename, last.lineno or 0) if last else ""
    return FailurePattern(
        Signature("compile" if exceptions.is_torch_error(link) else "runtime", type=name, message=piece, place=line),
        f"{name}: {message[0] if message else ''}".rstrip(": "),
        name,
        (piece,) if piece else (),
        line,
        f"{last.filename}:{last.lineno}" if last else "",
        tuple(message[1:]),
    )


def of_break(graph_break: GraphBreak) -> FailurePattern:
    """A graph break, at its line."""
    title, _, why = graph_break.reason.partition(": ")
    line = _line(graph_break.file, graph_break.line)
    # the explanation names what the title does not
    what = fragment([_VALUES.split(graph_break.explanation.partition("\n")[0])[0]])
    return FailurePattern(
        Signature("break", message=title, place=line),
        f"Graph break: {title}",
        pieces=tuple(filter(None, (title, what))),
        line=line,
        source=f"{graph_break.file}:{graph_break.line}",
        message=tuple(shortened(why)) if why else (),
    )


def of_recompile(function: str, reason: str, source: str) -> FailurePattern:
    """A recompile of a function, for torch's reason."""
    guard, *comments = (part.strip() for part in _ENTRY.sub("", reason.splitlines()[0]).split("  # "))
    name = _RESUMED.sub("", function)
    piece = _NUMBER.sub("", guard)
    line = comments[0] if comments else ""
    return FailurePattern(
        Signature("recompile", message=piece.strip() if _ADDRESS.search(guard) else guard, place=line or name),
        f"Recompile of {function}: {guard}",
        "RecompileError",
        tuple(dict.fromkeys(each for each in (f"Recompiling function {name}", piece) if each)),
        line,
        source,
    )


def _at(place: str, breaks: Sequence[GraphBreak]) -> GraphBreak:
    for each in breaks:
        if not place or _is_at(place, each.file, each.line):
            return each
    raise ValueError(_none("graph break", place, [(each.file, each.line) for each in breaks]))


def _recompile_at(place: str, run: Run) -> FailurePattern:
    for each in run.recompiles:
        frame = run.frames.get(each.frame) or next(iter(run.frames.values()))
        file, _, line = place.rpartition(":")
        named = place and re.search(rf"\b{re.escape(Path(file).name)}:{re.escape(line)}\b", each.reason)
        if not place or named or _is_at(place, frame.file, frame.line):
            return of_recompile(frame.function, each.reason, f"{frame.file}:{frame.line}")
    frames = [run.frames[each.frame] for each in run.recompiles if each.frame in run.frames]
    raise ValueError(_none("recompile", place, [(frame.file, frame.line) for frame in frames]))


def _none(what: str, place: str, there: Sequence[tuple[str, int]]) -> str:
    known = ", ".join(dict.fromkeys(f"{Path(file).name}:{line}" for file, line in there))
    return f"the run has no {what}" + (f" at {place}, but at {known}" if known else "")


def _is_at(place: str, file: str, line: int) -> bool:
    """Whether FILE:LINE, where FILE may be a part of the path, names this line."""
    name, _, number = place.rpartition(":")
    return number == str(line) and (not name or file == name or file.endswith("/" + name.lstrip("./")))


def _line(file: str, line: int) -> str:
    linecache.checkcache(file)
    return linecache.getline(file, line).strip()
