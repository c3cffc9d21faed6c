"""Records of edited kernels: each version of a kernel's source that was run in place of the original."""

from typing import Literal

import msgspec

from idbg.schema.bench import Direction, Latency, direction_of
from idbg.schema.diff import DiffReport, KernelError
from idbg.schema.graphs import Part
from idbg.schema.kernel_times import CallKind
from idbg.schema.programs import Failure

EditVerdict = Literal["agrees", "wrong", "failed", "not compared"]
"""Of an edited kernel: "failed" was not built or did not run."""

ORIGINAL, EDITED = "original", "edited"


class TimeChange(msgspec.Struct, frozen=True):
    """Milliseconds with the original and with the edited kernel. `p`: how likely as unlike samples are where both take
    the same time.
    """

    original: Latency
    edited: Latency
    p: float

    @property
    def ratio(self) -> float:
        """The edited median over the original one."""
        return self.edited.median / self.original.median if self.original.median else 1.0

    @property
    def direction(self) -> Direction:
        """ "same" where the change is not significant, or no more than the noise."""
        return direction_of(self.edited, self.original, self.ratio, self.p)


class EditTimes(msgspec.Struct, frozen=True, kw_only=True):
    """How long the kernel's `launches` in one call take together, and a whole call whose kernels are not timed. Calls
    with the original and with the edited kernel alternated. `others`: the part of the processors that other processes
    used meanwhile.
    """

    kernel: TimeChange
    call: TimeChange
    launches: float = 1.0
    kind: CallKind = "forward"
    others: float | None = None


class KernelEdit(msgspec.Struct, frozen=True, kw_only=True):
    """Version `version` (from 1) of the source of the kernel `name` of a run's graph, and what it did in place of the
    original.

    `report` compares the program's outputs: the original kernel's are its reference and the edited one's its test side,
    both held against float64 where that could be computed. `original` and `edited` are the kernel's worst launch, each
    judged by what it was given; None where it was not observed. `times` is None where it was not timed. `line` of
    `text` (1-based) is where the `failure` of a build is; 0 where it is in no line of it.
    """

    frame: str
    part: Part
    name: str
    language: str
    version: int
    text: str
    report: DiffReport | None = None
    original: KernelError | None = None
    edited: KernelError | None = None
    times: EditTimes | None = None
    build_s: float | None = None
    seconds: float = 0.0
    failure: Failure | None = None
    line: int = 0

    @property
    def kernel(self) -> tuple[str, Part, str]:
        """Which kernel of the run it is a version of."""
        return self.frame, self.part, self.name

    @property
    def verdict(self) -> EditVerdict:
        """The worst of its launch's and of the program's outputs."""
        if self.failure is not None:
            return "failed"
        if (self.edited is not None and self.edited.bad) or (
            self.report is not None and self.report.verdict == "failed"
        ):
            return "wrong"
        return "agrees" if self.report is not None and self.report.verdict == "passed" else "not compared"
