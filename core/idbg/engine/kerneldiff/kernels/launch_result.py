"""Collect what was observed of one launch, and convert it to the records of a report."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from idbg.engine.kerneldiff.kernels.buffers import NodeBuffer
from idbg.engine.kerneldiff.kernels.drawn_shares import KeptShares
from idbg.engine.kerneldiff.kernels.nonfinite import NewNonfinite
from idbg.engine.kerneldiff.kernels.verdict import BufferVerdict
from idbg.engine.kerneldiff.tensors.allowance import Size
from idbg.schema.diff import KernelError, NodeError, TensorDiff
from idbg.schema.remarks import Remark
from idbg.schema.strict_json import picked

FIGURES = "error eager_error isolated isolated_eager buffer node"
"""What the record of a launch has of that of one of its outputs."""

OUTPUTS_KEPT = 64
"""Of one launch: a fused optimizer's fills hundreds of buffers, and all of them go through JSON."""


@dataclass(frozen=True)
class BufferResult:
    """One buffer that its launch wrote. `judged`: compared with its nodes for the launch's actual inputs; `error` and
    `eager`: with the graph's values. None: could not be computed. `diff` is the full comparison if the buffer is bad,
    `shares` what a random mask keeps if that is another share than the graph's.
    """

    buffer: NodeBuffer
    judged: BufferVerdict | None
    error: Size | None = None
    eager: Size | None = None
    diff: TensorDiff | None = None
    shares: KeptShares | None = None

    @property
    def excess(self) -> float:
        """How far its own error is above what is allowed: above 1 is bad."""
        return self.judged.excess if self.judged else 0.0

    @property
    def record(self) -> NodeError:
        """The record of it."""
        return NodeError(
            node=self.buffer.node,
            buffer=self.buffer.name,
            isolated=self.judged.error.rmse if self.judged else None,
            isolated_eager=self.judged.eager.rmse if self.judged else None,
            error=self.error.rmse if self.error else None,
            eager_error=self.eager.rmse if self.eager else None,
            bad=self.excess > 1,
        )


@dataclass
class LaunchResult:
    """What was observed of one launch. `overwritten`: inputs of the graph that had changed before it; `overwrites`:
    what it changed that is still needed.
    """

    outputs: list[BufferResult] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    nonfinite: list[NewNonfinite] = field(default_factory=list)
    input_error: Size = field(default_factory=Size)
    unobserved: list[str] = field(default_factory=list)  # inputs of which nothing is known
    overwritten: list[str] = field(default_factory=list)
    overwrites: Remark | None = None
    ran: bool = False

    @property
    def worst(self) -> BufferResult | None:
        """The output that is furthest above what is allowed."""
        return max(self.outputs, key=lambda each: (each.excess, each.error.rmse if each.error else 0.0), default=None)

    @property
    def bad(self) -> bool:
        """Whether it wrote, or was called with, wrong values."""
        return bool(self.overwritten or self.overwrites) or any(each.excess > 1 for each in self.outputs)

    def reason(self, unobserved_reason: str) -> Remark | str:
        """Why it is not observed, or what limits its verdict; `unobserved_reason` if nothing was observed."""
        if self.overwrites:
            return self.overwrites
        if self.overwritten:
            return Remark("input overwritten", self.overwritten[0])
        if self.outputs:
            return next(iter(self._doubts()), "")
        if unobserved_reason:
            return unobserved_reason
        if self.reasons:
            return self.reasons[0]
        return Remark("inside a node" if self.ran else "not run")

    def _doubts(self) -> list[Remark | str]:
        doubts = [Remark("input unknown", self.unobserved[0])] if self.bad and self.unobserved else []
        return [*doubts, *self.reasons]

    def record_of(self, launch: KernelError, unobserved_reason: str) -> KernelError:
        """The record of the launch, with what was observed."""
        worst = self.worst
        launch = replace(launch, observed=worst is not None, reason=self.reason(unobserved_reason), bad=self.bad)
        if worst is None:
            return launch
        return replace(
            launch,
            **picked(worst.record, FIGURES),
            input_error=self.input_error.rmse,
            diff=worst.diff,
            outputs=tuple(each.record for each in _kept(self.outputs)),
            outputs_left_out=max(0, len(self.outputs) - OUTPUTS_KEPT),
        )


def _kept(outputs: Sequence[BufferResult]) -> Sequence[BufferResult]:
    """The worst ones, in the order in which they were written."""
    if len(outputs) <= OUTPUTS_KEPT:
        return outputs
    by_excess = sorted(range(len(outputs)), key=lambda at: -outputs[at].excess)
    return [outputs[at] for at in sorted(by_excess[:OUTPUTS_KEPT])]
