"""Read torch's structured trace of a compile in this process."""

import logging
from contextlib import AbstractContextManager

from idbg.engine.compat import tracing
from idbg.engine.compat.hooks import Feature, trace_records
from idbg.stages import StageText, package_of
from idbg.traces.frame import TracedFrame
from idbg.traces.reader import RecordReader
from idbg.traces.run import TracedRun


class _Reader(RecordReader):
    """Passes each record of the trace to a run's capture."""

    def file_of(self, number: int) -> str:
        return tracing.interned(number)

    def unread(self, frame: str, name: str, text: str) -> None:
        """An artifact that a backend logs, by the convention of tlparse, is a stage of it; torch's own are not."""
        module = tracing.traced_by()
        if module is not None and text:
            self.run.stages.add(package_of(module), StageText(name, text, frame=frame), "artifact")

    def record(self, record: logging.LogRecord) -> None:
        payload = getattr(record, "payload", None)
        if (metadata := getattr(record, "metadata", None)) is not None:
            self.read(metadata, payload if isinstance(payload, str) else "")


def read_trace(capture: "TracedRun[TracedFrame]", feature: Feature) -> AbstractContextManager[None]:
    """While it lasts, the capture gets torch's trace, unless `feature` is paused."""
    return trace_records(feature, _Reader(capture).record)
