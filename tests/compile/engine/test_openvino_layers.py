"""The first wrong layer of OpenVINO: planted errors in a pass, in the conversion, in a kernel and in a fusion."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openvino
import openvino._pyopenvino as native
import openvino.torch
import pytest
import torch
from openvino import opset13, passes
from openvino.frontend.pytorch import fx_decoder
from openvino.frontend.pytorch.torchdynamo import backend as openvino_backend
from torch import Tensor, nn
from torch.nn import functional as F

from idbg.engine.compat.openvino import observed_openvino
from idbg.engine.kerneldiff.api import ModelDiff
from idbg.engine.kerneldiff.layers import checkpoints
from idbg.engine.kerneldiff.layers.openvino import OpenVINOSearch
from idbg.engine.kerneldiff.tensors.allowance import KERNEL_K
from idbg.schema.attribution import StageError
from idbg.schema.diff import DiffReport
from idbg.views.blame import blame_sentence

HERE = Path(__file__).name
Patch = pytest.MonkeyPatch
EXACT = {"config": {"INFERENCE_PRECISION_HINT": "f32"}}  # of a processor that would compute in bf16
compiled_natively = native.Core.compile_model


@pytest.fixture(autouse=True)
def own_options() -> Iterator[None]:
    """OpenVINO keeps the options of a backend with aot_autograd for all that come after it."""
    yield
    openvino_backend.openvino_options = {}
    torch.compiler.reset()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(32, 64), nn.Linear(64, 16)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x)
        above = torch.relu(hidden)
        gate = torch.sigmoid(above)
        scaled = gate * above
        return self.second(scaled) + 1


LINES = {
    name: Net.forward.__code__.co_firstlineno + at
    for at, name in enumerate(("hidden", "above", "gate", "scaled", "out"), 1)
}


def compared(model: nn.Module | None = None, *inputs: Tensor, **settings: Any) -> DiffReport:
    torch.manual_seed(0)
    model, inputs = model or Net().eval(), inputs or (torch.randn(8, 32),)
    options = {**EXACT, **settings.pop("options", {})}

    def test(gm: Any, given: Any) -> Any:
        return openvino_backend.openvino(gm, given, options=options)

    report = ModelDiff(model, inputs, test=test, per_kernel=True, **settings).compare()
    assert report.failure is None, report.failure
    return report


def by_name(file: str, line: int) -> str:
    return f"{Path(file).name}:{line}"


def stages(report: DiffReport) -> dict[str, StageError]:
    return {stage.stage: stage for stage in report.stages}


class ReplaceRelu(passes.MatcherPass):
    """A wrong transformation, that keeps the name of what it replaces."""

    def __init__(self) -> None:
        super().__init__()

        def replaced(matcher: Any) -> bool:
            root = matcher.get_match_root()
            wrong = opset13.abs(root.input_value(0))
            wrong.set_friendly_name(root.get_friendly_name())
            openvino.utils.replace_node(root, wrong)
            return True

        self.register_matcher(passes.Matcher(passes.WrapType("opset13.Relu"), "ReplaceRelu"), replaced)


class ReplaceSigmoid(passes.ModelPass):
    """A wrong transformation whose op has a name of its own."""

    def run_on_model(self, model: Any) -> bool:
        for op in model.get_ordered_ops():
            if op.get_type_name() == "Sigmoid":
                openvino.utils.replace_node(op, opset13.tanh(op.input_value(0)))
        return True


class DropRelu(passes.ModelPass):
    """A wrong transformation that leaves no op behind."""

    def run_on_model(self, model: Any) -> bool:
        for op in model.get_ordered_ops():
            if op.get_type_name() == "Relu":
                for target in op.output(0).get_target_inputs():
                    target.replace_source_output(op.input_value(0))
        return True


class Right(passes.ModelPass):
    """A transformation that changes the model, and not what it computes."""

    def run_on_model(self, model: Any) -> bool:
        for op in model.get_ordered_ops():
            if op.get_type_name() == "Multiply":
                other = opset13.multiply(op.input_value(1), op.input_value(0))
                other.set_friendly_name(op.get_friendly_name())
                openvino.utils.replace_node(op, other)
        return True


def with_passes(patch: Patch, *applied: type) -> None:
    """The program runs these passes before OpenVINO compiles."""
    original = openvino.Core.compile_model

    def compile_model(core: Any, model: Any, *args: Any, **settings: Any) -> Any:
        manager = passes.Manager()
        for each in applied:
            manager.register_pass(each())
        manager.run_passes(model)
        return original(core, model, *args, **settings)

    patch.setattr(openvino.Core, "compile_model", compile_model)


@pytest.mark.parametrize(("wrong", "node"), [(ReplaceRelu, "above"), (ReplaceSigmoid, "gate"), (DropRelu, "above")])
def test_a_wrong_pass_is_named_with_its_node_and_line(monkeypatch: pytest.MonkeyPatch, wrong: type, node: str) -> None:
    with_passes(monkeypatch, Right, wrong, Right)
    report = compared()
    row = stages(report)["rewritten"]
    assert report.verdict == "failed"
    assert [stage.bad for stage in report.stages] == [False, False, True, False]
    assert (row.node, Path(row.file).name, row.line) == (node, HERE, LINES[node])
    assert row.made_by is not None
    assert (row.made_by.kind, row.made_by.name, Path(row.made_by.file).name) == ("pass", wrong.__name__, HERE)
    assert any(line.startswith(("+", "-")) for line in row.made_by.diff.splitlines()[2:])
    assert report.culprit is not None and report.culprit.unit == "layer" and report.culprit.file.endswith(HERE)
    assert f"wrong since rewritten model: `{node}` ({HERE}:{LINES[node]})" in blame_sentence(report, by_name)


class RenameAll(passes.ModelPass):
    """A transformation after which nothing has the name of a node."""

    def run_on_model(self, model: Any) -> bool:
        for at, op in enumerate(model.get_ordered_ops()):
            op.set_friendly_name(f"op{at}")
        return True


def test_a_wrong_pass_after_which_no_value_is_known_is_named_with_the_node_of_a_bisection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_passes(monkeypatch, RenameAll, ReplaceSigmoid)
    row = stages(compared())["rewritten"]
    assert (row.bad, row.node, row.line) == (True, "gate", LINES["gate"])
    assert isinstance(row.reason, tuple) and [each.kind for each in row.reason] == ["lines lost"]
    assert row.made_by is not None and row.made_by.name == "ReplaceSigmoid"


def test_a_model_that_is_changed_by_hand_names_what_changes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    original = openvino.Core.compile_model

    def changes_the_model(core: Any, model: Any, *args: Any, **settings: Any) -> Any:
        ReplaceSigmoid().run_on_model(model)
        return original(core, model, *args, **settings)

    monkeypatch.setattr(openvino.Core, "compile_model", changes_the_model)
    row = stages(compared())["rewritten"]
    assert (row.bad, row.node, row.line) == (True, "gate", LINES["gate"])
    assert row.made_by is not None and row.made_by.name.endswith("changes_the_model")
    assert row.made_by.line == changes_the_model.__code__.co_firstlineno


def test_a_right_pass_is_not_accused(monkeypatch: pytest.MonkeyPatch) -> None:
    with_passes(monkeypatch, Right)
    report = compared()
    assert report.verdict == "passed" and not any(stage.bad for stage in report.stages)
    for search in searches(Net().eval(), torch.randn(8, 32)):
        assert search.is_changed and not search.is_wrong()
        found = search.located()
        assert [stage.stage for stage in found.stages] == ["dynamo", "imported", "rewritten", "kernels"]
        assert not any(row.bad for row in found.stages) and not any(layer.bad for layer in found.layers)


def test_a_wrong_conversion_is_the_frontends(monkeypatch: pytest.MonkeyPatch) -> None:
    original = fx_decoder.TorchFXPythonDecoder.get_op_type

    def other_op(decoder: Any) -> str:
        name = original(decoder)
        return "aten.tanh.default" if name == "aten.sigmoid.default" else name

    monkeypatch.setattr(fx_decoder.TorchFXPythonDecoder, "get_op_type", other_op)
    row = stages(compared())["imported"]
    assert (row.judged, row.bad, row.node, row.line) == (True, True, "gate", LINES["gate"])
    assert row.made_by is not None and row.made_by.kind == "importer"


def with_compiler(patch: Patch, change: Callable[[Any], None]) -> None:
    """OpenVINO's own compiler, below all that Python sees of it, changes the model."""

    def compile_model(core: Any, model: Any, *args: Any, **settings: Any) -> Any:
        copy = openvino.Model(model.clone())
        change(copy)
        return compiled_natively(core, copy._Model__model, *args, **settings)

    patch.setattr(native.Core, "compile_model", compile_model)


def replace_sigmoid(model: Any) -> None:
    ReplaceSigmoid().run_on_model(model)


def test_a_wrong_kernel_is_the_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    with_compiler(monkeypatch, replace_sigmoid)
    report = compared()
    row = stages(report)["kernels"]
    assert [(stage.stage, stage.bad) for stage in report.stages] == [
        ("dynamo", False),
        ("imported", False),
        ("kernels", True),
    ]
    assert report.culprit is not None and report.culprit.unit == "layer"
    assert row.made_by is not None and row.made_by.kind == "layer"
    assert (row.node, row.line) == ("gate", LINES["gate"])


def test_a_wrong_fusion_is_right_once_its_value_is_an_output(monkeypatch: pytest.MonkeyPatch) -> None:
    def fuses_wrong(model: Any) -> None:
        for op in model.get_ordered_ops():
            readers = {target.get_node().get_type_name() for target in op.output(0).get_target_inputs()} if (
                op.get_type_name() == "MatMul"
            ) else {"Result"}  # fmt: skip
            if "Result" not in readers:
                wrong = opset13.multiply(op.output(0), opset13.constant(1.01, openvino.Type.f32))
                for target in op.output(0).get_target_inputs() - wrong.output(0).get_target_inputs():
                    if target.get_node().get_friendly_name() != wrong.get_friendly_name():
                        target.replace_source_output(wrong.output(0))
                return

    with_compiler(monkeypatch, fuses_wrong)
    report = compared()
    row = stages(report)["kernels"]
    assert row.bad and row.made_by is not None and row.node
    assert not stages(report)["imported"].bad


def test_outputs_are_added_in_parts_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checkpoints.MOST > 1
    monkeypatch.setattr(checkpoints, "MOST", 1)
    with_passes(monkeypatch, ReplaceSigmoid)
    row = stages(compared())["rewritten"]
    assert (row.bad, row.node, row.line) == (True, "gate", LINES["gate"])


def test_a_model_that_takes_no_outputs_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    def add_outputs(*_: object) -> None:
        raise RuntimeError("no more outputs")

    with_passes(monkeypatch, ReplaceSigmoid)
    monkeypatch.setattr(native.Model, "add_outputs", add_outputs)
    report = compared()
    assert report.culprit is not None and report.culprit.bisected  # what a search without layers names
    assert [note.kind for note in report.notes if note.kind.startswith("layers")] == ["layers not judged"]


# ---------------------------------------------------------------- programs that are right


def searches(model: nn.Module, *inputs: Tensor, **settings: Any) -> Iterator[OpenVINOSearch]:
    problems: list[str] = []
    torch.compiler.reset()
    options = {**EXACT, **settings.pop("options", {})}
    with torch.no_grad(), observed_openvino(problems) as parts:
        torch.compile(model, backend="openvino", options=options, **settings)(*inputs)
    assert not problems and parts
    yield from (OpenVINOSearch(part, KERNEL_K) for part in parts)


class Of(nn.Module):
    def __init__(self, function: Callable[..., Tensor], **layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            self.add_module(name, layer)

    def forward(self, *args: Tensor) -> Tensor:
        return self.function(self, *args)


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


PROGRAMS: dict[str, tuple[Callable[[], nn.Module], tuple[Tensor, ...], dict[str, Any]]] = {
    "perceptron": (Net, (drawn(8, 32),), {}),
    "dynamic": (Net, (drawn(7, 32),), {"dynamic": True}),
    "softmax": (lambda: Of(lambda _, x: torch.einsum("bij,bkj->bik", x, x).log_softmax(-1)), (drawn(2, 4, 8),), {}),
    "attention": (lambda: Of(lambda _, x: F.scaled_dot_product_attention(x, 2 * x, x + 1)), (drawn(2, 4, 6, 8),), {}),
    "norm": (lambda: Of(lambda s, x: F.gelu(s.n(x)) * 2, n=nn.LayerNorm(32)), (drawn(4, 32),), {}),
    "embedding": (lambda: Of(lambda s, i: s.e(i).sum(1), e=nn.Embedding(50, 16)), (torch.arange(28).view(4, 7),), {}),
    "in place": (lambda: Of(lambda _, x: (x * 2).add_(1).relu_().mul_(3)), (drawn(4, 32),), {}),
    "integers": (lambda: Of(lambda _, x: torch.where(x > 0, x, x.exp()).cumsum(-1)), (drawn(4, 32),), {}),
    "half": (lambda: Of(lambda s, x: s.a(x).relu() + 1, a=nn.Linear(64, 32)).half(), (drawn(8, 64).half(),), {}),
    "views": (
        lambda: Of(lambda _, x: x.view(4, 4, 8).permute(1, 0, 2).reshape(4, 32)[:, ::2] + 1),
        (drawn(4, 32),),
        {},
    ),
    "aot": (Net, (drawn(8, 32),), {"options": {"aot_autograd": True}}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_layer_of_a_right_program_is_accused(name: str) -> None:
    torch.manual_seed(0)
    made, inputs, settings = PROGRAMS[name]
    for search in searches(made().eval(), *inputs, **settings):
        assert not search.is_wrong() and not search.is_changed
        found = search.located()
        assert [stage.judged for stage in found.stages] == [True, True, True]
        assert any(layer.observed for layer in found.layers)
        assert not any(row.bad for row in found.stages) and not any(layer.bad for layer in found.layers)
        assert all(layer.observed or layer.reason for layer in found.layers)


@pytest.mark.parametrize("name", ["perceptron", "in place"])
def test_a_comparison_that_passes_has_no_layers(name: str) -> None:
    made, inputs, settings = PROGRAMS[name]
    report = compared(made().eval(), *inputs, **settings)
    assert (report.verdict, report.kernels) == ("passed", ())
