"""Read the events of logs of format 1, in which each kind of decision has an event of its own."""

import msgspec

from idbg.schema.events import DecisionsRecorded

_KINDS = {
    "frame_done": ("result", "frame"),
    "frame_skipped": ("skip", "skip"),
    "skips_dropped": ("", "skips_dropped"),
    "broke_again": ("again", "break_again"),
    "guards_captured": ("guards", "guards"),
    "calls_timed": ("calls", "calls"),
    "spans_told": ("spans", "span"),
    "passes_ran": ("phases", "passes"),
    "fusion_decided": ("fusion", "fusion"),
    "cache_answered": ("answer", "cache"),
    "cuda_graph_decided": ("graph", "cuda_graph"),
    "graph_was_split": ("split", "split"),
    "split_called": ("calls", "split_calls"),
    "autotuning": ("tuned", "autotune"),
}
"""Of each of these events: which of its fields has the decision or a list of them, and of which kind they are."""
_Fields = dict[str, object]


def is_old(tag: str) -> bool:
    """Whether there are no such events any more."""
    return tag in _KINDS


def decode(line: bytes) -> DecisionsRecorded:
    """What an event of that time has. Raises msgspec.DecodeError."""
    event = msgspec.json.decode(line, type=_Fields)
    field, kind = _KINDS[str(event["type"])]
    found = msgspec.convert(event.get(field, {}), _Fields | list[_Fields])
    decisions = [{**event, **each, "kind": kind} for each in (found if isinstance(found, list) else [found])]
    return msgspec.convert({**event, "type": "decisions", "decisions": decisions}, DecisionsRecorded)
