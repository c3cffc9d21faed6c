"""The backend `mock`: an accelerator that only says no.

Rules are checked on the Dynamo and ATen graphs; what passes runs eagerly, or, if the accelerator says how its hardware
computes (`[numerics]`), op by op in that precision.
"""

from collections.abc import Sequence
from functools import partial

from torch.fx import GraphModule

from idbg.accelerators.numerics import Numerics
from idbg.engine.backends import numerics
from idbg.engine.backends.base import Job
from idbg.engine.compat import lowering
from idbg.engine.compat.lowering import Compiled
from idbg.schema.graphs import Part


class Mock:
    """Asks the rules and runs the graphs in eager, in the accelerator's number format where it has one."""

    name = "mock"
    checks = True

    def compile(self, job: Job) -> Compiled:
        return job.through_aot(partial(_lowered, job.accelerator.numerics))


def _lowered(how: Numerics | None, part: Part, gm: GraphModule, inputs: Sequence[object]) -> Compiled:
    return lowering.boxed(gm.forward) if how is None else numerics.lowered(gm, how, part)
