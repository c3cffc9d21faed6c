"""Record the stages of other compilers: those that call `idbg.stage`, and those whose dumps a reader reads."""

from collections.abc import Iterator
from contextlib import contextmanager

from idbg import stages
from idbg.engine.capture.run import RunCapture
from idbg.engine.stages.iree import Iree
from idbg.engine.stages.openvino import OpenVino
from idbg.engine.stages.readers import reading
from idbg.stages import StageText


@contextmanager
def record(capture: RunCapture) -> Iterator[None]:
    """While it lasts, other compilers' stages become events of the capture's run."""

    def called(compiler: str, text: StageText) -> None:
        if not capture.is_paused:
            capture.stages.add(compiler, text, "call")

    stages.begin(called)
    try:
        with reading(capture, (Iree(capture), OpenVino(capture))):
            yield
    finally:
        stages.end(called)
