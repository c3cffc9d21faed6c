"""Search what a compiler made of a graph for the first wrong one of its checkpoints.

A checkpoint is a node of the graph whose value a run of the compiled program can return. A compiler lists, in order,
the checkpoints of each form of the program (as it was imported, as it was rewritten, as it is compiled), and runs them;
the search judges their values and writes the rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Generic, Protocol, TypeVar

from torch import Tensor
from torch.fx import GraphModule, Node

from idbg.engine.compat import stages as torch_stages
from idbg.engine.compat.openvino import Caller, NotRunnable
from idbg.engine.kerneldiff.kernels.verdict import BufferVerdict
from idbg.engine.kerneldiff.layers.findings import RIGHT, LayerFindings, layer_row, place_of, stage_row
from idbg.engine.kerneldiff.layers.judged import HELD, NodeJudge
from idbg.engine.kerneldiff.stages.makers import text_diff
from idbg.schema.attribution import Maker, StageError, StageName
from idbg.schema.diff import KernelError, Unit
from idbg.schema.remarks import Remark

MOST = 200  # values that one run returns
_HELD = HELD // 4  # bytes of them

Verdicts = Mapping[str, BufferVerdict]


def narrowed(
    names: Sequence[str],
    run: Callable[[Sequence[str]], Verdicts],
    size: Callable[[str], int] = lambda _: 0,
    most: int | None = None,
) -> dict[str, BufferVerdict]:
    """The verdicts of these checkpoints, which are in order. `run` gives those of `most` (MOST) of them; if there are
    more, or they are too large, evenly spread ones are run first, then those before the first wrong one: with `most` 1
    it is a bisection. Values that cannot be judged have no verdict.
    """
    known: dict[str, BufferVerdict] = {}
    while names:
        total = sum(map(size, names))
        count = min(len(names), most or MOST, max(1, len(names) * _HELD // total) if total else MOST)
        chosen = [names[int((place + 0.5) * len(names) / count)] for place in range(count)]
        found = run(chosen)
        known.update(found)
        wrong = next((name for name in chosen if name in found and found[name].excess > 1), None)
        if count == len(names):
            break
        at = names.index(wrong) if wrong is not None else len(names)
        right = [names.index(name) for name in chosen if name in found and names.index(name) < at]
        names = [name for name in names[max(right, default=-1) + 1 : at] if name not in known and name not in chosen]
    return known


def worst(verdicts: Verdicts) -> BufferVerdict | None:
    """The one that is the farthest above what is allowed; None of none."""
    return max(verdicts.values(), key=lambda verdict: (verdict.excess, verdict.error.rmse), default=None)


def first_wrong(verdicts: Verdicts, gm: GraphModule) -> str:
    """The first node, in the graph's order, with a wrong value; "" of none."""
    return next((n.name for n in gm.graph.nodes if n.name in verdicts and verdicts[n.name].excess > 1), "")


@dataclass(frozen=True)
class CheckpointValues:
    """What one run returns: the results of the graph, and the values of the chosen checkpoints by their nodes."""

    results: Sequence[Tensor]
    values: Mapping[str, Tensor]


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of one form of the program, by their nodes, in order; `run` raises NotRunnable. `may_permute`:
    a value may have its node's elements in another order.
    """

    names: Sequence[str]
    run: Callable[[Sequence[str]], CheckpointValues]
    may_permute: bool = False


@dataclass
class RunVerdicts:
    """The verdicts of checkpoints, and of the graph's results."""

    verdicts: Verdicts = field(default_factory=dict)
    results: Verdicts = field(default_factory=dict)


@dataclass(frozen=True)
class Layer:
    """What the compiler executes at a time: the nodes that it `computes`, and the one whose value it `holds`; where
    that is "", `reason` says why.
    """

    name: str
    computes: Sequence[str]
    holds: str
    reason: Remark


@dataclass(frozen=True)
class CompiledForm:
    """The compiled program run with its checkpoints, and its layers; `problem`: why no checkpoint was run."""

    run: RunVerdicts = field(default_factory=RunVerdicts)
    layers: Sequence[Layer] = ()
    problem: Remark = field(default_factory=lambda: Remark("no dispatch wrong"))


class CompiledPart(Protocol):
    """A graph that a compiler was given, with its first call."""

    gm: GraphModule
    arguments: list[object]
    callers: tuple[Caller, ...]

    @property
    def results(self) -> list[Tensor]:
        """The results of the call. Raises NotRunnable."""


P = TypeVar("P", bound=CompiledPart)


class CheckpointSearch(ABC, Generic[P]):
    """The search in one graph. Raises NotComparable for a graph that draws random numbers."""

    compiler: ClassVar[str]
    unit: ClassVar[Unit]
    by_hand: ClassVar[str]
    """What edits the program between its import and its compile, where no caller is known."""

    def __init__(self, part: P, k: float) -> None:
        self.part, self.gm = part, part.gm
        self.judge = NodeJudge(part.gm, part.arguments, k)
        self.returned = [value for value in torch_stages.output_values(part.gm) if isinstance(value, Node)]

    # What a compiler provides

    @property
    @abstractmethod
    def texts(self) -> tuple[str, str]:
        """The program as it was imported ("" where that is not known), and as it is compiled, an op a line."""

    @abstractmethod
    def imported(self) -> Checkpoints | Remark:
        """The program as it was imported, or why it is not known."""

    @abstractmethod
    def rewritten(self) -> Checkpoints:
        """The program as it is compiled, run op by op."""

    @abstractmethod
    def compiled(self) -> CompiledForm:
        """The compiled program. Raises NotRunnable if then nothing of the graph is judged."""

    def wrong_import(self, run: RunVerdicts, bad: str) -> StageError:
        """The row of an import that is wrong; `bad` is its first wrong node."""
        return self.row("imported", None, reason=[Remark("no reference", bad, f"{self.compiler} has none")])

    def rewriter(self) -> Maker:
        """What made the rewritten program wrong: what called the compiler in the place of its own frontend."""
        name, file, line = next(((c.name, c.file, c.line) for c in self.part.callers), (self.by_hand, "", 0))
        diff = text_diff(*(text.splitlines() for text in self.texts))
        return Maker(kind="pass", name=name, file=file, line=line, proven=Remark("model right before it"), diff=diff)

    def wrong_layer(self, form: CompiledForm) -> tuple[str, Remark]:
        """The first wrong node of a compiled program that is wrong, "" of none, and how that is proven."""
        return first_wrong(form.run.verdicts, self.gm), Remark("right op by op")

    # The search

    @cached_property
    def is_changed(self) -> bool:
        """Whether the program was edited between its import and its compile."""
        before, after = self.texts
        return before != "" and before.split() != after.split()

    def is_wrong(self) -> bool:
        """Whether the compiled program computes a result wrong. Raises NotRunnable."""
        return bool(first_wrong(self.actual, self.gm))

    def located(self) -> LayerFindings:
        """The layers and stages of the graph. Raises NotRunnable."""
        form = self.compiled()
        above = tuple(self._above())
        return LayerFindings(tuple(self._layers(form)), (*above, self._kernels(form, above)))

    def of_results(self, results: Sequence[Tensor]) -> Verdicts:
        """The verdicts of the graph's results."""
        named = {node.name: result for node, result in zip(self.returned, results, strict=False)}
        return self.judge.verdicts(named)

    def run(self, checkpoints: Checkpoints) -> RunVerdicts:
        """Run the checkpoints that are needed to find the first wrong one, else the results alone."""
        made = RunVerdicts()

        def run(chosen: Sequence[str]) -> Verdicts:
            run = checkpoints.run(chosen)
            made.results = self.of_results(run.results)
            found = self.judge.verdicts(run.values)
            wrong = [name for name in found if checkpoints.may_permute and found[name].excess > 1]
            moved = [name for name in wrong if self.judge.is_moved(name, run.values[name])]
            return {name: verdict for name, verdict in found.items() if name not in moved}

        made.verdicts = narrowed(checkpoints.names, run, self.judge.size)
        if not checkpoints.names:
            run(())
        return made

    def tried(self, checkpoints: Checkpoints | Remark) -> RunVerdicts | Remark:
        """The same, or why they cannot run."""
        try:
            return checkpoints if isinstance(checkpoints, Remark) else self.run(checkpoints)
        except NotRunnable as error:
            return Remark("no outputs", self.compiler, str(error))

    @cached_property
    def actual(self) -> Verdicts:
        """The verdicts of the results of the compiled program."""
        return self.of_results(self.part.results)

    def _above(self) -> Iterator[StageError]:
        """The rows above the kernels: the graph, the program as it was imported, and as it was rewritten."""
        yield stage_row("dynamo", place_of(self.gm, ""), RIGHT)
        imported = self.tried(self.imported())
        if isinstance(imported, Remark):
            yield self.row("imported", None, reason=[imported])
        elif wrong := first_wrong(imported.results, self.gm):
            yield self.wrong_import(imported, first_wrong(imported.verdicts, self.gm) or wrong)
        else:
            yield self.row("imported", imported.results)
            if self.is_changed:
                yield self._rewritten()

    def _rewritten(self) -> StageError:
        run = self.tried(self.rewritten())
        if isinstance(run, Remark):
            return self.row("rewritten", None, reason=[run])
        if not (output := first_wrong(run.results, self.gm)):
            return self.row("rewritten", run.results)
        if bad := first_wrong(run.verdicts, self.gm):
            return self.row("rewritten", run.results, bad, self.rewriter())
        return self.row("rewritten", run.results, "", self.rewriter(), output, [Remark("lines lost")])

    def _kernels(self, form: CompiledForm, above: Sequence[StageError]) -> StageError:
        """The row of the compiled program."""
        output = first_wrong(self.actual, self.gm)
        if not output or any(row.bad for row in above):
            return self.row("kernels", self.actual)
        bad, proven = self.wrong_layer(form)
        if not bad:
            return self.row("kernels", self.actual, output=output, reason=[form.problem])
        if not above[-1].judged and proven.kind != "right apart":  # what is above may be wrong
            return self.row("kernels", self.actual, bad)
        names = [each.name for each in form.layers if each.holds == bad]
        names += [each.name for each in form.layers if bad in each.computes]
        return self.row("kernels", self.actual, bad, Maker(kind=self.unit, name=[*names, bad][0], proven=proven))

    def row(
        self,
        stage: StageName,
        results: Verdicts | None,
        bad: str = "",
        made_by: Maker | None = None,
        output: str = "",
        reason: Sequence[Remark] = (),
    ) -> StageError:
        verdict = worst(results) if results is not None else None
        return stage_row(stage, place_of(self.gm, bad), verdict, bad=bad, output=output, made_by=made_by, reason=reason)

    def _layers(self, form: CompiledForm) -> Iterator[KernelError]:
        """A row for each layer; the first wrong one is bad."""
        verdicts = form.run.verdicts
        bad = first_wrong(verdicts, self.gm)
        for each in form.layers:
            verdict = verdicts.get(each.holds)
            error = self.judge.input_error(each.holds, verdicts) if verdict is not None else 0.0
            place, computes = place_of(self.gm, each.holds), [place_of(self.gm, name) for name in each.computes]
            reason = each.reason if verdict is None else ""
            is_bad = bad != "" and each.holds == bad
            yield layer_row(self.unit, each.name, place, computes, verdict, error, bad=is_bad, reason=reason)
