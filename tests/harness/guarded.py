"""What is heard of the guards of a function that is compiled here?"""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from idbg.engine.capture.run import RunCapture, capturing
from idbg.engine.compat import tracing
from idbg.engine.decisions import guards
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run

_CHECK = re.compile(r"[| ]*\+- ([A-Z_]+): (.*)")


class Torchs(logging.Handler):
    """What torch's own trace says of the guards of each frame."""

    def __init__(self) -> None:
        super().__init__()
        self.checks: dict[str, list[str]] = {}
        self.asked: dict[str, int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        metadata: dict[str, Any] = getattr(record, "metadata", None) or {}
        frame = f"{metadata.get('frame_id')}/{metadata.get('frame_compile_id')}"
        if "dynamo_cpp_guards_str" in metadata:
            found = map(_CHECK.match, str(getattr(record, "payload", "")).splitlines())
            self.checks[frame] = [each[2].partition("  # ")[0].rstrip() for each in found if each]
        elif "compilation_metrics" in metadata:
            self.asked[frame] = metadata["compilation_metrics"]["guard_count"]


@contextmanager
def listened() -> Iterator[Torchs]:
    torchs = Torchs()
    tracing.trace_log().addHandler(torchs)
    try:
        yield torchs
    finally:
        tracing.trace_log().removeHandler(torchs)


def heard(call: Callable[[Callable[..., Any]], object]) -> Run:
    """The run in which `call` is given a backend for torch.compile, and calls what it compiles."""
    run = Run(1, Program("m.py"), Target(), 0.0)
    capture = RunCapture(1, run.apply, None)
    capture.lower = lambda gm, inputs, *given: gm.forward

    def backend(gm: torch.fx.GraphModule, inputs: list[object]) -> Callable[..., Any]:
        assert capture.lower is not None
        return capture.lower(gm, inputs, {}, {})

    with capturing(capture), guards.record(capture):
        call(backend)
    return run
