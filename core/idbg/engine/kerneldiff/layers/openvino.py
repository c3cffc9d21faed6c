"""Find the first wrong layer of OpenVINO, and whether its frontend, a transformation or its device made it wrong.

The model runs three times with values as extra outputs: as the frontend converts it, op by op (each value is an output,
so that nothing is fused); as the device's compiler receives it, op by op, where passes changed it; and with the values
between the layers of the compiled model, which leaves these as they are.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec.structs import replace

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
from idbg.engine.kerneldiff.layers.checkpoints import (
    Checkpoints,
    CheckpointSearch,
    CheckpointValues,
    CompiledForm,
    Layer,
    RunVerdicts,
    first_wrong,
)
from idbg.engine.kerneldiff.layers.findings import place_of, stage_row
from idbg.engine.kerneldiff.layers.points import Place, node_of, points_after, points_of
from idbg.engine.kerneldiff.stages.makers import text_diff
from idbg.schema.attribution import Maker, StageError
from idbg.schema.remarks import Remark

_NO_LAYER = frozenset({"Input", "Output", "Const"})
_FRONTEND = "OpenVINO's PyTorch frontend"


class OpenVINOSearch(CheckpointSearch[OpenVINOPart]):
    """The search in one graph. Raises NotComparable for a graph that draws random numbers."""

    compiler, unit = "OpenVINO", "layer"
    by_hand = "what changes the model before OpenVINO compiles it"

    _wrong_alone = ""
    """The node that the device computes wrong with nothing fused, and OpenVINO's reference right."""

    @cached_property
    def _received(self) -> OpenVINOModel:
        assert self.part.received is not None
        return self.part.received

    @cached_property
    def _imported(self) -> OpenVINOModel | None:
        """The model as the frontend converts it; None if it was loaded from a file."""
        return self.part.imported.typed_as(self._received) if self.part.imported is not None else None

    @property
    def texts(self) -> tuple[str, str]:
        """Both models, an op a line."""
        before = self._imported.structure if self._imported is not None else ()
        return "\n".join(before), "\n".join(self._received.structure)

    # Forms

    def imported(self) -> Checkpoints | Remark:
        """The model as the frontend converts it."""
        model = self._imported
        return Remark("from a file", "OpenVINO") if model is None else self._checkpoints(model, self._points(model))

    def rewritten(self) -> Checkpoints:
        """The model as passes left it."""
        return self._checkpoints(self._received, self._points(self._received))

    def compiled(self) -> CompiledForm:
        """The compiled model, with the values that its layers leave: of each layer's ops the last one's."""
        points = self._between_layers
        run = self.run(self._checkpoints(self._received, points))
        held = {place[0]: name for name, place in points.items()}
        shown = [each for each in self.part.layers if each.kind not in _NO_LAYER]
        return CompiledForm(run, [self._layer(each, held.get(self._last_op(each), "")) for each in shown])

    def _checkpoints(self, model: OpenVINOModel, points: Mapping[str, Place]) -> Checkpoints:
        def run(names: Sequence[str]) -> CheckpointValues:
            results, values = self.part.run(model, [points[name] for name in names])
            return CheckpointValues(results, dict(zip(names, values, strict=True)))

        return Checkpoints(list(points), run)

    def _points(self, model: OpenVINOModel) -> dict[str, Place]:
        if self._imported is None or model is self._imported:
            return points_of(model.ops, self.gm)
        return points_after(model.ops, self._imported.ops, self.gm)

    @cached_property
    def _between_layers(self) -> dict[str, Place]:
        last = set(map(self._last_op, self.part.layers))
        return {name: place for name, place in self._points(self._received).items() if place[0] in last}

    def _last_op(self, layer: ExecutedLayer) -> int:
        """The place in the model of a layer's last op; -1 of none."""
        return max((self._places[name] for name in layer.ops if name in self._places), default=-1)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {op.name: at for at, op in enumerate(self._received.ops)}

    def _layer(self, layer: ExecutedLayer, holds: str) -> Layer:
        nodes = dict.fromkeys(filter(None, (node_of(name, self.gm) for name in layer.ops)))
        return Layer(layer.name, list(nodes), holds, Remark("no node's value", "OpenVINO"))

    # What made it wrong

    def wrong_import(self, run: RunVerdicts, bad: str) -> StageError:
        """The row of a converted model that is wrong op by op: the conversion's error, or a device's."""
        try:
            by_reference = self._by_reference(bad)
        except NotRunnable as error:
            return stage_row("imported", place_of(self.gm, ""), None, reason=[Remark("no reference", bad, str(error))])
        if by_reference is not None and by_reference.excess <= 1:
            self._wrong_alone = bad
            return stage_row("imported", place_of(self.gm, ""), by_reference)
        made_by = Maker(kind="importer", name=_FRONTEND, proven=Remark("reference too"))
        return self.row("imported", run.results, bad, made_by)

    def _by_reference(self, name: str) -> BufferVerdict | None:
        """The verdict of a node's value by OpenVINO's reference implementations, from what the device gave it."""
        model = self._imported
        place = self._points(model).get(name) if model is not None else None
        if model is None or place is None:
            raise NotRunnable("it is at no known op")
        inside = {at for at, op in enumerate(model.ops) if node_of(op.name, self.gm) == name}
        sources = [each for at in sorted(inside) for each in model.ops[at].inputs if each[0] not in inside]
        outside = [each for each in dict.fromkeys(sources) if model.ops[each[0]].kind != "Constant"]
        _, values = self.part.run(model, outside)
        result = computed_by_reference(model, dict(zip(outside, values, strict=True)), place)
        return self.judge.verdicts({name: result}).get(name)

    def rewriter(self) -> Maker:
        """The first pass after which the model is wrong; else what called the compiler in OpenVINO's place."""
        made_by = super().rewriter()
        for applied in self.part.passes:
            if self._is_wrong(applied.after):
                at = self._place_in(applied)
                file, line = applied.places[at]
                return replace(made_by, name=applied.names[at], file=file, line=line, diff=_diff(applied, at))
        return made_by

    def _is_wrong(self, model: OpenVINOModel) -> bool:
        model = model.typed_as(self._received)
        run = self.tried(self._checkpoints(model, self._points(model)))
        return isinstance(run, RunVerdicts) and first_wrong(run.results, self.gm) != ""

    def _place_in(self, applied: AppliedPasses) -> int:
        """Which of a manager's passes it is."""
        for count in range(1, len(applied.passes)):
            try:
                if self._is_wrong(after_passes(applied, count)):
                    return count - 1
            except NotRunnable:
                continue
        return len(applied.passes) - 1

    def wrong_layer(self, form: CompiledForm) -> tuple[str, Remark]:
        """The first wrong node; else one whose value, as an output, makes the results right."""
        if self._wrong_alone:
            return self._wrong_alone, Remark("right by reference")
        bad, proven = super().wrong_layer(form)
        return (bad, proven) if bad else (self._unexposed(form.run), Remark("right apart"))

    def _unexposed(self, run: RunVerdicts) -> str:
        """That node; if the results are wrong with any, theirs."""
        if bad := first_wrong(run.results, self.gm):
            return bad
        checkpoints = self._checkpoints(self._received, self._between_layers)
        names = checkpoints.names

        def is_right(last: int) -> bool:
            return not first_wrong(self.of_results(checkpoints.run(names[: last + 1]).results), self.gm)

        last = bisect_left(range(len(names) - 1), True, key=is_right)
        return names[last] if names else first_wrong(self.actual, self.gm)


def _diff(applied: AppliedPasses, at: int) -> str:
    try:
        before, after = (after_passes(applied, count) for count in (at, at + 1))
    except NotRunnable:
        before, after = applied.before, applied.after
    return text_diff(before.structure, after.structure)
