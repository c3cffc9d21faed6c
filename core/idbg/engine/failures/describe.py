"""Describe an exception for the user: its message, a hint, the line of the program, a traceback, the kernel's launch.

A kernel that raises (an index out of bounds, an integer divided by zero, a device's error) does so at the wrapper's
line that launches it. A device reports errors late, at a later call.
"""

import ast
import errno
import os
import re
import traceback
from dis import opmap
from pathlib import Path
from types import TracebackType

from msgspec.structs import replace

from idbg.analysis.crashes import is_wrapper, launch_at, launch_checked_at, with_site
from idbg.analysis.output_code import part_of
from idbg.config import places
from idbg.engine.capture.fx import user_line
from idbg.engine.capture.run import RunCapture
from idbg.engine.compat import caches, exceptions, fx, gpu, kernels
from idbg.engine.failures.owners import (
    OURS,
    BackendHome,
    Owner,
    chain,
    home_of,
    is_own,
    own_frames,
    owner_of,
    type_and_message,
)
from idbg.format.failures import CALLED_BACK
from idbg.format.limits import memory_limit
from idbg.schema import events
from idbg.schema.errors import ConstraintViolation, IdbgError, exception_text, spelled
from idbg.schema.faults import CrashSite
from idbg.schema.programs import Failure, LoweredNode, Program
from idbg.traces.outcomes import EAGER_HINT

WAITS = ("wait_for_launch", "wait_for_op")
"""Our functions that wait for the device (instrument/waiting.py): their errors are not late."""

_NO_CUDA = (
    "Torch not compiled with CUDA enabled",
    "Found no NVIDIA driver",
    "No CUDA GPUs are available",
    "no CUDA-capable device",
)
_KNOWN = {  # what torch's message does not say what to do about, by a part of it
    "no fake impl registered": "the custom op has no fake kernel: give it one with torch.library.register_fake",
    "triton not built with the": "Triton cannot compile the program's kernel for this device: run it on a GPU",
}
_BY_BACKEND = re.compile(r"^backend='.*?' raised:\s*", re.DOTALL)
_REFUSALS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)
_PARTITIONED = re.compile(r"\bNode (\w+) was invalid, but is output")
_ENDS = 5  # lines at both ends of a traceback that says no more than the message
_KEPT = 20_000  # characters of a traceback: enough for any that a person reads
_NULL = "source code string cannot contain null bytes"  # a ValueError before Python 3.11.4


def crash_of(error: BaseException) -> CrashSite | None:
    """The launch that raised it, with its arguments; None if no launch did. A device's error may be of any earlier
    launch.
    """
    links = chain(error)
    is_devices = any(map(gpu.is_device_error, links))
    for link in reversed(links):  # code that restores state after a device's error raises it again
        if (site := _launch_of(link, is_devices)) is not None:
            return site
    return CrashSite(cause=type(links[-1]).__name__, late=not any(map(_waited_for, links))) if is_devices else None


def _launch_of(error: BaseException, is_devices: bool) -> CrashSite | None:
    frames = list(traceback.walk_tb(error.__traceback__))
    late = is_devices and not _waited_for(error)
    for frame, line in reversed(frames):
        file = frame.f_code.co_filename
        text = _text(file) if caches.is_generated(file) else ""
        line = launch_checked_at(text, line)
        launch = launch_at(text, line) if is_wrapper(text) else None
        if launch is not None:
            users_file, users_line = kernels.users_line(file, line)
            return CrashSite(
                cause=type(error).__name__,
                kernel=launch.kernel,
                handle=launch.handle,
                part=part_of(text),
                wrapper=file,
                wrapper_line=line,
                file=users_file,
                line=users_line,
                arguments=kernels.launch_arguments(launch.names, frame.f_locals),
                arguments_of="crash",
                late=late,
            )
    return None


def _waited_for(error: BaseException) -> bool:
    return gpu.is_waited_for() or any(
        frame.f_code.co_name in WAITS for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def _text(file: str) -> str:
    try:
        return Path(file).read_text(errors="replace")
    except OSError:
        return ""


def failure_of(error: BaseException, program: Program, backend: str = "") -> Failure:
    """The failure of a run with `backend`, as a record. The traceback of a user's exception has no frames of idbg."""
    return with_site(_failure_of(error, program, backend), crash_of(error))


def with_partitioned_node(failure: Failure, capture: RunCapture | None) -> Failure:
    """The failure with the user's line of the node that the partitioner names, if it is one of the partitioner's.

    Torch names a node of the joint graph alone ("Node add was invalid, but is output"), behind a long traceback.
    """
    named = _PARTITIONED.search(failure.message)
    graphs = [graph for frame in capture.frames.values() for graph in frame.graphs.values()] if capture else []
    joints = (graph.by_name for graph in reversed(graphs) if graph.id.stage == "joint")
    node = next((nodes[named[1]] for nodes in joints if named[1] in nodes), None) if named else None
    if named is None or node is None or not node.file:
        return failure
    function = _function_at(node.file, node.line)
    of = f" in `{function}`" if function else ""
    what = f"`{node.name}` is `{node.code or node.target}`{of} ({Path(node.file).name}:{node.line})"
    why = "the forward has to return it, and it is computed in the backward alone"
    message = f"the joint graph cannot be partitioned: {what}; {why}\n{failure.first_line}"
    kept = failure.traceback.splitlines()
    if len(kept) > 2 * _ENDS:
        kept = [*kept[:_ENDS], f"  ... {len(kept) - 2 * _ENDS} lines of torch", *kept[-_ENDS:]]
    return replace(failure, message=message, file=node.file, line=node.line, traceback="\n".join(kept))


def _function_at(file: str, line: int) -> str:
    """The name of the innermost function with this line; "" outside of one, and where the file cannot be read."""
    try:
        nodes = list(ast.walk(ast.parse(Path(file).read_bytes())))
    except (OSError, ValueError, SyntaxError):
        return ""
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    around = [each for each in functions if each.lineno <= line <= (each.end_lineno or each.lineno)]
    return max(around, key=lambda each: each.lineno).name if around else ""


def is_of_compile(error: BaseException) -> bool:
    """Whether it was raised by a compile, and not by what ran."""
    return owner_of(error, BackendHome()).compiling


def of_compiled_alone(failure: Failure, error: BaseException, *, is_own_backend: bool) -> Failure:
    """The failure of a compiled program where eager ran to its end: what ran, and was not compiling, is not the
    program's own.
    """
    if failure.kind != "user" or failure.called_back or is_of_compile(error):
        return failure
    hint = "the compiled program alone raises this: eager runs to its end"
    return replace(failure, kind="backend" if is_own_backend else "torch", hint=hint)


def _failure_of(error: BaseException, program: Program, backend: str) -> Failure:
    links = chain(error)
    for link in links:
        if isinstance(link, (ConstraintViolation, IdbgError)):
            return link.failure()
        if refused := _refused_by_cache(link):
            return refused
    if isinstance(error, KeyboardInterrupt) and not _is_raised_by_code(error):
        return Failure(kind="cancelled", message="cancelled", hint="run it again when you like")
    if isinstance(error, ValueError) and str(error) == _NULL:
        return _syntax_error(SyntaxError(_NULL), program)
    if isinstance(error, SyntaxError):
        return _syntax_error(error, program)
    if isinstance(error, FileNotFoundError) and error.filename == program.path:
        return Failure(
            kind="input", type="FileNotFoundError", message=f"there is no file {program.path}", hint="check the path"
        )
    owner = owner_of(error, home_of(backend))
    if owner.place and owner.whose == "user":
        return _in_traced_code(owner, links)
    file, line = _place(error, owner)
    cause = owner.error if owner.whose == "user" else error
    message = _BY_BACKEND.sub("", exception_text(cause).strip()) or type(cause).__name__
    if isinstance(error, SystemExit):
        message = f"it ended itself with sys.exit({spelled(error.code)})"
    return Failure(
        kind=owner.whose,
        type=type(_named(links, owner)).__name__,
        message=message,
        hint=_hint(owner, message, backend),
        traceback=_traceback(error),
        file=file,
        line=line,
        lowering=_lowering(links),
        called_back=owner.called_back,
    )


def _is_raised_by_code(error: KeyboardInterrupt) -> bool:
    """Whether a statement raised it, and no signal; asyncio raises it anew for a signal."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_frame.f_globals.get("__name__") == "asyncio.runners":
        return False
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == opmap["RAISE_VARARGS"]


def _lowering(links: list[BaseException]) -> LoweredNode | None:
    """The node whose lowering raised one of these."""
    node = next((node for link in links if (node := exceptions.lowered_node(link)) is not None), None)
    if node is None or node.op != "call_function":
        return None
    file, line, _ = user_line(node.meta.get("stack_trace") or "")
    return LoweredNode(node.name, fx.qualified_target(node), file, line)


def _refused_by_cache(error: BaseException) -> Failure | None:
    """The failure if Inductor's cache cannot be written."""
    if not isinstance(error, OSError) or error.errno not in _REFUSALS or not isinstance(error.filename, str):
        return None
    cache = places.inductor_cache(os.environ).absolute()
    if not Path(error.filename).is_relative_to(cache):
        return None
    return Failure(
        kind="input",
        type=type(error).__name__,
        message=f"Inductor's cache {cache} cannot be written: {error.strerror}",
        hint="give it room and permissions, or name another with TORCHINDUCTOR_CACHE_DIR",
    )


def _named(links: list[BaseException], owner: Owner) -> BaseException:
    """The exception whose type is shown: the first of torch's own."""
    if owner.whose != "torch":
        return owner.error
    return next(filter(exceptions.is_torch_error, links), owner.error)


def _in_traced_code(owner: Owner, links: list[BaseException]) -> Failure:
    """The failure of an exception that the program, or an op of it, raises in traced code, which Python did not run."""
    kind, message = type_and_message(owner, links)
    file, line = _place(owner.error, owner)
    frames = "".join(traceback.format_list([frame for frame in owner.place if not frame.filename.startswith(OURS)]))
    return Failure(
        kind="user",
        type=kind,
        message=message,
        hint=_hint(owner, message, ""),
        traceback=f"Traceback (most recent call last), in code that torch traced:\n{frames}{kind}: {message}\n",
        file=file,
        line=line,
        called_back=owner.called_back,
    )


def _failure_of_frame(error: BaseException, program: Program, backend: str) -> Failure:
    """The failure of a frame where the program continued."""
    failure = failure_of(error, program, backend)
    return replace(failure, hint=EAGER_HINT) if failure.kind == "user" else failure


def is_refusal(error: BaseException) -> bool:
    """Whether strict mode stopped the compile."""
    return any(isinstance(link, ConstraintViolation) for link in chain(error))


def _hint(owner: Owner, message: str, backend: str) -> str:
    if known := next((hint for text, hint in _KNOWN.items() if text in message), ""):
        return known
    if owner.whose == "torch":
        return "torch.compile raised this: a repro shows it alone, if Dynamo had a graph"
    if owner.whose == "backend":
        package = f"{owner.package}, the package of the backend {backend},"
        whose = package if owner.package else "the program's own backend"
        return f"{whose} raised this: a repro shows it alone, if Dynamo had a graph"
    if any(text in message for text in _NO_CUDA):
        return "this machine has no usable CUDA GPU: run it where there is one, or with --device cpu"
    if owner.wrong_fake is not None:
        fake = f"the fake kernel of {owner.wrong_fake.op} describes another result than the op returns"
        return f"{fake}: torch.library.opcheck tests both"
    if owner.called_back:
        return f"{CALLED_BACK.format(type='this')}: a repro shows it with the graph that it was given"
    fix = "the program itself raised this: fix it, then run it again"
    is_of_memory = isinstance(owner.error, MemoryError) or "allocate memory" in message
    return "; ".join(filter(None, (fix, memory_limit() if is_of_memory else "")))


def _syntax_error(error: SyntaxError, program: Program) -> Failure:
    file, line = (error.filename, error.lineno or 0) if error.filename else _line_of_null(Path(program.path))
    place = f"{Path(file).name}, line {line}" if line else Path(file).name
    shown = error if error.filename or not file else SyntaxError(error.msg, (file, line, None, None))
    return Failure(
        kind="user",
        type="SyntaxError",
        message=f"{error.msg} ({place})" if place else str(error.msg),
        hint="fix the line, then run it again" if line else "fix the file, then run it again",
        traceback="".join(traceback.format_exception_only(shown)),
        file=file,
        line=line,
    )


def _line_of_null(file: Path) -> tuple[str, int]:
    """The line of the first NUL byte in the file, which Python reports without a line; ("", 0) without one."""
    try:
        data = file.read_bytes()
    except (OSError, ValueError):
        return "", 0
    before, null, _ = data.partition(b"\0")
    return (str(file), before.count(b"\n") + 1) if null else ("", 0)


def _traceback(error: BaseException) -> str:
    report = traceback.TracebackException(type(error), error, _without_ours(error.__traceback__))
    if report.stack and not report.stack[-1].filename.startswith(OURS):  # idbg is only on the way
        report.stack[:] = [frame for frame in report.stack if not frame.filename.startswith(OURS)]
    text = "".join(report.format())
    return text if len(text) <= _KEPT else f"{text[: _KEPT // 2]}\n  ...\n{text[-_KEPT // 2 :]}"


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    """Skip the frames above the program."""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith((OURS, "<frozen")):
            return trace
        trace = trace.tb_next
    return None


def _place(error: BaseException, owner: Owner) -> tuple[str, int]:
    """The user's line: the innermost frame outside of libraries, of the traced code, or else of the stack."""
    links = chain(error)
    refused = next(filter(None, map(exceptions.refused_stack, links)), ()) if owner.whose == "torch" else ()
    if owner.wrong_fake is not None:
        return owner.wrong_fake.file, owner.wrong_fake.line
    traced = [frame for frame in owner.place or refused if is_own(frame.filename)]
    fake = list(own_frames(owner.error)) if traced and owner.whose == "user" else []  # the program's fake of an op
    # code that restores state after a device's error raises it again, without a line of the program
    of_device = links if any(map(gpu.is_device_error, links)) else []
    before = [frame for link in of_device for frame in own_frames(link)]
    for frames in (fake, traced, own_frames(owner.error), own_frames(error), owner.place, before):
        users = [frame for frame in frames if not frame.filename.startswith(owner.folders)]
        if users:
            return users[-1].filename, users[-1].lineno or 0
    return "", 0


def report_frames(capture: RunCapture, error: BaseException | None, program: Program, backend: str) -> None:
    """Emit the frames that failed while the program continued, or ended by another `error`; and those whose backward
    never ran.
    """
    for frame, why in capture.outcomes.swallowed(chain(error) if error else ()):
        failure = why if isinstance(why, Failure) else _failure_of_frame(why, program, backend)
        failure = with_partitioned_node(failure, capture)
        went_on = isinstance(why, Failure | Exception)  # SystemExit ends the program, in order
        capture.emit(events.FrameFailed(run=capture.run, frame=frame, failure=failure, went_on=went_on))
    idle = tuple(name for name, frame in capture.frames.items() if frame.backward_ran is False)
    if idle and error is None:
        capture.emit(events.BackwardsIdle(run=capture.run, frames=idle))
