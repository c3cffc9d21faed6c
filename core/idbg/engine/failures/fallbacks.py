"""Find log messages of a backend that falls back to eager or to Inductor.

OpenVINO catches the errors of its compiler, logs them at a level that is off, and runs the graph natively: a comparison
would compare eager with eager.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from idbg.engine.failures.owners import home_of
from idbg.schema.conformance import FALLBACK
from idbg.schema.programs import Failure

# "Falling back to native PyTorch execution"; "Failed in OpenVINO execution" is followed by Inductor's compile
_FALLS_BACK = re.compile(r"\bfall(?:s|ing)?[ -]?back\b|^failed in openvino execution", re.IGNORECASE)
_MAX_TEXT = 500  # characters


class _AllRecords(logging.Filter):
    """Reads all records of a logger, and passes on those of the level that it had before."""

    def __init__(self, logger: logging.Logger, found: list[str]) -> None:
        super().__init__()
        self.logger, self.own, self.level, self.found = logger, logger.level, logger.getEffectiveLevel(), found
        logger.filters.insert(0, self)  # first: another one of ours may stop records
        logger.setLevel(logging.DEBUG)

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if _FALLS_BACK.search(text) and text not in self.found:
            self.found.append(text)
        return record.levelno >= self.level

    def end(self) -> None:
        self.logger.setLevel(self.own)
        self.logger.removeFilter(self)


@contextmanager
def fallback_messages(backend: str) -> Iterator[list[str]]:
    """While it lasts, collect the fallback messages of the backend's package, unless it is torch's or ours."""
    found: list[str] = []
    package = home_of(backend).package
    loggers = [
        logger
        for name, logger in list(logging.root.manager.loggerDict.items())
        if package and isinstance(logger, logging.Logger) and f"{name}.".startswith(f"{package}.")
    ]
    filters = [_AllRecords(logger, found) for logger in loggers]
    try:
        yield found
    finally:
        for each in filters:
            each.end()


def failure(backend: str, text: str) -> Failure:
    """The failure of a graph that the backend ran natively; `text` is its package's message."""
    return Failure(
        kind="backend",
        type=FALLBACK,
        message=f"{backend} compiled nothing of a graph, and ran it natively instead. It says: {text[:_MAX_TEXT]}",
        hint=f"give {backend} options and ops that it takes: what was run is not its work",
    )
