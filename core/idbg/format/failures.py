"""Write what went wrong with a run in one line."""

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

from idbg.format import file_names
from idbg.schema.programs import FALLBACK, Failure, LoweredNode

_WHAT = {
    "user": "the program raised {type}",
    "torch": "torch could not compile it",
    "launch": "the compiled code failed",
    "backend": "the backend failed",
    "constraints": "stopped by the rules",
    "worker": "the worker died",
    "cancelled": "cancelled",
    "idbg": "failed",
}
CALLED_BACK = "code of yours that the compiler calls raised {type}"
_INPUT = {
    "ProgramError": "the program cannot be used",
    "AcceleratorError": "the accelerator cannot be used",
    "OutputError": "the output folder cannot be used",
}
# torch tells the error that it met while tracing as "...: got RuntimeError('...')", somewhere in a long text
_GOT = re.compile(r"""\bgot (\w+)\(('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")

_QUOTED = re.compile(r'File "([^"]+)", line (\d+)')


@dataclass(frozen=True)
class Headline:
    """Whose failure it is, what is wrong, and where: `what: cause (place)`."""

    what: str
    cause: str = ""
    place: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.what, self.because) if part)

    @property
    def because(self) -> str:
        """The cause and its place, which is left out where the cause names it."""
        place = f"({self.place})" if self.place and self.place not in self.cause else ""
        return " ".join(part for part in (self.cause, place) if part)


def headline(failure: Failure) -> Headline:
    """What to say of a failure where there is one line for it; the log tells the rest."""
    kind = "launch" if failure.kind == "torch" and failure.crash is not None else failure.kind
    raised = CALLED_BACK if failure.called_back else _WHAT.get(kind, "")
    what = raised.format(type=failure.type or "an exception")
    if failure.kind == "input":
        what = _INPUT.get(failure.type, "this cannot be used")
    return Headline(what, "" if failure.kind == "cancelled" else _cause(failure), _place(failure))


def frame_words(frame: str, failure: Failure, *, went_on: bool | None = True) -> str:
    """What became of a frame that failed. `went_on`: whether the program did, None where that is not known."""
    after = {True: ", and the program went on", False: "", None: "; nothing follows in the trace"}
    became = f"did not compile{after[went_on]}"
    if failure.type == FALLBACK:
        became = "ran in eager, whole or in part"
    return f"frame {frame or '?'} {became}"


def with_hint(failure: Failure) -> str:
    """The first line of its message, and what to do."""
    return f"{failure.first_line}; {failure.hint}" if failure.hint else failure.first_line


def lowering_words(lowering: LoweredNode, place: Callable[[str, int], str] = file_names.place) -> str:
    """What Inductor lowered as it failed: "the lowering of held.scale.default, for node scale (model.py:14)"."""
    at = f" ({place(lowering.file, lowering.line)})" if lowering.file else ""
    return f"the lowering of {lowering.op}, for node {lowering.node}{at}"


def place_of(failure: Failure) -> tuple[str, int]:
    """File and line: the failure's own, or the innermost of those that torch's message quotes, the user's first."""
    if failure.file:
        return failure.file, failure.line
    quoted = _QUOTED.findall(failure.message.partition("from user code:")[2])
    own = [(file, line) for file, line in quoted if "site-packages" not in file]
    return next(((file, int(line)) for file, line in reversed(own or quoted)), ("", 0))


def _place(failure: Failure) -> str:
    file, line = place_of(failure)
    return file_names.place(file, line) if file else ""


def _cause(failure: Failure) -> str:
    """The first line that says something: the error that torch met, rather than the name of what it was doing."""
    got = _GOT.search(failure.message)
    if got:
        message = str(ast.literal_eval(got[2])).strip().partition("\n")[0].rstrip(".")
        return f"{got[1]}: {message}"
    first = next((line.strip() for line in failure.message.splitlines() if line.strip()), "").rstrip(":")
    named = failure.kind in ("torch", "backend") and failure.type and not first.startswith(failure.type)
    return f"{failure.type}: {first}" if named else first
