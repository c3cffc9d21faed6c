"""Check that everything alive at once fits into the hardware's memory."""

from collections.abc import Iterator, Sequence
from typing import Self

from msgspec.structs import replace

from idbg.constraints.base import Constraint, Finding
from idbg.constraints.facts import GraphFacts, NodeSignature
from idbg.constraints.memory import at_least_0
from idbg.format.amounts import exact_size, size

_NAMED = 3


class PeakMemory(Constraint, frozen=True, tag="peak_memory"):
    """All tensors that are alive at once may take `max_bytes` together, with the weights or without (`weights`).

    By liveness: see `idbg.analysis.liveness.memory_profile`. The scopes `ops` and `roles` mean nothing here.
    """

    max_bytes: int | float
    weights: bool = True

    def validate(self) -> None:
        at_least_0(self.max_bytes)

    def check_whole(self, facts: GraphFacts) -> Iterator[tuple[int, Finding]]:
        """The node at which the most is alive, with the largest tensors then."""
        profile = facts.profile(weights=self.weights)
        if profile.peak_bytes <= self.max_bytes:
            return
        alive = profile.alive
        named = ", ".join(f"{one.node} {size(one.nbytes)}" for one in alive[:_NAMED])
        more = f" and {len(alive) - _NAMED} more" if len(alive) > _NAMED else ""
        found = f"peak memory is {exact_size(profile.peak_bytes)} here: {named}{more}"
        fix = "a smaller batch, or torch.utils.checkpoint around what keeps these alive"
        yield (
            facts.position[profile.peak_at],
            Finding(found, f"at most {exact_size(int(self.max_bytes))} alive at once", fix),
        )

    def relaxed(self, signatures: Sequence[NodeSignature], graphs: Sequence[GraphFacts] = ()) -> Self | None:
        """Room for the largest peak of all the graphs, in bytes."""
        return replace(self, max_bytes=max(facts.profile(weights=self.weights).peak_bytes for facts in graphs))
