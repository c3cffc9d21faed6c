"""Describe why a run failed, where a program crashed, and where NaN and infinities first appear."""

from collections.abc import Callable, Iterator

from idbg.format.amounts import counted
from idbg.format.failures import headline, place_of
from idbg.format.file_names import near_place
from idbg.format.glyphs import MARKS
from idbg.format.plain_text import uncoloured
from idbg.schema.diff import DiffReport
from idbg.schema.faults import MOST_ALIGNED, CrashSite, LaunchArgument, NanOrigin
from idbg.schema.programs import Failure
from idbg.views.tree import Refs, Row, words

Place = Callable[[str, int], str]
"""How a file and a line of it are written."""

_NODES_SHOWN = 6
_GIVEN_SHOWN = 4  # inputs and parameters that come with a NaN: a model that has diverged has them all
_SIGNS = {"add": "+", "sub": "-", "mul": "×", "div": "/", "pow": "**"}
_ORIGINS = {
    "user": "your program: ",
    "torch": "torch: ",
    "backend": "the backend: ",
    "constraints": "constraints: ",
    "worker": "the worker: ",
}
_OPS = {"_to_copy": "a cast", "_softmax": "softmax", "_log_softmax": "log_softmax"}
_SYNC = "run it with --sync (idbg diff --sync), which waits for the device after each launch"


def failure_rows(failure: Failure) -> Iterator[Row]:
    """Its cause, where, what is known of a crash, what to do; then its whole message and the user's traceback as code.

    torch names first what it was doing when it met an error: there the error comes first.
    """
    message = clean_lines(failure.message) or [failure.type or failure.kind]
    file, line = place_of(failure)
    cause = _cause(failure, message)
    at = Refs(file=file, line=line)
    yield Row("cause", words((f"{_ORIGINS.get(failure.kind, '')}{cause}", "reject")), refs=at, opens="edit")
    if file:
        yield Row("at", words(f"at {file}:{line}"), refs=at, opens="edit")
    for number, text in enumerate(crash_lines(failure.crash) if failure.crash else ()):
        yield Row(("crash", number), words(text), refs=at)
    for number, text in enumerate(clean_lines(failure.hint)):
        yield Row(("hint", number), words((f"{MARKS['arrow']} {text}", "accent")))
    if failure.repro and failure.repro not in failure.message:
        yield Row("repro", words((f"repro: {failure.repro}", "accent")))
    if len(message) > 1:
        yield Row("message", words(("The whole message", "strong")), code="\n".join(message))
    if traceback := clean_lines(failure.traceback):
        yield Row("traceback", words(("Traceback", "strong")), code="\n".join(traceback))


def _cause(failure: Failure, message: list[str]) -> str:
    """The error that torch met, a compiler's first error, or the first line."""
    cause = headline(failure).cause
    if cause and cause.partition(": ")[2] not in message[0] and cause not in failure.message:
        return cause
    named = failure.kind in ("user", "torch", "backend") and failure.type and not message[0].startswith(failure.type)
    first = f"{failure.type}: {message[0]}" if named else message[0]
    error = next((text.partition("error:")[2].strip() for text in message[1:] if "error:" in text), "")
    return f"{first.rstrip(':')}: {error}" if error else first


def clean_lines(text: str) -> list[str]:
    """The lines of a text without control sequences; none of a blank text."""
    return [uncoloured(line) for line in text.rstrip("\n").split("\n")] if text.strip() else []


def crash_lines(site: CrashSite) -> Iterator[str]:
    """The launch, its nodes and what it was given, a fact a line; nothing where none is known."""
    if not site.kernel:
        if site.late:
            yield f"the device reported it late, and at no launch: {_SYNC}"
        return
    where = near_place(site.file, site.line)
    place = f" ({where})" if where else ""
    yield f"{'at, or before,' if site.late else 'in'} the launch {site.handle or site.kernel}{place}"
    if site.late:
        yield f"the device reported it late: to know the launch, {_SYNC}"
    if site.nodes:
        more = f", +{len(site.nodes) - _NODES_SHOWN}" if len(site.nodes) > _NODES_SHOWN else ""
        yield f"it computes {', '.join(site.nodes[:_NODES_SHOWN])}{more}"
    yield f"it is made at {near_place(site.wrapper, site.wrapper_line)}"
    if site.arguments:
        yield "it was given:" if site.arguments_of == "crash" else "it was given, as it was launched first:"
    yield from (f"  {argument_words(argument)}" for argument in site.arguments)


def argument_words(argument: LaunchArgument) -> str:
    """One tensor in a line: dtype, shape, strides, device and how its address is aligned."""
    if not argument.alignment:
        return f"{argument.name}: {argument}, without memory"
    more = " or more" if argument.alignment == MOST_ALIGNED else ""
    return f"{argument.name}: {argument}, at a multiple of {argument.alignment} bytes{more}"


def nan_origin_lines(report: DiffReport) -> Iterator[str]:
    """A sentence for each origin, or that there is none; nothing where nobody searched."""
    return (sentence for sentence, _ in nan_origin_sentences(report))


def nan_origin_sentences(report: DiffReport, place: Place = near_place) -> Iterator[tuple[str, NanOrigin | None]]:
    """The same, each with the origin that it describes."""
    if report.births is None:
        return
    given = [birth for birth in report.births if birth.phase == "given"]
    yield from ((nan_origin_sentence(birth, place), birth) for birth in given[:_GIVEN_SHOWN])
    if len(given) > _GIVEN_SHOWN:
        yield f"… and so it is in {len(given) - _GIVEN_SHOWN:,} more inputs and parameters", None
    yield from ((nan_origin_sentence(birth, place), birth) for birth in report.births if birth.phase != "given")
    seen = any(kernel.observed for kernel in report.kernels)
    if not report.births:
        kernels = ", and no kernel that was observed makes one that the graph it came from does not" if seen else ""
        yield f"no NaN and no infinity is born in eager{kernels}", None
    elif seen and not any(birth.side == "compiled" for birth in report.births):
        yield "the kernels that were observed make none that eager has not", None


def nan_origin_sentence(birth: NanOrigin, place: Place = near_place) -> str:
    """Where a NaN or an infinity first appears, in a sentence."""
    what = "NaN" if birth.what == "nan" else "an infinity"
    where = place(birth.file, birth.line) if birth.file else ""
    count = f" ({birth.count:,} of {counted(birth.elements, 'element')})" if birth.elements > 1 else ""
    if birth.phase == "given":
        return f"{what} is in {birth.name} before anything runs: it is not born in the program{count}"
    if birth.side == "compiled":
        at = f", {where}" if where else ""
        first = f"first in {birth.handle or birth.kernel} (node {birth.node}{at})"
        return f"{what} appears in the compiled program alone: {first}{count}"
    at = f" at {where}" if where else ""
    during = f" in the backward of {birth.node}" if birth.phase == "backward" and birth.node else ""
    during = during or (" in the backward" if birth.phase == "backward" else "")
    return f"{what} is born in eager{during}{at}: {born_of(birth)}{count}"


def born_of(birth: NanOrigin) -> str:
    """The op and its operands: "log of -0.2 in float32", "0 / 0 in float32", "sum, |self| up to 6e+04, in float16"."""
    made = ", out of an infinity" if birth.from_infinity else ""
    op, operands = _OPS.get(birth.op, birth.op), birth.operands.split(", ")
    if birth.op.rstrip("_") in _SIGNS and len(operands) == 2:
        return f"{operands[0]} {_SIGNS[birth.op.rstrip('_')]} {operands[1]} in {birth.dtype}{made}"
    if birth.operands.startswith("|"):
        return f"{op}, {birth.operands}, in {birth.dtype}{made}"
    return f"{op}{f' of {birth.operands}' if birth.operands else ''} in {birth.dtype}{made}"
