"""Find the first wrong layer of OpenVINO, and whether its frontend, a transformation or its device made it wrong.

The model runs three times with values as extra outputs: as the frontend converts it, op by op (each value is an output,
so that nothing is fused); as the device's compiler receives it, op by op, where passes changed it; and with the values
between the layers of the compiled model, which leaves these as they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from torch import Tensor
from torch.fx import Node

from idbg.engine.compat import stages as torch_stages
from idbg.engine.compat.openvino import (
    AppliedPasses,
    ExecutedLayer,
    NotRunnable,
    OpenVINOModel,
    OpenVINOPart,
    after_passes,
    computed_by_reference,
)
from idbg.engine.kerneldiff.kernels.verdict import BufferVerdict
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
from idbg.engine.kerneldiff.layers.points import Place, node_of, points_after, points_of
from idbg.engine.kerneldiff.stages.makers import text_diff
from idbg.engine.kerneldiff.tensors.allowance import Size
from idbg.schema.attribution import Maker, StageError
from idbg.schema.diff import KernelError
from idbg.schema.remarks import Remark

_NO_LAYER = frozenset({"Input", "Output", "Const"})
_FRONTEND = "OpenVINO's PyTorch frontend"
_BY_HAND = "what changes the model before OpenVINO compiles it"


@dataclass
class ModelRun(RunVerdicts):
    """The verdicts of a model's values, which are at `points`; `layers` are those of the last compile."""

    points: Mapping[str, Place] = field(default_factory=dict)
    layers: tuple[ExecutedLayer, ...] = ()


class OpenVINOSearch:
    """The search in one graph. Raises NotJudged for a graph that draws random numbers."""

    def __init__(self, part: OpenVINOPart, k: float) -> None:
        self.part, self.gm = part, part.gm
        self.judge = NodeJudge(part.gm, part.arguments, k)
        # the node that the device computes wrong with nothing fused, and OpenVINO's reference right
        self._wrong_alone = ""
        assert part.received is not None
        self.received = part.received

    def is_wrong(self) -> bool:
        """Whether the compiled model computes a result wrong. Raises NotRunnable."""
        return any_wrong(self._results(self.part.results))

    def located(self) -> LayerFindings:
        """The layers and stages of a graph that is wrong. Raises NotRunnable if the model cannot run with outputs."""
        compiled = self._run(self.received, self._between_layers)
        rows = self._above(compiled)
        rows = (*rows, self._device(compiled, rows))
        return LayerFindings(self._layers(compiled), rows)

    # Models

    @cached_property
    def imported(self) -> OpenVINOModel | None:
        """The model as the frontend converts it; None if it was loaded from a file."""
        return self.part.imported.typed_as(self.received) if self.part.imported is not None else None

    @cached_property
    def is_changed(self) -> bool:
        """Whether passes changed the model between the frontend and the device's compiler."""
        return self.imported is not None and self.imported.structure != self.received.structure

    def _points(self, model: OpenVINOModel) -> dict[str, Place]:
        if self.imported is None or model is self.imported:
            return points_of(model.ops, self.gm)
        return points_after(model.ops, self.imported.ops, self.gm)

    @cached_property
    def _between_layers(self) -> dict[str, Place]:
        """The values that the layers of the compiled model leave: of each layer's ops the last one's."""
        points = self._points(self.received)
        places = {op.name: at for at, op in enumerate(self.received.ops)}
        last = {max((places[name] for name in layer.ops if name in places), default=-1) for layer in self.part.layers}
        return {name: place for name, place in points.items() if place[0] in last}

    # Runs

    def _run(self, model: OpenVINOModel, points: Mapping[str, Place]) -> ModelRun:
        made = ModelRun(points=points)

        def run(names: Sequence[str]) -> dict[str, BufferVerdict]:
            extended = self.part.run(model, [points[name] for name in names])
            values = dict(zip(names, extended.values, strict=True))
            made.results, made.layers = self._results(extended.results), extended.layers
            return self.judge.verdicts(values)

        names = list(points)
        made.verdicts = narrowed(names, run, self.judge.size)
        if not names:
            run(())
        return made

    def _results(self, results: Sequence[Tensor]) -> dict[str, BufferVerdict]:
        returned = [value for value in torch_stages.output_values(self.gm) if isinstance(value, Node)]
        named = {value.name: result for value, result in zip(returned, results, strict=False)}
        return self.judge.verdicts(named)

    # Stages

    def _above(self, compiled: ModelRun) -> tuple[StageError, ...]:
        """The rows above the device: the graph, the model as it was converted, and as passes left it."""
        dynamo = stage_row("dynamo", self.gm, BufferVerdict(Size(), Size(), 0.0))
        if self.imported is None:
            return dynamo, stage_row("imported", self.gm, None, reason=[Remark("from a file", "OpenVINO")])
        imported = self._tried(self.imported)
        if isinstance(imported, Remark):
            return dynamo, stage_row("imported", self.gm, None, reason=[imported])
        if imported.is_wrong:
            return dynamo, self._of_import(imported)
        right = stage_row("imported", self.gm, worst(imported.results.values()))
        return (dynamo, right, self._of_passes()) if self.is_changed else (dynamo, right)

    def _tried(self, model: OpenVINOModel) -> "ModelRun | Remark":
        """A run of the model op by op, or why there is none."""
        try:
            return self._run(model, self._points(model))
        except NotRunnable as error:
            return Remark("no outputs", "OpenVINO", str(error))

    def _of_import(self, run: ModelRun) -> StageError:
        """The row of a converted model that is wrong op by op: the conversion's error, or a device's."""
        assert self.imported is not None
        bad = first_wrong(run.verdicts, self.gm) or first_wrong(run.results, self.gm)
        verdict = worst(run.results.values())
        try:
            by_reference = self._by_reference(self.imported, run, bad)
        except NotRunnable as error:
            return stage_row("imported", self.gm, None, reason=[Remark("no reference", bad, str(error))])
        if by_reference is not None and by_reference.excess <= 1:
            self._wrong_alone = bad
            return stage_row("imported", self.gm, by_reference)
        made_by = Maker(kind="importer", name=_FRONTEND, proven=Remark("reference too"))
        return stage_row("imported", self.gm, verdict, bad=bad, made_by=made_by)

    def _by_reference(self, model: OpenVINOModel, run: ModelRun, name: str) -> BufferVerdict | None:
        """The verdict of a node's value by OpenVINO's reference implementations, from what the device gave it."""
        place = run.points.get(name)
        if place is None:
            raise NotRunnable("it is at no known op")
        inside = {at for at, op in enumerate(model.ops) if node_of(op.name, self.gm) == name}
        sources = [each for at in sorted(inside) for each in model.ops[at].inputs if each[0] not in inside]
        outside = [each for each in dict.fromkeys(sources) if model.ops[each[0]].kind != "Constant"]
        values = self.part.run(model, outside).values
        result = computed_by_reference(model, dict(zip(outside, values, strict=True)), place)
        return self.judge.verdicts({name: result}).get(name)

    def _of_passes(self) -> StageError:
        """The row of the model that the device's compiler receives, which passes changed."""
        run = self._tried(self.received)
        if isinstance(run, Remark):
            return stage_row("rewritten", self.gm, None, reason=[run])
        verdict = worst(run.results.values())
        if not run.is_wrong:
            return stage_row("rewritten", self.gm, verdict)
        bad = first_wrong(run.verdicts, self.gm) or first_wrong(run.results, self.gm)
        return stage_row("rewritten", self.gm, verdict, bad=bad, made_by=self._pass())

    def _pass(self) -> Maker:
        """The first pass after which the model is wrong; else what called the compiler in OpenVINO's place."""
        assert self.imported is not None
        proven = Remark("model right before it")
        for applied in self.part.passes:
            if self._is_wrong(applied.after):
                at = self._place_in(applied)
                file, line = applied.places[at]
                diff = self._diff(applied, at)
                return Maker(kind="pass", name=applied.names[at], file=file, line=line, proven=proven, diff=diff)
        diff = text_diff(self.imported.structure, self.received.structure)
        caller = next(iter(self.part.callers), None)
        if caller is None:
            return Maker(kind="pass", name=_BY_HAND, proven=proven, diff=diff)
        return Maker(kind="pass", name=caller.name, file=caller.file, line=caller.line, proven=proven, diff=diff)

    def _is_wrong(self, model: OpenVINOModel) -> bool:
        run = self._tried(model.typed_as(self.received))
        return isinstance(run, ModelRun) and run.is_wrong

    def _place_in(self, applied: AppliedPasses) -> int:
        """Which of a manager's passes it is."""
        for count in range(1, len(applied.passes)):
            try:
                if self._is_wrong(after_passes(applied, count)):
                    return count - 1
            except NotRunnable:
                continue
        return len(applied.passes) - 1

    def _diff(self, applied: AppliedPasses, at: int) -> str:
        try:
            before, after = (after_passes(applied, count) for count in (at, at + 1))
        except NotRunnable:
            before, after = applied.before, applied.after
        return text_diff(before.structure, after.structure)

    def _device(self, compiled: ModelRun, above: Sequence[StageError]) -> StageError:
        """The row of the compiled model."""
        actual = worst(self._results(self.part.results).values())
        if actual is None or actual.excess <= 1 or any(row.bad for row in above):
            return stage_row("kernels", self.gm, actual)
        is_right_above = above[-1].judged
        bad = self._wrong_alone or first_wrong(compiled.verdicts, self.gm)
        how: Remark | str = Remark("right by reference" if self._wrong_alone else "right op by op")
        proven = how if is_right_above else ""
        if not bad:
            bad, proven = self._unexposed(compiled), Remark("right apart")
        layer = self._layer_of(bad, compiled.layers)
        name = layer.name if layer is not None else bad
        made_by = Maker(kind="layer", name=name, proven=proven) if proven else None
        return stage_row("kernels", self.gm, actual, bad=bad, made_by=made_by)

    def _unexposed(self, compiled: ModelRun) -> str:
        """The node whose value, as an output, makes the results right; if the results are wrong with any, theirs."""
        if compiled.is_wrong:
            return first_wrong(compiled.results, self.gm)
        names = list(self._between_layers)

        def is_right(count: int) -> bool:
            extended = self.part.run(self.received, [self._between_layers[name] for name in names[:count]])
            return not any_wrong(self._results(extended.results))

        low, high = 0, len(names)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if is_right(middle) else (middle, high)
        return names[high - 1] if names else first_wrong(self._results(self.part.results), self.gm)

    # Layers

    def _layers(self, compiled: ModelRun) -> tuple[KernelError, ...]:
        """A row for each layer that computes a node; the first wrong one is bad."""
        bad = first_wrong(compiled.verdicts, self.gm)
        return tuple(self._layer(layer, compiled, bad) for layer in compiled.layers if layer.kind not in _NO_LAYER)

    def _layer(self, layer: ExecutedLayer, compiled: ModelRun, bad: str) -> KernelError:
        nodes = list(dict.fromkeys(filter(None, (node_of(name, self.gm) for name in layer.ops))))
        holds = self._held(layer, compiled.points)
        verdicts = compiled.verdicts
        unseen = "" if holds in verdicts else Remark("no node's value", "OpenVINO")
        error = self.judge.input_error(holds, verdicts) if holds in verdicts else 0.0
        is_bad = holds != "" and holds == bad
        return layer_row("layer", layer.name, self.gm, nodes, holds, verdicts, error, bad=is_bad, reason=unseen)

    def _held(self, layer: ExecutedLayer, points: Mapping[str, Place]) -> str:
        """The node whose value the layer leaves; "" of none."""
        places = {op.name: at for at, op in enumerate(self.received.ops)}
        last = max((places[name] for name in layer.ops if name in places), default=-1)
        return next((name for name, place in points.items() if place[0] == last), "")

    def _layer_of(self, node: str, layers: Sequence[ExecutedLayer]) -> ExecutedLayer | None:
        """The layer that computes a node's value."""
        place = self._points(self.received).get(node)
        if place is None:
            return None
        name = self.received.ops[place[0]].name
        return next((layer for layer in layers if name in layer.ops), None)


def wrong_layers(part: OpenVINOPart, k: float) -> LayerFindings | None:
    """What is wrong in the part; None if nothing is. Raises NotRunnable and NotJudged."""
    search = OpenVINOSearch(part, k)
    return search.located() if search.is_wrong() else None
