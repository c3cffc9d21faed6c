"""Pass each record of torch's trace to the run that it is of."""

from collections.abc import Mapping
from typing import cast

from idbg.analysis.decisions.break_report import read_break
from idbg.traces import span_names
from idbg.traces.frame import PRINTED, TracedFrame
from idbg.traces.records import (
    LATEST,
    Metadata,
    Timed,
    compile_id,
    frame_of,
    json_object,
    measured_of,
    name_of,
    number,
    problem_of,
    reasons_of,
)
from idbg.traces.run import TracedRun

_AOT_WRAPPER, _AOT_KERNEL = "inductor_aot_wrapper_code", "inductor_aot_kernel_code"


class RecordReader:
    """Sorts records by their kind. Records are only sorted and stored here: graphs are parsed later, where an error of
    idbg cannot end the user's compile.
    """

    def __init__(self, run: "TracedRun[TracedFrame]") -> None:
        self.run = run

    def file_of(self, number: int) -> str:
        """The file name of a number in a record."""
        return ""

    def unread(self, frame: str, name: str, text: str) -> None:
        """An artifact that is not read here."""

    def read(self, metadata: Metadata, text: str, frame: str = "") -> None:
        """One record: its metadata and its payload. `frame`: whose it is, where its metadata does not say."""
        frame = frame or compile_id(metadata)
        kind = next(iter(metadata), "")
        match kind:
            case "dynamo_start":
                self.run.frame_started(frame_of(frame, metadata[kind], self.file_of))
            case "chromium_event":
                self._timed(frame, text)
            case "inductor_post_grad_graph":
                self.run.frame(frame).graph_printed(kind, text)
            case _ if kind in PRINTED:
                self.run.frame(frame).graph_printed(kind, text)
            case "inductor_output_code":
                self.run.frame(frame).code_written(text)
            case "graph_dump":
                self._dumped(frame, name_of(metadata[kind]), text)
            case "compilation_metrics" | "bwd_compilation_metrics":
                problem = problem_of(metadata[kind])
                self.run.frame_ended(frame, problem)
                if kind == "compilation_metrics":
                    self.run.frame_measured(frame, measured_of(metadata, metadata[kind], problem))
            case "artifact":
                self._artifact(frame, name_of(metadata[kind]), text)
            case _:
                pass

    def _dumped(self, frame: str, name: str, text: str) -> None:
        """AOTInductor's code comes in two files, the wrapper first."""
        if name == _AOT_WRAPPER:
            self.run.frame(frame).code_written(text)
        elif name == _AOT_KERNEL and text:
            self.run.frame(frame).code_continued(text)
        else:
            self.unread(frame, name, text)

    def _artifact(self, frame: str, name: str, text: str) -> None:
        match name:
            case "inductor_post_grad_graph":
                self.run.frame(frame).graph_printed(name, text)
            case "inductor_provenance_tracking_node_mappings":
                self.run.frame(frame).nodes_mapped(cast("Mapping[str, Mapping[str, list[str]]]", json_object(text)))
            case "dynamo_graph_break_reason":
                self.run.graph_broke(read_break(text, frame))
            case "dynamo_error":
                self.run.frame_erred(frame, text)
            case "recompile_reasons":
                self.run.outcomes.recompiling(frame, reasons_of(text))
            case _:
                self.unread(frame, name, text)

    def _timed(self, frame: str, text: str) -> None:
        event = json_object(text)
        if event.get("ph") not in ("B", "E"):
            return
        name, what = span_names.words(str(event.get("name")))
        about = event.get("args")
        if not what and isinstance(about, dict):
            what = str(about.get("kernel_name") or "")
        if (at := number(event.get("ts"))) is None or not 0 <= at < LATEST:
            raise ValueError("a span without a time")
        self.run.timed(frame, Timed(name, at / 1e6, event["ph"] == "B", what))
