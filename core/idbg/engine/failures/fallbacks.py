"""Find log messages of a backend that falls back to eager or to Inductor.

OpenVINO catches the errors of its compiler, logs them at a level that is off, and runs the graph natively: a comparison
would compare eager with eager.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from idbg.engine.failures.owners import home_of
from idbg.schema.programs import FALLBACK, Failure

# "Falling back to native PyTorch execution"; "Failed in OpenVINO execution" is followed by Inductor's compile
_FALLS_BACK = re.compile(r"\bfall(?:s|ing)?[ -]?back\b|^failed in openvino execution", re.IGNORECASE)
_MAX_TEXT = 500  # characters
_MOST = 1000  # messages


class _AllRecords(logging.Filter):
    """Reads all records of a logger, and passes on those of the level that it had before."""

    def __init__(self, logger: logging.Logger, found: list[str]) -> None:
        super().__init__()
        self.logger, self.own, self.level, self.found = logger, logger.level, logger.getEffectiveLevel(), found
        logger.filters.insert(0, self)  # first: another one of ours may stop records
        logger.setLevel(logging.DEBUG)

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if _FALLS_BACK.search(text) and len(self.found) < _MOST:
            self.found.append(text)
        return record.levelno >= self.level

    def end(self) -> None:
        self.logger.setLevel(self.own)
        self.logger.removeFilter(self)


class FallbackMessages:
    """The messages of watched backends' packages that they fall back, in `found`."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._filters: dict[str, _AllRecords] = {}

    def watch(self, backend: str) -> None:
        """Read what the backend's package logs from now on, unless that is torch's or ours. Its loggers exist once it
        is imported: a backend that the program chooses is watched when it is called.
        """
        package = home_of(backend).package
        for name, logger in list(logging.root.manager.loggerDict.items()) if package else ():
            is_its = isinstance(logger, logging.Logger) and f"{name}.".startswith(f"{package}.")
            if is_its and name not in self._filters:
                self._filters[name] = _AllRecords(cast("logging.Logger", logger), self.found)

    def end(self) -> None:
        for each in self._filters.values():
            each.end()


@contextmanager
def fallback_messages(backend: str) -> Iterator[FallbackMessages]:
    """While it lasts, collect the fallback messages of this backend's package, and of those that are watched."""
    messages = FallbackMessages()
    messages.watch(backend)
    try:
        yield messages
    finally:
        messages.end()


def failure(backend: str, text: str) -> Failure:
    """The failure of a graph that the backend ran natively; `text` is its package's message."""
    return Failure(
        kind="backend",
        type=FALLBACK,
        message=f"a graph, or a partition of one, ran natively and not by {backend}. It says: {text[:_MAX_TEXT]}",
        hint=f"give {backend} options and ops that it takes: what was run is not its work",
    )
