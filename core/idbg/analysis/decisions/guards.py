"""Find the guards that failed, and the share of a call that guards take."""

from collections.abc import Iterable
from dataclasses import dataclass

from idbg.schema.decisions.dynamo import FailedGuard, FrameGuards, Guard
from idbg.schema.runs import Run

_OTHER_WORDS = {
    "tensor '": "TENSOR_MATCH",
    "expected type of '": "TENSOR_MATCH",
    "Duplicate tensors found": "NO_TENSOR_ALIASING",
    "GLOBAL_STATE changed": "GLOBAL_STATE",
}
"""How torch's message of a failed guard begins where it does not repeat the guard's code -> its kind."""


class Failures:
    """Which compiles each guard of a run caused: those of this run alone are known."""

    def __init__(self, run: Run) -> None:
        self._frames: dict[str, _Causes] = {}
        for recompiled in run.recompiles:
            for failed in recompiled.failed:
                self._frames.setdefault(failed.against, _Causes()).add(failed, recompiled.frame)

    def __bool__(self) -> bool:
        return bool(self._frames)

    def of(self, frame: str, guard: Guard) -> tuple[str, ...]:
        """The frames that were compiled because this guard of `frame` failed, in order; none if it never did."""
        causes = self._frames.get(frame)
        return tuple(causes.compiles(guard)) if causes is not None else ()


class _Causes:
    """What failed of one frame's guards."""

    def __init__(self) -> None:
        self._by_code: dict[str, dict[str, None]] = {}
        self._by_kind: dict[tuple[str, str], dict[str, None]] = {}  # and source: of failures in other words

    def add(self, failed: FailedGuard, compiled: str) -> None:
        """The guard failed, and `compiled` was compiled for it."""
        code = failed.code or failed.text
        kind = next((kind for start, kind in _OTHER_WORDS.items() if code.startswith(start)), "")
        if kind:
            source = normal(failed.source) if kind == "TENSOR_MATCH" else ""
            self._by_kind.setdefault((kind, source), {})[compiled] = None
        else:
            self._by_code.setdefault(code, {})[compiled] = None

    def compiles(self, guard: Guard) -> dict[str, None]:
        """What was compiled for this guard."""
        found: dict[str, None] = {}
        for code in guard.code:
            found |= self._by_code.get(code, {})
        about = guard.source if guard.kind == "TENSOR_MATCH" else ""
        return found | self._by_kind.get((guard.kind, about), {})


def normal(source: str) -> str:
    """A source as guards have it: "x" of a message is "L['x']"."""
    return f"L['{source}']" if source.isidentifier() else source


def by_source(guards: Iterable[Guard]) -> dict[str, list[Guard]]:
    """The guards by the expression that they are about, in order; "" has those of the whole frame."""
    groups: dict[str, list[Guard]] = {}
    for guard in guards:
        groups.setdefault(guard.source, []).append(guard)
    return groups


@dataclass(frozen=True)
class Share:
    """What part of a call the guards of a frame take: `guards` of `guards + call` seconds. `first`: the only call that
    was made is the first one, which does more than others.
    """

    guards: float
    call: float
    first: bool

    @property
    def part(self) -> float:
        """From 0 to 1."""
        return self.guards / (self.guards + self.call) if self.guards + self.call else 0.0


def share(run: Run, guards: FrameGuards) -> Share | None:
    """None where the guards, or a call of the frame's graph, were not measured."""
    calls = run.decided.calls.get(guards.frame)
    if calls is None or guards.seconds is None:
        return None
    return Share(guards.seconds, calls.fastest, calls.calls == 1)
