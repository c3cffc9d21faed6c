"""Encode events as lines of a log, and decode them.

An event log is one JSON object a line; `type` names the event. Readers skip types that they do not know, so that old
programs open new logs.
"""

import msgspec

from idbg.schema import strict_json
from idbg.schema.events import SessionEvent

_decoder: msgspec.json.Decoder[SessionEvent] = msgspec.json.Decoder(SessionEvent)


class _Tag(msgspec.Struct):
    type: str


_TAGS = frozenset(event.__struct_config__.tag for event in SessionEvent.__args__)


def encode(event: SessionEvent) -> bytes:
    """One event as one line of JSON, without the newline. What UTF-8 cannot say of a program's text is escaped."""
    return strict_json.encode(event)


def decode(line: bytes) -> SessionEvent | None:
    """The event on this line, or None if its type is one that this version does not know.

    Raises msgspec.DecodeError if the line is not an event at all.
    """
    if msgspec.json.decode(line, type=_Tag).type not in _TAGS:
        return None
    return _decoder.decode(line)
