"""Records of what made numbers wrong: the stage since which they are, its maker, and the cause of one launch's error.

Errors are relative RMSEs (RMSE / RMS of what is right) unless noted otherwise. A figure that was not measured is None.
Nothing here imports torch.
"""

from typing import Literal

import msgspec

from idbg.schema.graphs import GraphId, Part
from idbg.schema.remarks import Remark

StageName = Literal[
    "dynamo",  # Dynamo's graph, traced to ATen as it is: no decompositions, no passes
    "pre_grad",  # after the passes on Dynamo's graph
    "joint",  # ATen, decomposed: forward and backward as one graph; the inference graph where there is no backward
    "joint_passes",  # after the passes on that graph
    "partitioned",  # cut in forward and backward, as Inductor is given them
    "post_grad",  # after Inductor's passes on each of them
    "kernels",  # what was compiled
    "imported",  # of another compiler: its model or module, as its frontend converts the graph
    "rewritten",  # ... as it is compiled, where passes from outside of the compiler changed it
]
FOREIGN_STAGES: frozenset[StageName] = frozenset({"imported", "rewritten"})
STAGES: tuple[StageName, ...] = ("dynamo", "pre_grad", "joint", "joint_passes", "partitioned", "post_grad", "kernels")

MakerKind = Literal[
    "dynamo",
    "decomposition",
    "pass",
    "partitioner",
    "lowering",
    "kernel",
    "wrapper",
    "backend",
    "cache",
    "op",
    "importer",  # of another compiler: what converts the graph
    "layer",  # ... what it executes at a time: a layer of OpenVINO's
    "dispatch",  # ... of IREE's
]
"""What turns one stage into the next, and made it wrong."""


class Maker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What made a stage wrong. `name`: the op that is decomposed or lowered, the pass, the kernel, the backend, the
    function of the wrapper (the code that launches kernels).

    `file` and `line` are where it is defined (1-based; "" and 0 where that is not known). `proven` is how it was
    proven (`views.remarks` makes the sentence); "" where it only stands nearest. `diff`: of a pass, the graph before
    and after as a unified diff.
    """

    kind: MakerKind
    name: str
    file: str = ""
    line: int = 0
    proven: Remark | str = ""
    diff: str = ""


class StageError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One stage, held against float64 and against the stage before it: its worst output's error.

    Stages run on the same inputs, in float64; kernels in their own dtypes. Their row's `error` is that of the outputs
    where those fail, else the worst launch's; `added` is what that launch adds to what it was given. Where it was not
    `judged`, `reason` says why. A `bad` one is off against the stage before, and so is a `harmless` one, in a run whose
    outputs agree all the same: it is not accused. One that `changed` is proven to compute something else, by far more
    than rounding: `node_error` is that of its node in float64. `node` is the first bad node, in `graph`, `above` the
    node of the stage before that it stands for, in `above_graph`; `file` and `line` are the user's. Only the first bad
    stage has a maker: what comes below it computes what it was given.
    """

    stage: StageName
    judged: bool = True
    reason: tuple[Remark, ...] | str = ()
    error: float | None = None  # against float64: Dynamo's graph as it was captured
    added: float | None = None  # against the stage before
    bad: bool = False
    harmless: bool = False
    changed: bool = False
    node_error: float | None = None
    output: str = ""  # the worst output, as the graph calls it
    frame: str = ""
    part: Part = ""
    graph: GraphId | None = None
    node: str = ""
    above_graph: GraphId | None = None
    above: str = ""
    file: str = ""
    line: int = 0
    made_by: Maker | None = None

    def as_bound(self) -> "StageError":
        """The same stage and figures, with nothing named: it is wrong here at the latest."""
        return StageError(
            stage=self.stage,
            frame=self.frame,
            error=self.error,
            added=self.added,
            bad=self.bad,
            harmless=self.harmless,
        )


AttributionKind = Literal[
    "compiler",  # alone it is wrong
    "before",  # alone it is right: what it reads or wrote was written over, a launch before it was wrong, another ran
    "precision",  # alone it is as far off as its nodes in eager, and that is far
    "graph",  # alone it computes its nodes, and a stage above made those wrong
    "nobody",  # alone and in the run it is right
    "unjudged",  # not known: `findings` say why
]


AttributionFindingKind = Literal[
    "step of a node",  # it computes a step of `node`, and was judged with `launch`, which completes it
    "unknown",  # `detail` says why
    "wrong alone",  # called alone, in `buffer`, which holds `node`
    "leftover",  # ... by what was in its memory before
    "race",  # ... and other at each call
    "some calls right",  # so many, as "2 of 4"
    "or of a step",  # `launch` wrote `buffer`, which holds no node's value
    "right alone",
    "read as left",  # `buffer` was no longer as `launch` left it
    "read as given",  # ... as the graph was called with it
    "written, read",  # `buffer` was no longer as it left it when `launch` read it
    "written, returned",
    "by the wrapper",  # which changed it between the lines of `detail`
    "by reuse",  # by `launch`, to whose `buffer` the wrapper gave its memory: `detail` is the line
    "by sharing",
    "memory in use",  # its `buffer` has the memory of `node`, an input or buffer, which `launch` reads after it
    "out of bounds",
    "other in the run",  # it left something else in `buffer`
    "reads wrong",  # results of `launch`, which is bad
    "called with wrong",  # its graph was, as `launch` in an earlier graph is bad
    "wrong graph",  # at the stage `detail`
    "wrong graph at",  # since it, at `node`
    "eager as far",
    "gathered",  # the error of what came before, which eager has too
    "not again",
    "right in the run",
]


class AttributionFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that an attribution rests on: names and relative errors, as its kind has them."""

    kind: AttributionFindingKind
    launch: str = ""  # another one, with its line
    buffer: str = ""
    node: str = ""
    detail: str = ""
    error: float | None = None
    eager_error: float | None = None


class KernelAttribution(msgspec.Struct, frozen=True, kw_only=True):
    """The cause of a launch's error: it was called `calls` times alone, on copies of what it was called with.

    `findings` are what that rests on (`format.attributions` makes the sentence; `sentence` has it in older sessions
    alone), and `label` is how it names the launch. `launch` indexes the report's `kernels`, and so does `cause`: the
    launch that did it, where one is known. Errors are relative RMSEs of its worst buffer against its post-grad nodes in
    float64 on the CPU: `error` of the kernel alone, `eager_error` of the nodes in eager on its device, `run_error` of
    what it left in the run. `script` is the path of a script that shows it without idbg, "" while there is none:
    `no_script` says why. It was run once in a fresh process: `status` is how that ended (1: the kernel is wrong, 0: it
    is not), None where it was not, and `printed` its output. `seconds`: from the end of the run to the verdict.
    """

    launch: int
    name: str
    handle: str = ""
    kind: AttributionKind
    sentence: str = ""
    label: str = ""
    findings: tuple[AttributionFinding, ...] = ()
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
