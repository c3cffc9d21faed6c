"""The compiler's decisions in a run so far, as a fold of their events."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

from idbg.schema.decisions.base import Decision

D = TypeVar("D", bound=Decision)
_ByKind = defaultdict[type[Decision], dict[Any, Any]]


@dataclass
class Decided:
    """All that is known of a run's decisions, by their kind. What is not here was not reported: the compiler may have
    decided it all the same.
    """

    _all: _ByKind = field(default_factory=lambda: defaultdict(dict))
    _last: _ByKind = field(default_factory=lambda: defaultdict(dict))

    def of(self, kind: type[D]) -> dict[str, list[D]]:
        """All decisions of a kind without slots, by frame."""
        return self._all[kind]

    def with_frames(self, kind: type[D]) -> list[tuple[str, D]]:
        """The same, each with its frame."""
        return [(frame, each) for frame, found in self.of(kind).items() for each in found]

    def last(self, kind: type[D]) -> dict[Any, D]:
        """The last decision of each slot of a kind."""
        return self._last[kind]

    def every(self, kind: type[D]) -> list[D]:
        """The decisions of a kind, whatever they are of."""
        return [*self.last(kind).values(), *chain.from_iterable(self.of(kind).values())]

    def apply(self, frame: str, decisions: Iterable[Decision]) -> None:
        """Take in decisions of a frame, or of none in particular."""
        for each in decisions:
            if (slot := each.slot(frame)) is None:
                self._all[type(each)].setdefault(frame, []).append(each)
            else:
                self._last[type(each)][slot] = each

    def forget(self, frame: str) -> None:
        """Drop what was decided of a frame that torch traces anew."""
        for by_frame in self._all.values():
            by_frame.pop(frame, None)
        for by_slot in self._last.values():
            for slot in [slot for slot in by_slot if slot == frame or (isinstance(slot, tuple) and slot[0] == frame)]:
                del by_slot[slot]
