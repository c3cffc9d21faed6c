"""What should a launch compute of what it was really given?

From each buffer that an earlier launch has filled on, the graph is computed with what that launch left there, right or
wrong: so the error of what comes next is its own. Values are copied when they are written, for memory is used again,
and dropped after the last launch that stands on them.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torch import Tensor
from torch.fx import GraphModule, Node

from idbg.engine.compat import comparing
from idbg.engine.kerneldiff.float64.rounding import PerturbedRounding
from idbg.engine.kerneldiff.kernels.values import (
    AS_OWN,
    NotComputable,
    ReferenceValue,
    changed_by,
    changes_more,
    computed,
)


@dataclass(frozen=True)
class NodeState:
    """The value of a node after the ops that change it in place have run."""

    node: Node
    changes: tuple[Node, ...] = ()


Step = Sequence[NodeState]
"""What one launch leaves in buffers, in order."""


@dataclass(frozen=True)
class _Plan:
    """The nodes to compute, in order, and those that are held to begin with; how often each is taken."""

    nodes: list[Node]
    start: set[Node]
    uses: Counter[Node]
    apart: bool  # ops among them write to what they take


class LaunchReferences:
    """What launches were given so far, in one call of a graph. `inputs` are the graph's, which nothing else may write
    to; `steps` are its launches, in order. Random numbers are left as soon as they are drawn, all else once the whole
    launch was looked at: what it computes it does not read.
    """

    def __init__(self, gm: GraphModule, inputs: Iterable[object], steps: Sequence[Step]) -> None:
        self.gm = gm
        self.order = {node: place for place, node in enumerate(gm.graph.nodes)}
        self.changed_at: dict[Node, set[Node]] = {}
        for barrier in (node for node in gm.graph.nodes if changes_more(node)):
            for node in changed_by(barrier):
                self.changed_at.setdefault(node, set()).add(barrier)
        placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
        self.held: dict[Node, object] = dict(zip(placeholders, inputs, strict=True))
        self.applied: dict[Node, frozenset[Node]] = dict.fromkeys(placeholders, frozenset())
        self.left: set[Node] = set()  # of these a launch's buffer stands for the value, also of an input laid out anew
        self.starts = [[self._start(wanted) for wanted in step] for step in self._foreseen(steps)]
        self.uses = Counter(node for step in self.starts for start in step for node in start)
        self.applied = dict.fromkeys(placeholders, frozenset())
        self._drop_unused(placeholders)

    def leave(self, wanted: NodeState, value: Tensor) -> None:
        """A launch has left this in a buffer, for those to come; it may be written to after."""
        held = [node for node in _known_with(wanted) if self.uses[node]]
        copy = value.clone() if held else value
        for node in held:
            self.held[node] = copy
            self.left.add(node)
            self.applied[node] = self._state(node, wanted)

    def overwrite(self, node: Node, value: object) -> None:
        """An input has come to hold this, which launches to come are given."""
        if node in self.held and isinstance(value, Tensor):
            self.held[node] = value.clone()

    def value(self, wanted: NodeState) -> ReferenceValue:
        """What the launch should have computed. Raises Unknown."""
        return self._computed(wanted, exact=True)

    def dropped(self, node: Node, share: float, mask: Tensor) -> ReferenceValue:
        """What dropout should have left of this node, by the mask that it drew. Raises Unknown."""
        given = ReferenceValue(AS_OWN, self.held[node]) if node in self.held else self.value(NodeState(node))
        if not isinstance(given.own, Tensor) or share >= 1:
            raise NotComputable("it drops everything")
        scale, exact = 1 / (1 - share), given.exact
        own = given.own.reshape(mask.shape).mul(mask).mul(scale)
        return ReferenceValue(exact.reshape(mask.shape).mul(mask.to(exact.device)).mul(scale), own)

    def otherwise(self, wanted: NodeState, seed: int, times: float) -> Tensor:
        """What the program's own ops may as well compute of what the launch was given, rounding elsewhere, and `times`
        as much. Raises Unknown.
        """
        with PerturbedRounding(seed, times, one_by_one=True):
            own = self._computed(wanted, exact=False).own
        if not isinstance(own, Tensor):
            raise NotComputable("its node's value is not a tensor")
        return own

    def inputs_of(self, launch: int) -> dict[Node, object]:
        """The graph's inputs, as they came, that what this launch leaves is computed from."""
        start = {node for each in self.starts[launch] for node in each if node.op == "placeholder"}
        return {node: self.held[node] for node in start - self.left}

    def done(self, launch: int) -> None:
        """All that this launch leaves was looked at."""
        for start in self.starts[launch]:
            self.uses.subtract(start)
            self._drop_unused(start)

    def _drop_unused(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if self.uses[node] <= 0:
                self.held.pop(node, None)
                self.applied.pop(node, None)

    def _foreseen(self, steps: Sequence[Step]) -> Iterable[Step]:
        """The steps, each while `applied` is as it will be before it, where all goes well."""
        for step in steps:
            self._expect(wanted for wanted in step if comparing.is_random(wanted.node))
            yield step
            self._expect(step)

    def _expect(self, step: Iterable[NodeState]) -> None:
        for wanted in step:
            self.applied |= {node: self._state(node, wanted) for node in _known_with(wanted)}

    def _state(self, node: Node, wanted: NodeState) -> frozenset[Node]:
        """The ops that have changed the node's value where this one is wanted."""
        return frozenset(self.changed_at.get(node, set()).intersection(wanted.changes))

    def _start(self, wanted: NodeState) -> set[Node]:
        try:
            return self._plan(wanted).start
        except NotComputable:
            return set()

    def _plan(self, wanted: NodeState) -> _Plan:
        """From `applied`, what is held now: for each such node, the ops that have changed it. Raises Unknown."""
        start: set[Node] = set()
        needed: set[Node] = set()
        waiting = [wanted.node, *wanted.changes]
        while waiting:
            node = waiting.pop()
            if node in needed or node in start:
                continue
            if node in self.applied and (node is not wanted.node or wanted.changes or node.op == "placeholder"):
                start.add(node)
                continue
            if node.op == "placeholder":
                raise NotComputable(f"{node.name}, which it is computed from, is held no more")
            needed.add(node)
            waiting += node.all_input_nodes
        self._check_changes(wanted, start, needed)
        uses = Counter(source for node in needed for source in node.all_input_nodes)
        uses[wanted.node] += 1
        apart = any(changes_more(node) for node in needed)
        return _Plan(sorted(needed, key=self.order.__getitem__), start, uses, apart)

    def _check_changes(self, wanted: NodeState, start: set[Node], needed: set[Node]) -> None:
        """Whether every value has been changed in place as it has to be by then."""
        last = max(self.order[node] for node in (wanted.node, *wanted.changes))
        for node in (*start, *needed):
            by_then = {change for change in self.changed_at.get(node, ()) if self.order[change] <= last} - needed
            if by_then != self.applied.get(node, frozenset()):
                raise NotComputable(f"{node.name}, which it is computed from, is changed in place on the way")

    def _computed(self, wanted: NodeState, *, exact: bool) -> ReferenceValue:
        plan = self._plan(wanted)
        values: dict[Node, ReferenceValue] = {}
        for node in plan.start:
            values[node] = ReferenceValue(AS_OWN, self.held[node])
        if plan.apart:
            values = {node: value.apart() for node, value in values.items()}
        for node in plan.nodes:
            value = computed(self.gm, node, values, exact=exact)
            values[node] = value.apart() if plan.apart and node in self.changed_at and value.held is AS_OWN else value
            plan.uses.subtract(node.all_input_nodes)
            for source in node.all_input_nodes:
                if plan.uses[source] <= 0:
                    values.pop(source, None)
        return values[wanted.node]


def _known_with(wanted: NodeState) -> Iterable[Node]:
    """The nodes whose value is known where this one's is: an op in place gives what it has changed."""
    yield wanted.node
    if wanted.changes and next(iter(wanted.changes[-1].args), None) is wanted.node:
        yield wanted.changes[-1]
