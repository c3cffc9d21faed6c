"""What the records of torch's trace hold: names of frames, timed parts, and the results of compiles."""

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from idbg.schema.graphs import Frame

_EACH_REASON = re.compile(r"^(?=\S+/\d+: )", re.MULTILINE)
_ATOM = re.compile(r"\w+|[\[({]")
_TEXT_IN_CODE = re.compile(r"\'{3}.*?\'{3}|\"{3}.*?\"{3}|\"[^\"\n]*\"|#[^\n]*", re.DOTALL)
LATEST = 4e15  # microseconds since the epoch: later than any trace
MOST_ATOMS = 600_000  # names, numbers and brackets; Python's syntax tree takes up to 1.5 kB for each
Metadata = Mapping[str, object]
"""The JSON object of a record; its first key is the record's kind."""


class Problem(NamedTuple):
    """Why torch gave a frame up: the exception's type and text, and the user's line if there is one."""

    type: str
    reason: str
    file: str = ""
    line: int = 0


class Timed(NamedTuple):
    """A timed part begins or ends. `name` is ours, `what` its subject; `at` is in seconds since the epoch."""

    name: str
    at: float
    began: bool
    what: str = ""


class Measured(NamedTuple):
    """Torch's metrics of one compile of a frame, successful or not; None where they are missing. Times are in seconds.
    `entries`: the code's compiled versions before; `alike`: those that count against the recompile limit.
    """

    attempts: int
    seconds: float | None = None
    lost: float | None = None
    restarts: tuple[str, ...] = ()
    ops: int | None = None
    guards: int | None = None
    entries: int | None = None
    alike: int | None = None
    problem: Problem | None = None


def json_object(text: str) -> dict[str, object]:
    """A JSON payload; {} for an empty one, which a cache entry made without provenance has."""
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return payload if isinstance(payload, dict) else {}


def compile_id(metadata: Metadata) -> str:
    """The compile id as torch spells it: "0/0", and "!0/7/0" of a graph of compiled autograd."""
    if "frame_id" not in metadata:
        return ""
    frame = f"{metadata['frame_id']}/{metadata.get('frame_compile_id', 0)}"
    autograd = metadata.get("compiled_autograd_id")
    return frame if autograd is None else f"!{autograd}/{frame}"


def problem_of(metrics: object) -> Problem | None:
    """Why a compile failed; None of one that did not."""
    if not isinstance(metrics, dict) or not metrics.get("fail_type"):
        return None
    file, line = metrics.get("fail_user_frame_filename"), metrics.get("fail_user_frame_lineno")
    return Problem(
        str(metrics["fail_type"]), str(metrics.get("fail_reason") or ""), str(file or ""), count_of(line) or 0
    )


def measured_of(metadata: Metadata, metrics: object, problem: Problem | None) -> Measured:
    """The metrics of one compile."""
    values = metrics if isinstance(metrics, dict) else {}
    attempt = metadata.get("attempt")
    restarts = values.get("restart_reasons")
    return Measured(
        attempts=1 + (count_of(attempt) or 0),
        seconds=number(values.get("entire_frame_compile_time_s")),
        lost=number(values.get("dynamo_time_before_restart_s")),
        restarts=tuple(sorted(map(str, restarts))) if isinstance(restarts, list | tuple | set) else (),
        ops=count_of(values.get("graph_op_count")),
        guards=count_of(values.get("guard_count")),
        entries=count_of(values.get("accumulated_cache_size")),
        alike=count_of(values.get("cache_size")),
        problem=problem,
    )


def number(value: object) -> float | None:
    """A number of a trace; None of what is none, or not finite."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def count_of(value: object) -> int | None:
    """An integer of a trace that has at most 64 bits; None of anything else."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63
    return value if is_count else None  # type: ignore[return-value]


def too_long(code: str) -> str:
    """Why Python code of this length is not parsed; "" where it is."""
    if len(code) <= MOST_ATOMS or sum(1 for _ in _ATOM.finditer(_TEXT_IN_CODE.sub("", code))) <= MOST_ATOMS:
        return ""
    return f"it has more than {MOST_ATOMS:,} names, numbers and brackets"


def name_of(metadata: object) -> str:
    """The name of an artifact."""
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def frame_of(frame: str, metadata: object, file_of: Callable[[int], str]) -> Frame:
    """The frame that a dynamo_start record names; `file_of` gives the file name of a number in the record."""
    stack = metadata.get("stack") if isinstance(metadata, dict) else None
    if not isinstance(stack, list) or not stack or not isinstance(last := stack[-1], dict):
        return Frame(frame, "?")
    file = last.get("filename", "")
    name = file_of(file) if isinstance(file, int) else str(file)
    return Frame(frame, str(last.get("name", "?")), name, count_of(last.get("line")) or 0)


def each_reason(text: str) -> list[str]:
    """Why each compiled version of a frame does not fit: a JSON list, or text in which each begins with its id."""
    try:
        reasons = json.loads(text)
    except ValueError:
        reasons = [each.strip() for each in _EACH_REASON.split(text) if each.strip()]
    return [str(each) for each in reasons] if isinstance(reasons, list) else [str(reasons)]


def reasons_of(text: str) -> str:
    """Why a frame is compiled again, as torch has it; a list as one line."""
    try:
        reasons = json.loads(text)
    except ValueError:
        return text
    return "; ".join(map(str, reasons)) if isinstance(reasons, list) else str(reasons)
