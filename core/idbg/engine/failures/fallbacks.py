"""Does a backend of others say, where nobody hears it, that it gave a graph back to eager or to Inductor?

OpenVINO catches whatever its compiler raises, logs that at a level that is off, and runs the graph natively: without
this a comparison would hold eager against eager.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from idbg.engine.failures.owners import home_of
from idbg.schema.programs import Failure

# "Falling back to native PyTorch execution"; "Failed in OpenVINO execution" is followed by Inductor's compile
_SAYS = re.compile(r"\bfall(?:s|ing)?[ -]?back\b|^failed in openvino execution", re.IGNORECASE)
_KEPT = 500  # characters of what it says


class _Ear(logging.Filter):
    """Hears all that a logger is told, and passes on what it would have passed on without us."""

    def __init__(self, logger: logging.Logger, told: list[str]) -> None:
        super().__init__()
        self.logger, self.own, self.level, self.told = logger, logger.level, logger.getEffectiveLevel(), told
        logger.filters.insert(0, self)  # before one that listens already: it passes nothing on
        logger.setLevel(logging.DEBUG)

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if _SAYS.search(text) and text not in self.told:
            self.told.append(text)
        return record.levelno >= self.level

    def end(self) -> None:
        self.logger.setLevel(self.own)
        self.logger.removeFilter(self)


@contextmanager
def heard(backend: str) -> Iterator[list[str]]:
    """What the backend's package says of graphs that it gave up, while this lasts. Nothing of torch's own and ours."""
    told: list[str] = []
    package = home_of(backend).package
    loggers = [
        logger
        for name, logger in list(logging.root.manager.loggerDict.items())
        if package and isinstance(logger, logging.Logger) and f"{name}.".startswith(f"{package}.")
    ]
    ears = [_Ear(logger, told) for logger in loggers]
    try:
        yield told
    finally:
        for ear in ears:
            ear.end()


def failure(backend: str, text: str) -> Failure:
    """What is told of a graph that the backend ran natively; `text` is what its package logged."""
    return Failure(
        kind="backend",
        type="Fallback",
        message=f"{backend} compiled nothing of a graph, and ran it natively instead. It says: {text[:_KEPT]}",
        hint=f"give {backend} options and ops that it takes: what was run is not its work",
    )
