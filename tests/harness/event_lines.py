"""Read a whole log of events that is known to be good."""

from collections.abc import Iterable

from idbg.schema import event_log
from idbg.schema.events import SessionEvent


def events_of(lines: Iterable[bytes]) -> list[SessionEvent]:
    """Every event that this version knows, in order."""
    return [event for line in lines if line.strip() and (event := event_log.decode(line)) is not None]
