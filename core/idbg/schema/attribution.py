"""The record of a kernel error's attribution: the results of one launch, run alone on its recorded inputs.

Nothing here imports torch.
"""

from typing import Literal

import msgspec

AttributionKind = Literal[
    "compiler",  # alone it is wrong
    "before",  # alone it is right: what it reads or wrote was written over, a launch before it was wrong, another ran
    "precision",  # alone it is as far off as its nodes in eager, and that is far
    "graph",  # alone it computes its nodes, and a stage above made those wrong
    "nobody",  # alone and in the run it is right
    "unjudged",  # not known: the sentence says why
]


class KernelAttribution(msgspec.Struct, frozen=True, kw_only=True):
    """The cause of a launch's error: it was called `calls` times alone, on copies of what it was called with.

    `launch` indexes the report's `kernels`, and so does `cause`: the launch that did it, where one is known. Errors
    are relative RMSEs of its worst buffer against its post-grad nodes in float64 on the CPU: `error` of the kernel
    alone, `eager_error` of the nodes in eager on its device, `run_error` of what it left in the run. `script` is the
    path of a script that shows it without idbg, "" while there is none: `no_script` says why. It was run once in a
    fresh process: `status` is how that ended (1: the kernel is wrong, 0: it is not), None where it was not, and
    `printed` its output. `seconds`: from the end of the run to the verdict.
    """

    launch: int
    name: str
    handle: str = ""
    kind: AttributionKind
    sentence: str
    buffer: str = ""
    node: str = ""
    error: float | None = None
    eager_error: float | None = None
    run_error: float | None = None
    calls: int = 0
    cause: int | None = None
    script: str = ""
    no_script: str = ""
    status: int | None = None
    printed: str = ""
    seconds: float | None = None
