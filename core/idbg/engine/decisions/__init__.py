"""What did the compiler decide while it compiled, and why? Each module listens for one kind of decision.

A module has `heard(capture)`: while that lasts, what it hears becomes events of the capture's run.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from idbg.engine.capture.run import RunCapture
from idbg.engine.decisions import autotune, caches, cuda_graphs, frames, fusion, guards, passes, recompiles, times
from idbg.engine.decisions.hearing import Listening

LISTENERS: tuple[Listening, ...] = (
    frames.heard,
    recompiles.heard,
    times.heard,
    passes.heard,
    fusion.heard,
    caches.heard,
    cuda_graphs.heard,
    autotune.heard,
    guards.heard,
)


@contextmanager
def all_heard(capture: RunCapture) -> Iterator[None]:
    """While it lasts, whatever is decided in the compiles of this run is told."""
    with ExitStack() as stack:
        for listening in LISTENERS:
            stack.enter_context(listening(capture))
        yield
