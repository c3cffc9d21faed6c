"""Where does torch say what its caches of graphs answered?"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import torch._functorch.config
import torch._inductor.config

from idbg.engine.compat.patched import patched, when_lowering
from idbg.engine.compat.tracing import trace_log

_ANSWERS = {"fx_graph_cache_": "fx_graph", "aotautograd_cache_": "aot_autograd"}
_DISABLED = '"fx_graph_cache_disabled"'  # the name of an event, which stands first in it


class Told(NamedTuple):
    """What torch says that a cache answered: "hit", "miss", "bypass", or "off" where it was not asked."""

    cache: str
    outcome: str
    said: Mapping[str, Any]


class _Tap(logging.Handler):
    def __init__(self, tell: Callable[[Told], None]) -> None:
        super().__init__()
        self.tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        metadata, payload = getattr(record, "metadata", None), getattr(record, "payload", None)
        if not metadata or not isinstance(payload, str):
            return
        if "artifact" in metadata:
            name = str(metadata["artifact"].get("name", ""))
            for prefix, cache in _ANSWERS.items():
                outcome = name.removeprefix(prefix)
                if outcome != name and outcome in ("hit", "miss", "bypass"):
                    self.tell(Told(cache, outcome, json.loads(payload)))
        elif _DISABLED in payload[:60]:
            self.tell(Told("fx_graph", "off", {}))


@contextmanager
def answers_told(tell: Callable[[Told], None]) -> Iterator[None]:
    """Tell what the caches of graphs answer, in the thread that compiles."""
    tap, logger = _Tap(tell), trace_log()
    logger.addHandler(tap)
    try:
        yield
    finally:
        logger.removeHandler(tap)


@contextmanager
def graphs_bypassed(why: Callable[[], str]) -> Iterator[None]:
    """Inductor's cache of graphs is neither asked nor filled where there is a reason not to, in words."""

    def patches() -> AbstractContextManager[None]:
        from torch._inductor.codecache import BypassFxGraphCache, FxGraphCache

        def around(check: Callable[..., None]) -> Callable[..., None]:
            def checked(*args: object, **kwargs: object) -> None:
                if reason := why():
                    raise BypassFxGraphCache(reason)
                check(*args, **kwargs)

            return checked

        return patched(FxGraphCache, "_check_can_cache", around)

    with when_lowering(patches):
        yield


def why_off() -> str:
    """Why Inductor does not ask its cache of graphs now."""
    if torch._inductor.config.force_disable_caches:
        return "force_disable_caches is set, for all of torch's caches"
    if not torch._inductor.config.fx_graph_cache:
        return "fx_graph_cache is off"
    if torch._functorch.config.bundled_autograd_cache:
        return "bundled_autograd_cache keeps the graphs in AOTAutograd's cache"
    return "torch does not cache this way of compiling, or this backend"


def aot_cache_on() -> bool:
    """Whether AOTAutograd asks its cache now."""
    return bool(torch._functorch.config.enable_autograd_cache)


def cache_folder() -> str:
    """Where Inductor keeps what it compiled, now."""
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    return str(cache_dir())
