"""Read the answers of torch's caches of graphs from its trace."""

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from idbg.analysis.decisions.caches import Key, differences
from idbg.schema.decisions.inductor import CacheAnswer, CacheOutcome
from idbg.schema.graphs import Part
from idbg.traces.records import Metadata, name_of

GraphCache = Literal["fx_graph", "aot_autograd"]
_PREFIXES: dict[str, GraphCache] = {"fx_graph_cache_": "fx_graph", "aotautograd_cache_": "aot_autograd"}
_OUTCOMES: tuple[CacheOutcome, ...] = ("hit", "miss", "bypass")
_ANSWERS = {prefix + outcome: (cache, outcome) for prefix, cache in _PREFIXES.items() for outcome in _OUTCOMES}
_DISABLED = '"fx_graph_cache_disabled"'  # the name of an event, at its beginning


class GraphCacheAnswer(NamedTuple):
    """The outcome that torch traces for a cache: "hit", "miss", "bypass", or "off" where it was not used."""

    cache: GraphCache
    outcome: CacheOutcome
    payload: Mapping[str, Any]


def read_answer(metadata: Metadata, text: str) -> GraphCacheAnswer | None:
    """The answer that a record is; None of another record."""
    if "artifact" in metadata:
        known = _ANSWERS.get(name_of(metadata["artifact"]))
        return GraphCacheAnswer(*known, json.loads(text)) if known is not None else None
    return GraphCacheAnswer("fx_graph", "off", {}) if _DISABLED in text[:60] else None


def described(found: GraphCacheAnswer, part: Part, key: Key, near: Key | None, why_off: str) -> CacheAnswer:
    """The answer with its reason. `near`: the nearest key that was seen before, for a miss."""
    match found.outcome:
        case "hit":
            saved = found.payload.get("time_saved_ns")
            return CacheAnswer(
                cache=found.cache, outcome="hit", part=part, key=key.key, saved=saved / 1e9 if saved else None
            )
        case "miss":
            sizes = found.payload.get("cache_status_detailed") == "guard_miss"
            return CacheAnswer(
                cache=found.cache,
                outcome="miss",
                part=part,
                key=key.key,
                reason="it has graphs with this key, but none for these sizes" if sizes else "",
                differs=differences(key, near) if near else (),
                nearest=near.when if near else "",
            )
        case "bypass":
            reason = str(found.payload.get("cache_bypass_reason") or "torch gives no reason")
            return CacheAnswer(cache=found.cache, outcome="bypass", part=part, reason=reason)
        case _:
            return CacheAnswer(cache=found.cache, outcome=found.outcome, part=part, reason=why_off)
