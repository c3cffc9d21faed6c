"""The backend `mock`: an accelerator that checks its rules and compiles nothing.

Rules are checked on the Dynamo and ATen graphs. Graphs that pass run in eager, or, if the accelerator defines how its
hardware computes (`[numerics]`), op by op in that precision.
"""

from collections.abc import Sequence
from functools import partial

from torch.fx import GraphModule

from idbg.accelerators.model import Numerics
from idbg.engine.backends import numerics
from idbg.engine.backends.base import Job
from idbg.engine.compat import lowering
from idbg.engine.compat.lowering import Compiled
from idbg.schema.graphs import Part


class Mock:
    """Checks the rules and runs the graphs in eager, in the accelerator's number format if it has one."""

    name = "mock"
    checks = True

    def compile(self, job: Job) -> Compiled:
        return job.through_aot(partial(_lowered, job.accelerator.numerics))


def _lowered(how: Numerics | None, part: Part, gm: GraphModule, inputs: Sequence[object]) -> Compiled:
    return lowering.boxed(gm.forward) if how is None else numerics.lowered(gm, how, part)
