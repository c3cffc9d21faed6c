"""Record what the compiler decides while it compiles, and why. Each module records one kind of decision.

A module has `record(capture)`: while that lasts, the decisions become events of the capture's run.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress

from idbg.engine import stages
from idbg.engine.capture.run import RunCapture
from idbg.engine.compat.names import Missing
from idbg.engine.decisions import (
    autotune,
    caches,
    cuda_graphs,
    frames,
    fusion,
    guards,
    passes,
    recompiles,
    splits,
    times,
)

RECORDERS: tuple[Callable[[RunCapture], AbstractContextManager[None]], ...] = (
    frames.record,
    recompiles.record,
    times.record,
    passes.record,
    fusion.record,
    caches.record,
    cuda_graphs.record,
    autotune.record,
    splits.record,
    guards.record,
    stages.record,
)


@contextmanager
def record_all(capture: RunCapture) -> Iterator[None]:
    """While it lasts, all decisions in the compiles of this run are recorded, and other compilers' stages."""
    with ExitStack() as stack:
        for record in RECORDERS:
            with suppress(Missing):  # noted where it was looked up
                stack.enter_context(record(capture))
        yield
