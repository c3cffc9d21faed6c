"""Encode events as lines of a log, and decode them.

An event log is one JSON object a line; `type` names the event. Readers skip types that they do not know, so that old
programs open new logs.
"""

import msgspec

from idbg.schema import old_events, strict_json
from idbg.schema.decisions import kinds
from idbg.schema.events import DecisionsRecorded, SessionEvent

_decoder: msgspec.json.Decoder[SessionEvent] = msgspec.json.Decoder(SessionEvent)


class _Tag(msgspec.Struct):
    type: str


class _Kind(msgspec.Struct):
    kind: str


class _Kinds(msgspec.Struct):
    decisions: tuple[_Kind, ...]


_TAGS = frozenset(event.__struct_config__.tag for event in SessionEvent.__args__)
_DECISIONS = DecisionsRecorded.__struct_config__.tag


def encode(event: SessionEvent) -> bytes:
    """One event as one line of JSON, without the newline. What UTF-8 cannot say of a program's text is escaped."""
    return strict_json.encode(event)


def decode(line: bytes) -> SessionEvent | None:
    """The event on this line, or None if this version does not know its type, or the kind of its decisions.

    Raises msgspec.DecodeError if the line is not an event at all.
    """
    tag = msgspec.json.decode(line, type=_Tag).type
    if old_events.is_old(tag):
        return old_events.decode(line)
    if tag not in _TAGS or (tag == _DECISIONS and not _are_known(line)):
        return None
    return _decoder.decode(line)


def _are_known(line: bytes) -> bool:
    return all(each.kind in kinds() for each in msgspec.json.decode(line, type=_Kinds).decisions)
