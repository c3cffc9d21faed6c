"""What was seen of one launch, and how is it told?"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from idbg.engine.kerneldiff.kernels.buffers import NodeBuffer
from idbg.engine.kerneldiff.kernels.nonfinite import NewNonfinite
from idbg.engine.kerneldiff.kernels.verdict import BufferVerdict
from idbg.engine.kerneldiff.tensors.allowance import Size
from idbg.schema.diff import KernelError, NodeError, TensorDiff

OUTPUTS_KEPT = 64
"""Of one launch: a fused optimizer's fills hundreds of buffers, and all of them go through JSON."""


@dataclass(frozen=True)
class BufferResult:
    """One buffer as its launch left it: `judged` by what the launch was given; `error` and eager's, by what the graph
    was. None is what could not be computed. `diff` tells all of it where it is bad, else it is None.
    """

    held: NodeBuffer
    judged: BufferVerdict | None
    error: Size | None = None
    eager: Size | None = None
    diff: TensorDiff | None = None

    @property
    def excess(self) -> float:
        """How far its own error is above what is allowed: above 1 is bad."""
        return self.judged.excess if self.judged else 0.0

    def told(self) -> NodeError:
        """As a record."""
        return NodeError(
            node=self.held.node,
            buffer=self.held.name,
            isolated=self.judged.error.rmse if self.judged else None,
            isolated_eager=self.judged.eager.rmse if self.judged else None,
            error=self.error.rmse if self.error else None,
            eager_error=self.eager.rmse if self.eager else None,
            bad=self.excess > 1,
        )


@dataclass
class LaunchResult:
    """What was seen of one launch. `overwritten`: inputs of the graph that came to it as nobody may have left them;
    `reused`: what the wrapper let it write over, as a sentence.
    """

    outputs: list[BufferResult] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    appeared: list[NewNonfinite] = field(default_factory=list)
    input_error: Size = field(default_factory=Size)
    unobserved: list[str] = field(default_factory=list)  # inputs of which nothing is known
    overwritten: list[str] = field(default_factory=list)
    reused: str = ""
    ran: bool = False

    @property
    def worst(self) -> BufferResult | None:
        """The output that is furthest above what is allowed."""
        return max(self.outputs, key=lambda each: (each.excess, each.error.rmse if each.error else 0.0), default=None)

    @property
    def bad(self) -> bool:
        """Whether it left, or was given, what it should not."""
        return bool(self.overwritten or self.reused) or any(each.excess > 1 for each in self.outputs)

    def reason(self, otherwise: str) -> str:
        """What is to be known of it; `otherwise`, or why there is nothing, where nothing was seen."""
        if self.reused:
            return self.reused
        if self.overwritten:
            return f"its input {self.overwritten[0]} was overwritten before, and the graph writes to it nowhere"
        if self.outputs:
            return next(iter(self._doubts()), "")
        if otherwise:
            return otherwise
        if self.reasons:
            return self.reasons[0]
        return "its buffers hold steps inside of a node, not a node's value" if self.ran else "it did not run"

    def _doubts(self) -> list[str]:
        given = [f"its input {self.unobserved[0]} could not be compared"] if self.bad and self.unobserved else []
        return [*given, *self.reasons]

    def told(self, launch: KernelError, otherwise: str) -> KernelError:
        """The launch with what was seen of it."""
        worst = self.worst
        launch = replace(launch, observed=worst is not None, reason=self.reason(otherwise), bad=self.bad)
        if worst is None:
            return launch
        figures = worst.told()
        return replace(
            launch,
            error=figures.error,
            input_error=self.input_error.rmse,
            eager_error=figures.eager_error,
            isolated=figures.isolated,
            isolated_eager=figures.isolated_eager,
            buffer=figures.buffer,
            node=figures.node,
            diff=worst.diff,
            outputs=tuple(each.told() for each in _kept(self.outputs)),
            outputs_left_out=max(0, len(self.outputs) - OUTPUTS_KEPT),
        )


def _kept(outputs: Sequence[BufferResult]) -> Sequence[BufferResult]:
    """The worst ones, in the order in which they were written."""
    if len(outputs) <= OUTPUTS_KEPT:
        return outputs
    by_excess = sorted(range(len(outputs)), key=lambda at: -outputs[at].excess)
    return [outputs[at] for at in sorted(by_excess[:OUTPUTS_KEPT])]
