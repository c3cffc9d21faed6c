"""Record the answers of torch's caches and, for a miss, which part of the key is new."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from msgspec.structs import replace

from idbg.analysis.decisions.caches import FOLDER, Key, nearest, parts_of
from idbg.analysis.ranks.digest import is_library
from idbg.engine.capture.frame import FrameCapture
from idbg.engine.capture.run import RunCapture
from idbg.engine.compat import caches
from idbg.engine.compat.tracing import current_frame
from idbg.engine.decisions.seen_keys import SeenKeys
from idbg.schema.decisions.inductor import Autotuned, CacheAnswer, Choice, KeyPart
from idbg.traces.cache_answers import GraphCacheAnswer, described

OFF_WHILE_WATCHED = "idbg turns it off while it records: on a hit no graph is lowered, and no rule is checked"


@contextmanager
def record(capture: RunCapture) -> Iterator[None]:
    """The answers of the caches of graphs and kernels become events; keys are stored for later runs."""
    recorder = _Caches(capture)
    graphs, kernels = capture.feature("cache answers"), capture.feature("kernel caches")
    with (
        caches.observe_graph_caches(graphs, recorder.answered),
        caches.observe_kernel_caches(kernels, recorder.kernel, recorder.since),
    ):
        try:
            yield
        finally:
            graphs.safe(recorder.end)()


@dataclass
class _Caches:
    capture: RunCapture
    seen: SeenKeys = field(default_factory=SeenKeys)
    began: float = field(default_factory=time.time)
    _aot_emitted: set[str] = field(default_factory=set)
    _kernels: dict[str, list[tuple[CacheAnswer, str]]] = field(default_factory=dict)

    def since(self) -> float:
        """When the current compile began."""
        torchs_id = current_frame()
        return (self.capture.frame(torchs_id).current_part_began if torchs_id else 0) or self.began

    def answered(self, found: GraphCacheAnswer) -> None:
        """A graph cache answered. The kernels of its graph were reported before."""
        if not (torchs_id := current_frame()):
            return  # a compile of torch's own belongs to no frame
        frame = self.capture.frame(torchs_id)
        if found.cache == "fx_graph" and frame.frame not in self._aot_emitted and not caches.aot_cache_on():
            self._aot_emitted.add(frame.frame)
            self._emit(frame, CacheAnswer(cache="aot_autograd", outcome="off", reason=OFF_WHILE_WATCHED))
        answer = self._answer(frame, found)
        self._emit(frame, answer)
        if found.cache == "fx_graph":
            self._emit_kernels(frame, with_graph=answer.outcome == "hit")

    def _answer(self, frame: FrameCapture, found: GraphCacheAnswer) -> CacheAnswer:
        key = self._key(frame, found)
        is_miss = found.outcome == "miss" and found.cache == "fx_graph"
        near = nearest(key, self.seen.like(key)) if is_miss else None
        if found.outcome in ("hit", "miss"):
            self._remember(frame, found, key)
        return described(found, frame.current_part, key, near, caches.why_off() if found.outcome == "off" else "")

    def _remember(self, frame: FrameCapture, found: GraphCacheAnswer, key: Key) -> None:
        if found.cache == "fx_graph":
            self.seen.add(key, self.capture.run, frame.frame)

    def _key(self, frame: FrameCapture, found: GraphCacheAnswer) -> Key:
        started = self.capture.started(frame.frame)
        known = started is not None and not is_library(
            started.file
        )  # `forward` of torch's own Linear is in any program
        place = f"{started.file}:{started.function}:{frame.current_part}" if started is not None and known else ""
        folder = caches.cache_folder()
        parts = (*parts_of(found.payload.get("components") or ()), KeyPart(FOLDER, folder, folder))
        return Key(str(found.payload.get("key", "")), place, "", {part.name: part for part in parts})

    def kernel(self, answer: CacheAnswer, chosen: str) -> None:
        """A kernel was loaded, before the answer of its graph's cache."""
        if torchs_id := current_frame():
            self._kernels.setdefault(torchs_id, []).append((answer, chosen))

    def _emit_kernels(self, frame: FrameCapture, *, with_graph: bool) -> None:
        for answer, chosen in self._kernels.pop(current_frame(), ()):
            if with_graph and answer.cache == "triton":
                answer = replace(answer, outcome="hit", reason="it came with the graph")
            self._emit(frame, replace(answer, part=frame.current_part))
            if chosen:
                tuned = Autotuned(
                    op="configuration",
                    part=frame.current_part,
                    kernel=answer.what,
                    choices=(Choice(chosen),),
                    chosen=chosen,
                    cached=True,
                )
                self.capture.decided(frame.frame, tuned)

    def end(self) -> None:
        """Record kernels without an answer of a graph's cache, and store the keys."""
        for torchs_id, found in list(self._kernels.items()):
            frame = self.capture.frame(torchs_id)
            for answer, _ in found:
                self._emit(frame, replace(answer, key=""))
        self._kernels.clear()
        self.seen.save()

    def _emit(self, frame: FrameCapture, answer: CacheAnswer) -> None:
        self.capture.decided(frame.frame, answer)
