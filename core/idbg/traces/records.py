"""What the records of torch's trace hold: names of frames, timed parts, and the results of compiles."""

import json
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from idbg.schema.graphs import Frame

_EACH_REASON = re.compile(r"^(?=\S+/\d+: )", re.MULTILINE)
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
    return Problem(str(metrics["fail_type"]), str(metrics.get("fail_reason") or ""), str(file or ""), _count(line) or 0)


def measured_of(metadata: Metadata, metrics: object, problem: Problem | None) -> Measured:
    """The metrics of one compile."""
    values = metrics if isinstance(metrics, dict) else {}
    attempt = metadata.get("attempt")
    restarts = values.get("restart_reasons")
    return Measured(
        attempts=1 + attempt if isinstance(attempt, int) else 1,
        seconds=_number(values.get("entire_frame_compile_time_s")),
        lost=_number(values.get("dynamo_time_before_restart_s")),
        restarts=tuple(sorted(map(str, restarts))) if isinstance(restarts, list | tuple | set) else (),
        ops=_count(values.get("graph_op_count")),
        guards=_count(values.get("guard_count")),
        entries=_count(values.get("accumulated_cache_size")),
        alike=_count(values.get("cache_size")),
        problem=problem,
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) else None


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
    return Frame(frame, str(last.get("name", "?")), name, _count(last.get("line")) or 0)


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
