"""What did torch's caches answer while a run compiled, and where one had nothing: which part of its key is new?"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import cast

from idbg.analysis.decisions.caches import FOLDER, Key, differences, nearest, parts_of
from idbg.engine.capture.frame import FrameCapture
from idbg.engine.capture.run import RunCapture
from idbg.engine.compat import caches
from idbg.engine.compat.caches import Told
from idbg.engine.compat.kernels_found import KernelFound, kernels_told
from idbg.engine.compat.tracing import current_frame
from idbg.engine.decisions.hearing import harmless
from idbg.engine.decisions.seen_keys import SeenKeys
from idbg.schema import events
from idbg.schema.decisions.caches import Autotuned, CacheAnswer, CacheName, Choice, KeyPart

OFF_WHILE_WATCHED = "idbg turns it off while it watches: on a hit no graph is lowered, and no rule would be asked"


@contextmanager
def heard(capture: RunCapture) -> Iterator[None]:
    """What the caches of graphs and kernels answer becomes events; keys are remembered for later runs."""
    hearing = _Caches(capture)
    what = "what the caches answered"
    with ExitStack() as stack:
        stack.enter_context(caches.answers_told(harmless(capture, what)(hearing.answered)))
        stack.enter_context(kernels_told(harmless(capture, what)(hearing.kernel), hearing.since))
        try:
            yield
        finally:
            harmless(capture, what)(hearing.end)()


@dataclass
class _Caches:
    capture: RunCapture
    seen: SeenKeys = field(default_factory=SeenKeys)
    began: float = field(default_factory=time.time)
    _aot_told: set[str] = field(default_factory=set)
    _kernels: dict[str, list[KernelFound]] = field(default_factory=dict)

    def since(self) -> float:
        """When what is being compiled now began."""
        torchs_id = current_frame()
        return (self.capture.frame(torchs_id).in_hand_since if torchs_id else 0) or self.began

    def answered(self, told: Told) -> None:
        """A cache of graphs was asked; what its graph's kernels came to was told before."""
        if not (torchs_id := current_frame()):
            return  # what torch compiles of its own is of no frame
        frame = self.capture.frame(torchs_id)
        if told.cache == "fx_graph" and frame.frame not in self._aot_told and not caches.aot_cache_on():
            self._aot_told.add(frame.frame)
            self._tell(frame, CacheAnswer(cache="aot_autograd", outcome="off", reason=OFF_WHILE_WATCHED))
        answer = self._answer(frame, told)
        self._tell(frame, answer)
        if told.cache == "fx_graph":
            self._tell_kernels(frame, with_graph=answer.outcome == "hit")

    def _answer(self, frame: FrameCapture, told: Told) -> CacheAnswer:
        said, part = told.said, frame.part_in_hand
        cache = cast("CacheName", told.cache)
        match told.outcome:
            case "hit":
                saved = said.get("time_saved_ns")
                key = self._key(frame, told)
                self._remember(frame, told, key)
                return CacheAnswer(
                    cache=cache, outcome="hit", part=part, key=key.key, saved=saved / 1e9 if saved else None
                )
            case "miss":
                return self._miss(frame, told)
            case "bypass":
                reason = str(said.get("cache_bypass_reason") or "torch does not say why")
                return CacheAnswer(cache=cache, outcome="bypass", part=part, reason=reason)
            case _:
                return CacheAnswer(cache=cache, outcome="off", part=part, reason=caches.why_off())

    def _miss(self, frame: FrameCapture, told: Told) -> CacheAnswer:
        key = self._key(frame, told)
        near = nearest(key, self.seen.like(key)) if told.cache == "fx_graph" else None
        self._remember(frame, told, key)
        sizes = told.said.get("cache_status_detailed") == "guard_miss"
        return CacheAnswer(
            cache=cast("CacheName", told.cache),
            outcome="miss",
            part=frame.part_in_hand,
            key=key.key,
            reason="it has graphs with this key, but none for these sizes" if sizes else "",
            differs=differences(key, near) if near else (),
            nearest=near.when if near else "",
        )

    def _remember(self, frame: FrameCapture, told: Told, key: Key) -> None:
        if told.cache == "fx_graph":
            self.seen.add(key, self.capture.run, frame.frame)

    def _key(self, frame: FrameCapture, told: Told) -> Key:
        started = self.capture.started(frame.frame)
        place = f"{started.file}:{started.function}:{frame.part_in_hand}" if started else ""
        folder = caches.cache_folder()
        parts = (*parts_of(told.said.get("components") or ()), KeyPart(FOLDER, folder, folder))
        return Key(str(told.said.get("key", "")), place, "", {part.name: part for part in parts})

    def kernel(self, found: KernelFound) -> None:
        """A kernel was loaded, before it is known whether its graph was found."""
        if torchs_id := current_frame():
            self._kernels.setdefault(torchs_id, []).append(found)

    def _tell_kernels(self, frame: FrameCapture, *, with_graph: bool) -> None:
        for found in self._kernels.pop(current_frame(), ()):
            outcome, reason = found.outcome, found.reason
            if with_graph and found.cache == "triton":
                outcome, reason = "hit", "it came with the graph"
            self._tell(
                frame,
                CacheAnswer(
                    cache=found.cache,
                    outcome=outcome,
                    part=frame.part_in_hand,
                    key=found.key,
                    what=found.name,
                    reason=reason,
                ),
            )
            if found.chosen:
                tuned = Autotuned(
                    op="configuration",
                    part=frame.part_in_hand,
                    kernel=found.name,
                    choices=(Choice(found.chosen),),
                    chosen=found.chosen,
                    cached=True,
                )
                self.capture.emit(events.Autotuning(run=self.capture.run, frame=frame.frame, tuned=tuned))

    def end(self) -> None:
        """Tell what no graph's answer came after, and keep the keys."""
        for torchs_id, found in list(self._kernels.items()):
            frame = self.capture.frame(torchs_id)
            for each in found:
                self._tell(
                    frame, CacheAnswer(cache=each.cache, outcome=each.outcome, what=each.name, reason=each.reason)
                )
        self._kernels.clear()
        self.seen.save()

    def _tell(self, frame: FrameCapture, answer: CacheAnswer) -> None:
        self.capture.emit(events.CacheAnswered(run=self.capture.run, frame=frame.frame, answer=answer))
