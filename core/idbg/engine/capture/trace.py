"""Read torch's structured trace of a compile in this process.

Records are only sorted and stored here. Graphs are parsed later, where an error of idbg cannot end the user's compile.
"""

import json
import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from idbg.analysis.decisions.break_report import read_break
from idbg.engine.compat import spans, tracing
from idbg.engine.compat.hooks import trace_records
from idbg.schema.graphs import Frame
from idbg.stages import StageText, package_of

if TYPE_CHECKING:
    from idbg.engine.capture.run import RunCapture


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


class _Reader:
    """Passes each record of the trace to a run's capture. Frames are named by torch's compile ids."""

    def __init__(self, capture: "RunCapture") -> None:
        self.capture = capture

    def read(self, record: logging.LogRecord) -> None:
        metadata: Mapping[str, object] | None = getattr(record, "metadata", None)
        payload = getattr(record, "payload", None)
        if metadata is None:
            return
        frame = _compile_id(metadata)
        kind = next(iter(metadata))
        text = payload if isinstance(payload, str) else ""
        match kind:
            case "dynamo_start":
                self.capture.frame_started(_frame(frame, metadata[kind]))
            case "chromium_event":
                self._timed(frame, text)
            case "dynamo_output_graph" | "inductor_post_grad_graph":
                self.capture.frame(frame).graph_printed(kind, text)
            case "aot_joint_graph" | "aot_forward_graph" | "aot_backward_graph" | "aot_inference_graph":
                self.capture.frame(frame).graph_printed(kind, text)
            case "inductor_output_code":
                self.capture.frame(frame).code_written(text)
            case "graph_dump":
                self._dumped(frame, _name(metadata[kind]), text)
            case "compilation_metrics" | "bwd_compilation_metrics":
                problem = _problem(metadata[kind])
                self.capture.frame_ended(frame, problem)
                if kind == "compilation_metrics":
                    self.capture.frame_measured(frame, _measured(metadata, metadata[kind], problem))
            case "artifact":
                self._artifact(frame, _name(metadata[kind]), text)
            case _:
                pass

    def _dumped(self, frame: str, name: str, text: str) -> None:
        """AOTInductor's code comes in two files, the wrapper first."""
        if name == "inductor_aot_wrapper_code":
            self.capture.frame(frame).code_written(text)
        elif name == "inductor_aot_kernel_code" and text:
            self.capture.frame(frame).code_continued(text)
        else:
            self._of_backend(frame, name, text)

    def _artifact(self, frame: str, name: str, text: str) -> None:
        match name:
            case "inductor_post_grad_graph":
                self.capture.frame(frame).graph_printed(name, text)
            case "inductor_provenance_tracking_node_mappings":
                self.capture.frame(frame).nodes_mapped(cast("Mapping[str, Mapping[str, list[str]]]", _read(text)))
            case "dynamo_graph_break_reason":
                self.capture.graph_broke(read_break(text, frame))
            case "dynamo_error":
                self.capture.frame_erred(frame, text)
            case "recompile_reasons":
                self.capture.outcomes.recompiling(frame, _reasons(text))
            case _:
                self._of_backend(frame, name, text)

    def _of_backend(self, frame: str, name: str, text: str) -> None:
        """An artifact that a backend logs, by the convention of tlparse, is a stage of it; torch's own are not."""
        module = tracing.traced_by()
        if module is not None and text:
            self.capture.stages.add(package_of(module), StageText(name, text, frame=frame), "artifact")

    def _timed(self, frame: str, text: str) -> None:
        event = _read(text)
        if event.get("ph") not in ("B", "E"):
            return
        name, what = spans.words(str(event.get("name")))
        about = event.get("args")
        if not what and isinstance(about, dict):
            what = str(about.get("kernel_name") or "")
        self.capture.timed(frame, Timed(name, cast("float", event["ts"]) / 1e6, event["ph"] == "B", what))


def read_trace(capture: "RunCapture") -> AbstractContextManager[None]:
    """While it lasts, the capture gets torch's trace, unless it is paused."""
    return trace_records(capture.feature("compile trace"), _Reader(capture).read)


def _read(text: str) -> dict[str, object]:
    """A JSON payload; {} for an empty one, which a cache entry made without provenance has."""
    try:
        payload = json.loads(text)
    except ValueError:
        return {}
    return payload if isinstance(payload, dict) else {}


def _compile_id(metadata: Mapping[str, object]) -> str:
    """The compile id as torch spells it: "0/0", and "!0/7/0" of a graph of compiled autograd."""
    if "frame_id" not in metadata:
        return ""
    frame = f"{metadata['frame_id']}/{metadata.get('frame_compile_id', 0)}"
    autograd = metadata.get("compiled_autograd_id")
    return frame if autograd is None else f"!{autograd}/{frame}"


def _problem(metrics: object) -> Problem | None:
    if not isinstance(metrics, dict) or not metrics.get("fail_type"):
        return None
    file, line = metrics.get("fail_user_frame_filename"), metrics.get("fail_user_frame_lineno")
    return Problem(str(metrics["fail_type"]), str(metrics.get("fail_reason") or ""), str(file or ""), int(line or 0))


def _measured(metadata: Mapping[str, object], metrics: object, problem: Problem | None) -> Measured:
    values = cast("Mapping[str, Any]", metrics) if isinstance(metrics, dict) else {}
    attempt = metadata.get("attempt")
    return Measured(
        attempts=1 + attempt if isinstance(attempt, int) else 1,
        seconds=values.get("entire_frame_compile_time_s"),
        lost=values.get("dynamo_time_before_restart_s"),
        restarts=tuple(sorted(values.get("restart_reasons") or ())),
        ops=values.get("graph_op_count"),
        guards=values.get("guard_count"),
        entries=values.get("accumulated_cache_size"),
        alike=values.get("cache_size"),
        problem=problem,
    )


def _name(metadata: object) -> str:
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def _frame(frame: str, metadata: object) -> Frame:
    stack = metadata.get("stack", []) if isinstance(metadata, dict) else []
    if not stack:
        return Frame(frame, "?")
    last = stack[-1]
    file = last.get("filename", "")
    return Frame(
        frame, last.get("name", "?"), tracing.interned(file) if isinstance(file, int) else str(file), last["line"]
    )


def _reasons(text: str) -> str:
    try:
        reasons = json.loads(text)
    except ValueError:
        reasons = text
    return "; ".join(map(str, reasons)) if isinstance(reasons, list) else str(reasons)
