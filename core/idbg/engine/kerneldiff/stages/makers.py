"""Find what made a stage wrong: a pass, a decomposition or the partitioner."""

import difflib
import operator
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch.fx import GraphModule, Node

from idbg.engine.compat import fx, stages
from idbg.engine.kerneldiff.stages.captured import FrameStages, GraphPass
from idbg.engine.kerneldiff.stages.chain import FrameInputs, Stage, StageAllowance, distance
from idbg.engine.kerneldiff.stages.evaluate import GraphResult
from idbg.engine.kerneldiff.stages.first_bad import FirstBad
from idbg.schema.attribution import Maker, StageName
from idbg.schema.remarks import Remark

_DIFF_LINES = 400  # of a pass's graphs: what is longer is cut, and says so
_CONTEXT = 3  # lines around each change
_NO_PASS = "Inductor, between the passes that it names"


@dataclass(frozen=True)
class StageTransition:
    """The transition to a stage that is wrong: `right` are the results of the stage before, `bad` is the first
    bad node.
    """

    frame: FrameStages
    to: StageName
    above: Stage
    right: GraphResult
    bad: FirstBad
    inputs: FrameInputs
    allowed: StageAllowance

    def is_wrong(self, stage: Stage) -> bool:
        """Whether another stage computes something else than the one before."""
        return distance(self.right, stage.run(self.inputs), self.allowed).excess > 1


def maker_of(step: StageTransition) -> Maker | None:
    """What made the transition wrong. Raises what running a graph raises."""
    if step.to in ("pre_grad", "joint_passes", "post_grad"):
        return _pass(step)
    if step.to == "joint":
        return _decomposition(step)
    if step.to == "partitioned" and step.frame.preserved is not None:
        return _frozen(step)
    if step.to == "partitioned":
        name, (file, line) = stages.partitioner()
        return Maker(kind="partitioner", name=name, file=file, line=line)
    return None


def _frozen(step: StageTransition) -> Maker:
    """Freezing: the last of its passes that changed the graph, where torch names one."""
    passes = _passes(step)
    if not passes:
        return Maker(kind="pass", name="freezing")
    file, line = stages.place_of(passes[-1].made_by)
    return Maker(kind="pass", name=f"freezing, of which {passes[-1].name} is the last pass", file=file, line=line)


def _decomposition(step: StageTransition) -> Maker | None:
    frame, above = step.frame, _op_of(step.bad.above)
    if above is None:
        return None
    made_by = frame.decompositions.get(above.target)
    if made_by is None:
        return Maker(kind="decomposition", name=fx.qualified_target(above))
    file, line = stages.place_of(made_by)
    without = {op: function for op, function in frame.decompositions.items() if op is not above.target}
    with frame.as_called():
        kept = stages.traced(frame.pre_grad or frame.dynamo, frame.inputs, without)
    proven = "" if step.is_wrong(Stage("joint", {"": kept.gm})) else Remark("right without it")
    return Maker(kind="decomposition", name=fx.qualified_target(above), file=file, line=line, proven=proven)


def lost_by(frame: FrameStages, stage: StageName, node: Node) -> Maker | None:
    """What removed the check of a node: its decomposition, if it was decomposed at that stage."""
    made_by = frame.decompositions.get(node.target)
    if stage != "joint" or made_by is None:
        return None
    file, line = stages.place_of(made_by)
    return Maker(kind="decomposition", name=fx.qualified_target(node), file=file, line=line)


def _op_of(node: Node | None) -> Node | None:
    """For a getitem node the op whose result it takes; any other node itself."""
    while node is not None and node.target is operator.getitem:
        source = node.args[0]
        node = source if isinstance(source, Node) else None
    return node


def _pass(step: StageTransition) -> Maker:
    """Bisect the graphs after each pass: the first that computes something else."""
    graphs = list(_graphs(_passes(step)))
    if not graphs or not _is_wrong(step, graphs[-1][1]):
        return Maker(kind="pass", name=_NO_PASS)
    made, gm = graphs[bisect_left(range(len(graphs) - 1), True, key=lambda at: _is_wrong(step, graphs[at][1]))]
    if made is None:
        return Maker(kind="pass", name=_NO_PASS)
    pattern = _pattern(made, step.bad)
    name = f"{stages.name_of(pattern)}, a pattern of {made.name}" if pattern is not None else made.name
    file, line = stages.place_of(pattern or made.made_by)
    proven = Remark("right before it")
    diff = graph_diff(made.before, gm)
    return Maker(kind="pass", name=name, file=file, line=line, proven=proven, diff=diff)


def _pattern(made: GraphPass, bad: FirstBad) -> object | None:
    """The pattern of the pass that matched the node above the bad one, or the only one that it applied; None if
    not known.
    """
    taken = [one.function for one in made.patterns if bad.above is not None and bad.above.name in one.nodes]
    functions = taken[-1:] or list(dict.fromkeys(one.function for one in made.patterns))
    return functions[0] if len(functions) == 1 else None


def _passes(step: StageTransition) -> list[GraphPass]:
    """The passes before this stage; after the partitioner, those of the part with the bad node."""
    place = list(step.above.graphs).index(step.bad.part) if step.bad.part in step.above.graphs else 0
    passes = step.frame.passes[place + 1 if step.to == "post_grad" else 0]
    return [one for one in passes if one.phase == step.to]


def _graphs(passes: Sequence[GraphPass]) -> Iterator[tuple[GraphPass | None, GraphModule]]:
    """The graph after each pass, and before it if something else changed it."""
    last: list[tuple[object, ...]] | None = None
    for each in passes:
        if last is None or stages.structure(each.before) != last:
            yield None, each.before
        yield each, each.after
        last = stages.structure(each.after)


def _is_wrong(step: StageTransition, gm: GraphModule) -> bool:
    """Whether the stage above, with a pass's graph in the place of its part, computes something else."""
    if step.to == "pre_grad":
        with step.frame.as_called():
            gm = stages.traced(gm, step.frame.inputs, {}).gm
    graphs = dict(step.above.graphs)
    graphs[step.bad.part if step.bad.part in graphs else next(iter(graphs))] = gm
    saved = step.above.saved_as() if "forward" in graphs else ()
    return step.is_wrong(Stage(step.to, graphs, saved, step.frame.preserved if step.to == "post_grad" else None))


def graph_diff(before: GraphModule, after: GraphModule) -> str:
    """Both as readable code, as a unified diff."""
    return text_diff(_code(before), _code(after))


def text_diff(before: Sequence[str], after: Sequence[str]) -> str:
    """The lines of both as a unified diff."""
    lines = difflib.unified_diff(before, after, "before", "after", lineterm="", n=_CONTEXT)
    shown = [line for _, line in zip(range(_DIFF_LINES + 1), lines, strict=False)]
    if len(shown) > _DIFF_LINES:
        shown[-1] = f"… cut after {_DIFF_LINES} lines"
    return "\n".join(shown)


def _code(gm: GraphModule) -> list[str]:
    return gm.print_readable(print_output=False, include_stride=True).splitlines()
