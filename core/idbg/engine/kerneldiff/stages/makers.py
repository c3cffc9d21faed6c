"""What made a stage wrong: which pass, which decomposition, the partitioner?"""

import difflib
from collections.abc import Callable, Iterator, Sequence

import torch
from torch.fx import GraphModule

from idbg.engine.compat import fx, stages
from idbg.engine.kerneldiff.stages.captured import FrameStages, Pass
from idbg.engine.kerneldiff.stages.chain import Allowed, Inputs, Stage, distance
from idbg.engine.kerneldiff.stages.first_bad import FirstBad
from idbg.schema.blame import Maker, StageName

_DIFF_LINES = 400  # of a pass's graphs: what is longer is cut, and says so
_CONTEXT = 3  # lines around each change
_NO_PASS = "Inductor, between the passes that it names"


def maker_of(
    frame: FrameStages, stage: StageName, above: Stage, below: Stage, bad: FirstBad, inputs: Inputs, allowed: Allowed
) -> Maker | None:
    """What turned the stage above into the one below. Raises what running a graph raises."""
    if stage in ("pre_grad", "joint_passes", "post_grad"):
        return _pass(frame, stage, above, inputs, allowed, bad)
    if stage == "joint":
        return _decomposition(frame, above, inputs, allowed, bad)
    if stage == "partitioned":
        partitioner = torch._inductor.config.custom_partitioner_fn
        if partitioner is not None:
            file, line = stages.place_of(partitioner)
            return Maker(
                kind="partitioner", name=getattr(partitioner, "__name__", str(partitioner)), file=file, line=line
            )
        return Maker(kind="partitioner", name="min_cut_rematerialization_partition")
    return None


def _decomposition(frame: FrameStages, above: Stage, inputs: Inputs, allowed: Allowed, bad: FirstBad) -> Maker | None:
    target = bad.above.target if bad.above is not None else None
    made_by = frame.decompositions.get(target)
    if made_by is None:
        return Maker(kind="decomposition", name=fx.op_name(target)) if target is not None else None
    file, line = stages.place_of(made_by)
    name = str(target)
    without = {op: function for op, function in frame.decompositions.items() if op is not target}
    with torch.set_grad_enabled(frame.grad):
        kept = stages.traced(frame.pre_grad or frame.given, frame.inputs, without)
    result = Stage("joint", {"": kept.gm}).run(inputs)
    right = distance(above.run(inputs), result, allowed).excess <= 1
    return Maker(
        kind="decomposition",
        name=name,
        file=file,
        line=line,
        proven="without it the results are right" if right else "",
    )


def _pass(
    frame: FrameStages, stage: StageName, above: Stage, inputs: Inputs, allowed: Allowed, bad: FirstBad
) -> Maker | None:
    """By halves: the first graph, of those that passes left behind, that computes something else."""
    place = list(above.graphs).index(bad.part) if bad.part in above.graphs else 0
    passes = [one for one in frame.passes[place + 1 if stage == "post_grad" else 0] if one.phase == stage]
    graphs = list(_graphs(passes))
    if not graphs:
        return Maker(kind="pass", name=_NO_PASS)
    is_wrong = _judge(frame, stage, above, bad, inputs, allowed)
    low, high = -1, len(graphs) - 1
    if not is_wrong(graphs[high][1]):
        return Maker(kind="pass", name=_NO_PASS)
    while high - low > 1:
        middle = (low + high) // 2
        if is_wrong(graphs[middle][1]):
            high = middle
        else:
            low = middle
    made, gm = graphs[high]
    if made is None:
        return Maker(kind="pass", name=_NO_PASS)
    file, line = stages.place_of(made.made_by)
    return Maker(
        kind="pass",
        name=made.name,
        file=file,
        line=line,
        proven="the graph before it is right, and the one after it is not",
        diff=graph_diff(made.before, gm),
    )


def _graphs(passes: Sequence[Pass]) -> Iterator[tuple[Pass | None, GraphModule]]:
    """The graph after each pass, and before it where something else has changed it."""
    last: list[tuple[object, ...]] | None = None
    for each in passes:
        if last is None or stages.structure(each.before) != last:
            yield None, each.before
        yield each, each.after
        last = stages.structure(each.after)


def _judge(
    frame: FrameStages, stage: StageName, above: Stage, bad: FirstBad, inputs: Inputs, allowed: Allowed
) -> Callable[[GraphModule], bool]:
    """Whether a graph that a pass left behind computes something else than the stage above."""
    right = above.run(inputs)

    def whole(gm: GraphModule) -> bool:
        if stage == "pre_grad":
            with torch.set_grad_enabled(frame.grad):
                gm = stages.traced(gm, frame.inputs, {}).gm
        graphs = dict(above.graphs)
        graphs[bad.part if bad.part in graphs else next(iter(graphs))] = gm
        return distance(right, Stage(stage, graphs).run(inputs), allowed).excess > 1

    return whole


def graph_diff(before: GraphModule, after: GraphModule) -> str:
    """Both as readable code, as a unified diff."""
    lines = difflib.unified_diff(_code(before), _code(after), "before", "after", lineterm="", n=_CONTEXT)
    shown = [line for _, line in zip(range(_DIFF_LINES + 1), lines, strict=False)]
    if len(shown) > _DIFF_LINES:
        shown[-1] = f"… cut after {_DIFF_LINES} lines"
    return "\n".join(shown)


def _code(gm: GraphModule) -> list[str]:
    return gm.print_readable(print_output=False, include_stride=True).splitlines()
