"""Find the first wrong dispatch of IREE, and whether an edit of its module or its compiler made it wrong.

The module runs with the values of nodes as extra results: as it was imported, and as it is compiled, where something
edited it between. Then the dispatches that IREE forms return their values: these results are added after IREE has
formed them, which leaves them as they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from msgspec.structs import replace
from torch import Tensor
from torch.fx import Node

from idbg.engine.compat import stages as torch_stages
from idbg.engine.compat.iree import IREEPart, element_name, element_type, flow_of, values_of
from idbg.engine.compat.openvino import NotRunnable
from idbg.engine.kerneldiff.kernels.verdict import BufferVerdict
from idbg.engine.kerneldiff.layers import modules
from idbg.engine.kerneldiff.layers.findings import (
    LayerFindings,
    RunVerdicts,
    any_wrong,
    first_wrong,
    layer_row,
    stage_row,
    worst,
)
from idbg.engine.kerneldiff.layers.judged import NodeJudge
from idbg.engine.kerneldiff.layers.narrowing import narrowed
from idbg.engine.kerneldiff.stages.makers import text_diff
from idbg.engine.kerneldiff.tensors.allowance import Size
from idbg.schema.attribution import Maker, StageError
from idbg.schema.diff import KernelError
from idbg.schema.remarks import Remark

_EDIT = "what edits the module before IREE compiles it"


@dataclass(frozen=True)
class DispatchRun:
    """The dispatches of the compiled module, the nodes that they hold, and the verdicts of these; or why there are
    none.
    """

    dispatches: tuple[modules.Dispatch, ...] = ()
    holds: Mapping[str, int] = field(default_factory=dict)  # the place of the dispatch by its node
    verdicts: Mapping[str, BufferVerdict] = field(default_factory=dict)
    problem: Remark | None = None


class IREESearch:
    """The search in one graph. Raises NotJudged for a graph that draws random numbers."""

    def __init__(self, part: IREEPart, k: float) -> None:
        self.part, self.gm = part, part.gm
        self.judge = NodeJudge(part.gm, part.arguments, k)
        self.returned = [value for value in torch_stages.output_values(part.gm) if isinstance(value, Node)]

    def is_wrong(self) -> bool:
        """Whether a result of the compiled module is wrong."""
        return any_wrong(self._of_results(self.part.results))

    def located(self) -> LayerFindings:
        """The dispatches and stages of a graph that is wrong."""
        dispatched = self._dispatched()
        above = self._above()
        rows = (*above, self._compiled(dispatched, above))
        return LayerFindings(tuple(self._rows(dispatched)), rows)

    @cached_property
    def is_changed(self) -> bool:
        """Whether the module was edited between its import and its compile."""
        return self.part.imported.split() != self.part.received.split()

    @cached_property
    def _lines(self) -> Mapping[int, str]:
        """The node of each line of the module that is compiled."""
        return modules.lines_after(self.part.imported, self.part.received, self.part.lines)

    # Runs

    def _run(self, text: str, lines: Mapping[int, str]) -> RunVerdicts:
        """Run a module with the values of nodes as extra results; of one without lines of nodes, its results alone."""
        made = RunVerdicts()
        known = modules.node_values(text, lines)
        names = [name for name in self.judge.nodes if name in known and element_type(known[name].element) is not None]
        own = [mlir_type_of(node) for node in self.returned]

        def run(chosen: Sequence[str]) -> dict[str, BufferVerdict]:
            added = [known[name] for name in chosen]
            changed = modules.with_values(text, added) if added else text
            if changed is None:
                raise NotRunnable("the module's entry function is not as expected")
            types = [*own, *(value.element for value in added)]
            values = values_of(changed, self.part.flags, self.part.arguments, types)
            made.results = self._of_results(values[: len(own)])
            return self.judge.verdicts(self._shaped(dict(zip(chosen, values[len(own) :], strict=True))))

        made.verdicts = narrowed(names, run, self.judge.size)
        if not names:
            run(())
        return made

    def _dispatched(self) -> DispatchRun:
        """The dispatches with their values, as results of the module in which they are formed."""
        try:
            flow = flow_of(self.part.received, self.part.flags)
            found = tuple(modules.dispatches_of(flow))
            holds = self._held(found)
            run = partial(self._of_dispatches, flow, found, holds)
            verdicts = narrowed(list(holds), run, self.judge.size)
        except NotRunnable as error:
            return DispatchRun(problem=Remark("no outputs", "IREE", str(error)))
        return DispatchRun(found, holds, verdicts)

    def _of_dispatches(
        self, flow: str, found: Sequence[modules.Dispatch], holds: Mapping[str, int], chosen: Sequence[str]
    ) -> dict[str, BufferVerdict]:
        added = [value for name in chosen if (value := found[holds[name]].value) is not None]
        changed = modules.with_dispatches(flow, added)
        if changed is None:
            raise NotRunnable("the module with dispatches is not as expected")
        types = [*(mlir_type_of(node) for node in self.returned), *(value.element for value in added)]
        values = values_of(changed, self.part.flags, self.part.arguments, types, from_flow=True)
        flat = dict(zip(chosen, values[len(self.returned) :], strict=True))
        verdicts = self.judge.verdicts(self._shaped(flat))
        moved = [
            name for name, verdict in verdicts.items() if verdict.excess > 1 and self.judge.is_moved(name, flat[name])
        ]
        return {name: verdict for name, verdict in verdicts.items() if name not in moved}

    def _held(self, found: Sequence[modules.Dispatch]) -> dict[str, int]:
        """The node whose value each dispatch returns: the last dispatch that computes any of the node's lines, if its
        value is of the node's last line.
        """
        ends = {node: line for node, (line, _) in modules.located_values(self.part.received, self._lines).items()}
        last = {self._lines[line]: at for at, each in enumerate(found) for line in each.lines if line in self._lines}
        held = {
            node: at
            for at, each in enumerate(found)
            if each.value is not None and (node := self._lines.get(each.holds, ""))
            if last.get(node) == at and ends.get(node) == each.holds
        }
        return {
            name: held[name] for name in self.judge.nodes if name in held and self._may_hold(name, found[held[name]])
        }

    def _may_hold(self, name: str, dispatch: modules.Dispatch) -> bool:
        value = self.judge.nodes[name].meta.get("val")
        kind = dispatch.value.element if dispatch.value is not None else ""
        return isinstance(value, Tensor) and element_type(kind) == value.dtype

    def _shaped(self, flat: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Values in their nodes' shapes; without those of another number of elements."""
        found = {}
        for name, value in flat.items():
            like = self.judge.nodes[name].meta.get("val")
            if isinstance(like, Tensor) and value.numel() == like.numel():
                found[name] = value.reshape(tuple(map(int, like.shape)))
        return found

    def _of_results(self, results: Sequence[Tensor]) -> dict[str, BufferVerdict]:
        named = {node.name: result for node, result in zip(self.returned, results, strict=False)}
        return self.judge.verdicts(self._shaped(named))

    # Stages

    def _above(self) -> tuple[StageError, ...]:
        dynamo = stage_row("dynamo", self.gm, BufferVerdict(Size(), Size(), 0.0))
        try:
            imported = self._run(self.part.imported, self.part.lines)
        except NotRunnable as error:
            return dynamo, stage_row("imported", self.gm, None, reason=[Remark("no outputs", "IREE", str(error))])
        if imported.is_wrong:
            bad = first_wrong(imported.verdicts, self.gm) or first_wrong(imported.results, self.gm)
            why = Remark("no reference", bad, "IREE has none")
            return dynamo, stage_row("imported", self.gm, None, reason=[why])
        right = stage_row("imported", self.gm, worst(imported.results.values()))
        return (dynamo, right, self._edited()) if self.is_changed else (dynamo, right)

    def _edited(self) -> StageError:
        """The row of the module that is compiled, which something edited."""
        try:
            run = self._run(self.part.received, self._lines)
        except NotRunnable as error:
            return stage_row("rewritten", self.gm, None, reason=[Remark("no outputs", "IREE", str(error))])
        verdict = worst(run.results.values())
        if not run.is_wrong:
            return stage_row("rewritten", self.gm, verdict)
        diff = text_diff(self.part.imported.splitlines(), self.part.received.splitlines())
        caller = next(iter(self.part.callers), None)
        name, file, line = (caller.name, caller.file, caller.line) if caller is not None else (_EDIT, "", 0)
        maker = Maker(kind="pass", name=name, file=file, line=line, proven=Remark("model right before it"), diff=diff)
        bad = first_wrong(run.verdicts, self.gm)
        row = stage_row("rewritten", self.gm, verdict, bad=bad, made_by=maker)
        output = first_wrong(run.results, self.gm)
        return row if bad else replace(row, bad=True, added=row.error, output=output, reason=(Remark("lines lost"),))

    def _compiled(self, dispatched: DispatchRun, above: Sequence[StageError]) -> StageError:
        """The row of the compiled module."""
        actual = worst(self._of_results(self.part.results).values())
        if actual is None or actual.excess <= 1 or any(row.bad for row in above):
            return stage_row("kernels", self.gm, actual)
        bad = first_wrong(dispatched.verdicts, self.gm)
        if bad:
            name = dispatched.dispatches[dispatched.holds[bad]].name
            is_proven = above[-1].judged  # else what is above may be wrong
            made_by = Maker(kind="dispatch", name=name, proven=Remark("right op by op")) if is_proven else None
            return stage_row("kernels", self.gm, actual, bad=bad, made_by=made_by)
        reason = (dispatched.problem,) if dispatched.problem is not None else (Remark("no dispatch wrong"),)
        row = stage_row("kernels", self.gm, actual, reason=reason)
        return replace(row, bad=True, added=row.error, output=first_wrong(self._of_results(self.part.results), self.gm))

    # Dispatches

    def _rows(self, run: DispatchRun) -> Sequence[KernelError]:
        bad = first_wrong(run.verdicts, self.gm)
        names = {at: node for node, at in run.holds.items()}
        rows = []
        for at, dispatch in enumerate(run.dispatches):
            holds = names.get(at, "")
            nodes = dict.fromkeys(self._lines[line] for line in dispatch.lines if line in self._lines)
            seen = holds in run.verdicts
            reason = "" if seen else Remark("no dispatch's value" if not holds else "not run as output", "IREE")
            error = self.judge.input_error(holds, run.verdicts) if seen else 0.0
            is_bad = bool(holds) and holds == bad
            rows.append(
                layer_row(
                    "dispatch", dispatch.name, self.gm, nodes, holds, run.verdicts, error, bad=is_bad, reason=reason
                )
            )
        return rows


def mlir_type_of(node: Node) -> str:
    """The MLIR type of the elements of a node's value; "" where it is no tensor."""
    value = node.meta.get("val")
    return element_name(value.dtype) if isinstance(value, Tensor) else ""


def wrong_layers(part: IREEPart, k: float) -> LayerFindings | None:
    """What is wrong in the part; None if nothing is, or it was not called. Raises NotRunnable and NotJudged."""
    if not part.results:
        return None
    search = IREESearch(part, k)
    return search.located() if search.is_wrong() else None
