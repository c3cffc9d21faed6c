"""The jump list, and steps along a node's edges."""

from dataclasses import dataclass
from typing import Literal

from idbg.schema.graphs import Graph, NodeId

Relation = Literal["input", "user"]


class JumpList:
    """Vim's jump list, for nodes: `leave` when jumping away, `back` and `forward` to return."""

    def __init__(self, limit: int = 200) -> None:
        self._past: list[NodeId] = []
        self._future: list[NodeId] = []
        self._limit = limit

    def leave(self, place: NodeId, target: NodeId) -> None:
        """Remember `place`, unless the jump goes nowhere."""
        if place == target:
            return
        self._past = [*self._past[-self._limit + 1 :], place]
        self._future = []

    def back(self, place: NodeId | None) -> NodeId | None:
        """The place before, or None at the beginning; `place` is where `forward` returns to."""
        return self._move(self._past, self._future, place)

    def forward(self, place: NodeId | None) -> NodeId | None:
        """The place that `back` left, or None."""
        return self._move(self._future, self._past, place)

    @staticmethod
    def _move(source: list[NodeId], sink: list[NodeId], place: NodeId | None) -> NodeId | None:
        if not source:
            return None
        if place is not None:
            sink.append(place)
        return source.pop()


@dataclass
class Walker:
    """Follows inputs and users; remembers the last step, so that the next sibling can be had instead."""

    _origin: str = ""
    _relation: Relation = "input"
    _turn: int = 0
    _at: str = ""

    def step(self, graph: Graph, name: str, relation: Relation, turn: int) -> str | None:
        """The name of the next node, or None where there is no neighbour.

        With `turn` 0 it is the first neighbour of `name`, with 1 the sibling after the one that the last step went to.
        """
        again = turn and name == self._at and relation == self._relation and self._origin in graph.by_name
        origin = self._origin if again else name
        near = graph.by_name[origin].inputs if relation == "input" else graph.users.get(origin, ())
        near = tuple(dict.fromkeys(near))
        if not near:
            return None
        self._turn = (self._turn + turn) % len(near) if again else 0
        self._origin, self._relation, self._at = origin, relation, near[self._turn]
        return self._at
