"""Record what the compiler decides while it compiles, and why. Each module records one kind of decision.

A module with `record(capture)` is found by itself: while that lasts, the decisions become events of the capture's run.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from importlib import import_module
from pkgutil import iter_modules

from idbg.engine import stages
from idbg.engine.capture.run import RunCapture
from idbg.engine.compat.names import Missing

_MODULES = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
RECORDERS: tuple[Callable[[RunCapture], AbstractContextManager[None]], ...] = (
    *(module.record for module in _MODULES if hasattr(module, "record")),
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
