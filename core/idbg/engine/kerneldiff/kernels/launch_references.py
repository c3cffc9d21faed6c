"""Compute what a launch should write, from the inputs that it was actually called with.

The graph is computed from the buffers that earlier launches have written, right or wrong, so an error that was passed
on does not count. Values are copied as they are written, because memory is reused, and dropped after the last launch
that depends on them.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress

from torch import Tensor
from torch.fx import Node

from idbg.engine.compat import comparing, fx
from idbg.engine.kerneldiff.float64.rounding import MOST_OPS, PerturbedRounding
from idbg.engine.kerneldiff.kernels.buffers import shaped
from idbg.engine.kerneldiff.kernels.interpreter import Interpreter, NodeState, OrderedGraph
from idbg.engine.kerneldiff.kernels.values import AS_OWN, NotComputable, ReferenceValue

Step = Sequence[NodeState]
"""What one launch leaves in buffers, in order."""


class LaunchReferences:
    """The known values of one call of a graph, and what follows from them. `inputs` are the graph's and must not be
    written to; `steps` are its launches, in order. Random numbers are recorded as soon as they are drawn, all other
    values after the launch was judged.
    """

    def __init__(self, graph: OrderedGraph, inputs: Iterable[object], steps: Sequence[Step]) -> None:
        self.graph = graph
        self.known: dict[Node, object] = dict(zip(graph.placeholders, inputs, strict=True))
        self.applied: dict[Node, frozenset[Node]] = dict.fromkeys(graph.placeholders, frozenset())
        self.from_buffers: set[Node] = set()  # nodes whose values were read from a launch's buffer
        self.starts = [[self._foreseen_start(state) for state in step] for step in self._foreseen(steps)]
        self.uses = Counter(node for step in self.starts for start in step for node in start)
        self.applied = dict.fromkeys(graph.placeholders, frozenset())
        self._drop_unused(graph.placeholders)

    def record(self, state: NodeState, value: Tensor) -> None:
        """Record what a launch has written for later launches; the value is copied."""
        known = [node for node in _known_with(state) if self.uses[node]]
        copy = value.clone() if known else value
        for node in known:
            self.known[node] = copy
            self.from_buffers.add(node)
            self.applied[node] = self._applied_in(node, state)

    def overwrite(self, nodes: Iterable[Node], value: Tensor) -> None:
        """Record the new content of what holds these nodes, which later launches read."""
        for node in nodes:
            if isinstance(before := self.known.get(node), Tensor):
                with suppress(NotComputable):  # in another shape, as its readers will find
                    self.known[node] = shaped(value, before).to(before.dtype, copy=True)

    def value(self, state: NodeState) -> ReferenceValue:
        """What the launch should have written. Raises NotComputable."""
        return self._computed(state, exact=True)

    def computed_by(self, state: NodeState) -> tuple[list[Node], list[Node]]:
        """The nodes that are computed for it, in order, and all that what they are computed from comes of. Raises
        NotComputable.
        """
        start = self._start(state)
        return self.graph.upstream(state.nodes, start), self.graph.upstream(start, ())

    def after_dropout(self, node: Node, share: float, mask: Tensor) -> ReferenceValue:
        """What dropout should give of this node for the mask that it drew. Raises NotComputable."""
        before = ReferenceValue(AS_OWN, self.known[node]) if node in self.known else self.value(NodeState(node))
        if not isinstance(before.own, Tensor) or share >= 1:
            raise NotComputable("it drops everything")
        scale, exact = 1 / (1 - share), before.exact
        own = before.own.reshape(mask.shape).mul(mask).mul(scale)
        return ReferenceValue(exact.reshape(mask.shape).mul(mask.to(exact.device)).mul(scale), own)

    def resampled(self, state: NodeState, seed: int, times: float) -> Tensor:
        """Eager's value with its rounding errors perturbed, `times` as much. Raises NotComputable."""
        with PerturbedRounding(seed, times, one_by_one=True, most_ops=MOST_OPS):
            own = self._computed(state, exact=False).own
        if not isinstance(own, Tensor):
            raise NotComputable("its node's value is not a tensor")
        return own

    def inputs_of(self, launch: int) -> dict[Node, object]:
        """The graph's inputs from which this launch's outputs are computed, as they came."""
        start = {node for each in self.starts[launch] for node in each if node.op == "placeholder"}
        return {node: self.known[node] for node in start - self.from_buffers}

    def release(self, launch: int) -> None:
        """Drop the values that no launch after this one needs."""
        for start in self.starts[launch]:
            self.uses.subtract(start)
            self._drop_unused(start)

    def _drop_unused(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if self.uses[node] <= 0:
                self.known.pop(node, None)
                self.applied.pop(node, None)

    def _foreseen(self, steps: Sequence[Step]) -> Iterable[Step]:
        """The steps, each with `applied` as it will be before it if nothing fails."""
        for step in steps:
            self._expect(state for state in step if comparing.is_random(state.node))
            yield step
            self._expect(step)

    def _expect(self, step: Iterable[NodeState]) -> None:
        for state in step:
            self.applied |= {node: self._applied_in(node, state) for node in _known_with(state)}

    def _applied_in(self, node: Node, state: NodeState) -> frozenset[Node]:
        """The nodes that have changed the node's value in this state."""
        return frozenset(self.graph.changed_at.get(node, set()).intersection(state.changes))

    def _foreseen_start(self, state: NodeState) -> set[Node]:
        try:
            return self._start(state)
        except NotComputable:
            return set()

    def _start(self, state: NodeState) -> set[Node]:
        """The known nodes that the value is computed from. Raises NotComputable."""
        is_changed = bool(state.changes) or state.node.op == "placeholder"
        known = self.applied.keys() - (set() if is_changed else {state.node})
        needed = self.graph.upstream(state.nodes, known)
        if dropped := next((node for node in needed if node.op == "placeholder"), None):
            raise NotComputable(f"{dropped.name}, which it is computed from, was dropped")
        start = known.intersection(state.nodes).union(*(known.intersection(node.all_input_nodes) for node in needed))
        self._check_changes(state, start, set(needed))
        return start

    def _check_changes(self, state: NodeState, start: set[Node], needed: set[Node]) -> None:
        """Raises NotComputable unless every value has the in-place changes that it has at that point."""
        place = self.graph.place
        last = max(map(place.__getitem__, state.nodes))
        for node in (*start, *needed):
            by_then = {change for change in self.graph.changed_at.get(node, ()) if place[change] <= last} - needed
            if by_then != self.applied.get(node, frozenset()):
                raise NotComputable(f"{node.name}, which it is computed from, is changed in place on the way")

    def _computed(self, state: NodeState, *, exact: bool) -> ReferenceValue:
        known = {node: self.known[node] for node in self._start(state)}
        (value,) = Interpreter(self.graph, known, Counter(state.nodes), exact=exact).last_values([state])
        return value


def _known_with(state: NodeState) -> Iterable[Node]:
    """The nodes whose values are known with this one: a node that changes it in place may have the same value."""
    yield state.node
    last = state.changes[-1] if state.changes else None
    if last is not None and fx.returns_written(last.target) and next(iter(last.args), None) is state.node:
        yield last
