"""Report to a user's own Python which guards a function gets, and where its graph breaks."""

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, ParamSpec

from idbg.engine.compat.stages import is_torchs
from idbg.engine.guard_inspector import FunctionInspector
from idbg.format.amounts import counted
from idbg.format.file_names import near_place
from idbg.render.text import lines
from idbg.schema.decisions.dynamo import FrameGuards, GuardedGraph, GuardReport, Recompile, Skip
from idbg.schema.graphs import GraphId
from idbg.schema.runs import Run
from idbg.views import breaks
from idbg.views import guards as guards_view

P = ParamSpec("P")


class GuardInspector(Generic[P]):
    """Looks at how torch.compile would guard a function or a module, given some arguments.

    `function` may be compiled already: it is looked at as it was before. `backend` is a name that torch knows: "eager"
    (the default) has all of Dynamo's guards in the least time, "aot_eager" and "inductor" those of AOTAutograd too
    (arguments that share memory). `dynamic` is as torch.compile takes it. Raises BadInput for what cannot be called,
    and for a backend that torch does not know.
    """

    def __init__(self, function: Callable[P, object], *, backend: str = "eager", dynamic: bool | None = None) -> None:
        self._inspector = FunctionInspector(function, backend=backend, dynamic=dynamic)

    def inspect(self, *args: P.args, **kwargs: P.kwargs) -> GuardReport:
        """Compile and call the function once, with all that the call itself does, and tell what came of it.

        What is compiled stays with this inspector: the next call compiles again only where a guard fails, and its
        report says which. For the rest of the process it has not happened: what is compiled there, torch's counters,
        settings and random generators are as before. What the function raises is raised.
        """
        return _report(self._inspector.name, self._inspector.run(*args, **kwargs))


def _report(name: str, run: Run) -> GuardReport:
    graphs = tuple(
        GuardedGraph(frame, run.graphs.get(GraphId(frame.id, "dynamo")), run.decided.last(FrameGuards).get(frame.id))
        for frame in run.frames.values()
    )
    again = tuple(Recompile(each.frame, each.reason, each.failed) for each in run.recompiles)
    return GuardReport(
        graphs=graphs, breaks=tuple(run.breaks), recompiles=again, text="\n".join(_lines(name, run, again))
    )


def _lines(name: str, run: Run, again: Sequence[Recompile]) -> Iterator[str]:
    graphs = sum(graph.stage == "dynamo" for graph in run.graphs)
    counts = (graphs, "graph"), (run.times_broken, "graph break"), (len(again), "recompile")
    yield f"{name}: {', '.join(counted(number, noun) for number, noun in counts)}"
    for each in run.breaks:
        yield breaks.sentence(each)
    for recompile in again:
        yield f"{recompile.frame} was compiled again: {recompile.reason}"
    for skip in (each for each in run.decided.every(Skip) if not is_torchs(each.file)):
        yield f"left alone: {skip.function}, {near_place(skip.file, skip.line)}: {skip.reason}"
    if run.decided.last(FrameGuards):
        yield from lines(guards_view.view(run))
    else:
        yield "nothing was compiled: there is nothing in it to compile, or what was compiled for an earlier call fits"
