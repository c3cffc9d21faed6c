"""What became of single frames of a run, where its end says nothing of them?"""

from idbg.engine.capture.run import RunCapture
from idbg.engine.failures.describe import failure_of_frame
from idbg.engine.failures.owners import chain
from idbg.schema import events
from idbg.schema.programs import Failure, Program


def tell_frames(capture: RunCapture, error: BaseException | None, program: Program, backend: str) -> None:
    """Which did not compile although the program went on, or ended by another `error`; and whose backward was never
    called.
    """
    for frame, why in capture.outcomes.swallowed(chain(error) if error else ()):
        failure = why if isinstance(why, Failure) else failure_of_frame(why, program, backend)
        capture.emit(events.FrameFailed(run=capture.run, frame=frame, failure=failure))
    idle = tuple(name for name, frame in capture.frames.items() if frame.backward_ran is False)
    if idle and error is None:
        capture.emit(events.BackwardsIdle(run=capture.run, frames=idle))
