"""Count the calls of a graph that a backend leaves to eager, where it parts graphs with torch's partitioner."""

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from idbg.engine.compat.hooks import hooked
from idbg.schema.bench import NativeOps

if TYPE_CHECKING:
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition

_Propose = Callable[["CapabilityBasedPartitioner"], Sequence["Partition"]]


@dataclass
class ObservedPartitions:
    """The calls of all graphs that were parted. `parted`: whether a graph was."""

    parted: bool = False
    calls: int = 0
    left: Counter[str] = field(default_factory=Counter)

    @property
    def native(self) -> NativeOps | None:
        """What was left to eager; None where no graph was parted."""
        if not self.parted:
            return None
        return NativeOps(self.left.total(), self.calls, tuple(op for op, _ in self.left.most_common()))

    def propose(self, call: _Propose, partitioner: "CapabilityBasedPartitioner") -> Sequence["Partition"]:
        """The partitions as torch proposes them; counts what is in none."""
        partitions = call(partitioner)
        inside = {node for partition in partitions for node in partition.nodes}
        graph = partitioner.graph_module.graph
        # taking an element of a tuple computes nothing
        calls = [node for node in graph.nodes if node.op.startswith("call_") and node.target is not operator.getitem]
        self.parted = True
        self.calls += len(calls)
        self.left.update(str(node.target) for node in calls if node not in inside)
        return partitions


@contextmanager
def observed() -> Iterator[ObservedPartitions]:
    """While it lasts, graphs that backends part are counted."""
    found = ObservedPartitions()
    with hooked("backend partitions", {"CapabilityBasedPartitioner.propose_partitions": found.propose}):
        yield found
