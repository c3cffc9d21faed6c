"""Where was the user before? A list of the places they jumped from, to go back and forth on."""

from idbg.schema.graphs import NodeId


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
