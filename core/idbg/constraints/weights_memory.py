"""Check that all weights together fit into the hardware's memory."""

from collections.abc import Iterator, Sequence
from typing import Self

from msgspec.structs import replace

from idbg.constraints.base import Constraint, Finding
from idbg.constraints.facts import GraphFacts, NodeSignature
from idbg.constraints.memory import at_least_0
from idbg.format.amounts import exact_size


class WeightsMemory(Constraint, frozen=True, tag="weights_memory"):
    """The weights and buffers that a graph is given may take `max_bytes` together.

    It shows at the largest of them. The scopes `ops` and `roles` mean nothing here.
    """

    max_bytes: int | float

    def validate(self) -> None:
        at_least_0(self.max_bytes)

    def check_whole(self, facts: GraphFacts) -> Iterator[tuple[int, Finding]]:
        """The largest weight, where all together take too many bytes."""
        weights = facts.weights
        total = sum(weights.values())
        if total > self.max_bytes:
            largest = max(weights, key=lambda index: weights[index])
            found = f"{len(weights)} weights take {exact_size(total)}, this one {exact_size(weights[largest])}"
            fix = "a smaller dtype, fewer layers, or shard the model"
            yield largest, Finding(found, f"at most {exact_size(int(self.max_bytes))} together", fix)

    def relaxed(self, signatures: Sequence[NodeSignature], graphs: Sequence[GraphFacts] = ()) -> Self | None:
        """Room for the weights of the largest graph, in bytes."""
        return replace(self, max_bytes=max(sum(facts.weights.values()) for facts in graphs))
