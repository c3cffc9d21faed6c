"""Whose is this exception, and what should the user be told?"""

import re
import sysconfig
import traceback
from pathlib import Path
from types import TracebackType

from idbg.engine import compat
from idbg.errors import ConstraintViolation, IdbgError, said, spelled
from idbg.records import Failure, Program

_OURS = str(Path(__file__).resolve().parents[1])
_NO_CUDA = (
    "Torch not compiled with CUDA enabled",
    "Found no NVIDIA driver",
    "No CUDA GPUs are available",
    "no CUDA-capable device",
)
_BY_BACKEND = re.compile(r"^backend='.*?' raised:\s*", re.DOTALL)
_LIBRARIES = ("site-packages", "dist-packages", sysconfig.get_path("stdlib"))
_KEPT = 20_000  # characters of a traceback: enough for any that a person reads


def failure_of(error: BaseException, program: Program) -> Failure:
    """The failure as a record. A user's own exception keeps its traceback, less the frames that are ours."""
    chain = _chain(error)
    for link in chain:
        if isinstance(link, (ConstraintViolation, IdbgError)):
            return link.failure()
    if isinstance(error, KeyboardInterrupt):
        return Failure(kind="cancelled", message="cancelled", hint="run it again when you like")
    if isinstance(error, SyntaxError):
        return _syntax_error(error)
    if isinstance(error, FileNotFoundError) and error.filename == program.path:
        return Failure(
            kind="input", type="FileNotFoundError", message=f"there is no file {program.path}", hint="check the path"
        )
    text = _traceback(error)
    file, line = _place(error)
    message = _BY_BACKEND.sub("", said(error).strip()) or type(error).__name__
    if isinstance(error, SystemExit):
        message = f"it ended itself with sys.exit({spelled(error.code)})"
    for link in chain:
        if compat.is_torch_error(link):
            return Failure(
                kind="torch",
                type=type(link).__name__,
                message=message,
                hint="torch.compile raised this: a repro shows it alone, if Dynamo had a graph",
                traceback=text,
                file=file,
                line=line,
            )
    return Failure(
        kind="user",
        type=type(error).__name__,
        message=message,
        hint=_hint(message),
        traceback=text,
        file=file,
        line=line,
    )


def innermost(error: BaseException) -> BaseException:
    """The exception that all the others were raised from."""
    return _chain(error)[-1]


def _chain(error: BaseException) -> list[BaseException]:
    chain = [error]
    while (inner := _inner(chain[-1])) is not None and not any(inner is link for link in chain):
        chain.append(inner)
    return chain


def _inner(error: BaseException) -> BaseException | None:
    """What it was raised from; an exception may have a truth value, and an equality, of its own."""
    return error.__cause__ if error.__cause__ is not None else error.__context__


def _hint(message: str) -> str:
    if any(text in message for text in _NO_CUDA):
        return "this machine has no usable CUDA GPU: run it where there is one, or with --device cpu"
    return "the program itself raised this: mend it, then run it again"


def _syntax_error(error: SyntaxError) -> Failure:
    text = "".join(traceback.format_exception_only(error))
    place = f"{Path(error.filename or '').name}, line {error.lineno}"
    return Failure(
        kind="user",
        type="SyntaxError",
        message=f"{error.msg} ({place})",
        hint="mend the line, then run it again",
        traceback=text,
        file=error.filename or "",
        line=error.lineno or 0,
    )


def _traceback(error: BaseException) -> str:
    text = "".join(traceback.format_exception(type(error), error, _without_ours(error.__traceback__)))
    return text if len(text) <= _KEPT else f"{text[: _KEPT // 2]}\n  ...\n{text[-_KEPT // 2 :]}"


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    """Skip the frames above the program: ours, and those of the machinery that runs it."""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith((_OURS, "<frozen")):
            return trace
        trace = trace.tb_next
    return None


def _place(error: BaseException) -> tuple[str, int]:
    """The user's line: the innermost frame that is in no library."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((_OURS, "<")) and not any(folder in frame.filename for folder in _LIBRARIES)
    ]
    return (frames[-1].filename, frames[-1].lineno or 0) if frames else ("", 0)
