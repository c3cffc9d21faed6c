"""The base of all events of a session (`events`)."""

import time

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=str):
    """Anything that happened; `at` is seconds since the epoch."""

    at: float = msgspec.field(default_factory=time.time)


class RunEvent(Event, frozen=True, kw_only=True, tag=str):
    """Something that happened in a run."""

    run: int
