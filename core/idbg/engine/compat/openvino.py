"""OpenVINO's private names: capture the models of a compile, and run a model with layers as extra outputs."""

import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.fx import GraphModule

import idbg
from idbg.engine.compat.hooks import Feature, Function, Native, hooked
from idbg.engine.compat.origins import origins_traced, record_origins
from idbg.engine.compat.stages import copy_of

_PACKAGE = "openvino"
_NATIVE = f"{_PACKAGE}._pyopenvino"
_SECONDS = 60.0  # of one inference: a layer that takes longer counts as hanging
_CONSTANT = 64 << 20  # bytes of a constant whose values are compared
_IDBG = str(Path(idbg.__file__).parent)


class NotRunnable(Exception):
    """A model with these outputs cannot be compiled or run; the text says why."""


@dataclass(frozen=True)
class ModelOp:
    """An op of a model. `inputs` are (op, port) by the op's place in the model; `results` the places of the model's
    results that it is.
    """

    name: str
    kind: str
    inputs: tuple[tuple[int, int], ...]
    outputs: int
    text: str


@dataclass(frozen=True)
class ExecutedLayer:
    """A layer of the compiled model: `ops` are the names of the model's ops that it computes, in order."""

    name: str
    kind: str
    ops: tuple[str, ...]
    precision: str


@dataclass(frozen=True)
class OpenVINOModel:
    """A model, not compiled."""

    model: Native  # openvino.Model

    @cached_property
    def ops(self) -> tuple[ModelOp, ...]:
        """Its ops in topological order."""
        listed = list(self.model.get_ordered_ops())
        places = {op.get_name(): at for at, op in enumerate(listed)}  # unlike the friendly name, this one is unique
        return tuple(_described(op, places) for op in listed)

    @cached_property
    def structure(self) -> tuple[str, ...]:
        """A line for each op, equal for models that compute the same in the same way."""
        return tuple(op.text for op in self.ops)

    def typed_as(self, other: "OpenVINOModel") -> "OpenVINOModel":
        """A copy with the other model's types and shapes of parameters."""
        copy = self.model.clone()
        for mine, theirs in zip(copy.get_parameters(), other.model.get_parameters(), strict=True):
            mine.set_element_type(theirs.get_element_type())
            mine.set_partial_shape(theirs.get_partial_shape())
        copy.validate_nodes_and_infer_types()
        return OpenVINOModel(copy)


@dataclass(frozen=True)
class AppliedPasses:
    """One run of a pass manager of the program's: the model before, and after it."""

    names: tuple[str, ...]
    places: tuple[tuple[str, int], ...]
    passes: tuple[object, ...]
    before: OpenVINOModel
    after: OpenVINOModel


@dataclass(frozen=True)
class Caller:
    """A function of the program between OpenVINO's own compile function and its compiler."""

    name: str
    file: str
    line: int


@dataclass
class OpenVINOPart:
    """A graph that OpenVINO compiled, with the arguments of its first call. `imported`: the model as the frontend
    converts it; `received`: the model as the device's compiler receives it.
    """

    gm: GraphModule
    arguments: list[object]
    imported: OpenVINOModel | None = None
    received: OpenVINOModel | None = None
    compiled: Native = None  # openvino.CompiledModel
    device: str = ""
    config: Mapping[str, object] = field(default_factory=dict)
    passes: list[AppliedPasses] = field(default_factory=list)
    callers: tuple[Caller, ...] = ()

    @property
    def results(self) -> list[Tensor]:
        """The results of the compiled model. Raises NotRunnable."""
        return _inferred(self.compiled, self.arguments)

    @property
    def layers(self) -> tuple[ExecutedLayer, ...]:
        """The layers that the compiled model executes, in order."""
        return tuple(map(_executed, self.compiled.get_runtime_model().get_ordered_ops()))

    def run(self, model: OpenVINOModel, outputs: Sequence[tuple[int, int]]) -> tuple[list[Tensor], list[Tensor]]:
        """Compile the model for the same device and configuration, with these outputs (op, port) added, and run it on
        the same arguments: its results, and the values of these outputs. Raises NotRunnable.
        """
        extended = model.model.clone()
        listed = list(extended.get_ordered_ops())
        if [op.get_friendly_name() for op in listed] != [op.name for op in model.ops]:
            raise NotRunnable("OpenVINO orders the ops of a copied model in another way")
        count = len(extended.outputs)
        try:
            added = extended.add_outputs([listed[op].output(port) for op, port in outputs])
            places = {result.get_name(): at for at, result in enumerate(extended.get_results())}
            wanted = [places[output.get_node().get_name()] for output in added]  # one that was a result is no new one
            compiled = _compiled(extended, self.device, self.config)
        except Exception as error:  # whatever a compiler raises, with outputs that the program does not have
            raise NotRunnable(_last_line(error)) from error
        values = _inferred(compiled, self.arguments)
        return values[:count], [values[at] for at in wanted]


@contextmanager
def observed_openvino(problems: list[str]) -> Iterator[list[OpenVINOPart]]:
    """Record each model that OpenVINO's torch backend compiles in this context."""
    observer = _Observer()
    wrappers = {
        "fx_openvino": observer.fx_openvino,
        "openvino_compile": observer.openvino_compile,
        "FrontEnd.convert": observer.convert,
        "passes.Manager.run_passes": observer.run_passes,
        "Core.compile_model": observer.compile_model,
    }
    with hooked(Feature("OpenVINO layers", problems.append), wrappers), origins_traced(problems.append):
        yield observer.parts


class _Observer:
    """Wrappers of OpenVINO's functions, by the functions' names. `parts`: what was compiled."""

    def __init__(self) -> None:
        self.parts: list[OpenVINOPart] = []
        self._compiling: list[OpenVINOPart] = []

    def fx_openvino(self, call: Function, gm: GraphModule, *args: object, **kwargs: object) -> object:
        record_origins(gm)
        return call(gm, *args, **kwargs)

    def openvino_compile(self, call: Function, gm: GraphModule, *args: object, **kwargs: object) -> object:
        part = OpenVINOPart(copy_of(gm), [_copied(each) for each in args])
        self._compiling.append(part)
        try:
            part.compiled = call(gm, *args, **kwargs)
        finally:
            self._compiling.pop()
        if part.received is not None:
            self.parts.append(part)
        return part.compiled

    def convert(self, call: Function, *args: object, **kwargs: object) -> object:
        model = call(*args, **kwargs)
        if self._compiling:
            self._compiling[-1].imported = _cloned(model)
        return model

    def run_passes(self, call: Function, manager: object, model: Native) -> object:
        passes = tuple(getattr(manager, "passes_list", ()))
        if not self._compiling or not passes:
            return call(manager, model)
        before = _cloned(model)
        result = call(manager, model)
        names = tuple(type(each).__name__ for each in passes)
        places = tuple(map(_place_of_pass, passes))
        self._compiling[-1].passes.append(AppliedPasses(names, places, passes, before, _cloned(model)))
        return result

    def compile_model(self, call: Function, core: object, model: Native, *args: object, **kwargs: object) -> object:
        if self._compiling and hasattr(model, "get_ordered_ops"):
            part = self._compiling[-1]
            part.received = _cloned(model)
            part.device = next((each for each in args if isinstance(each, str)), "CPU")
            part.config = dict(next((each for each in args if isinstance(each, dict)), {}))
            part.callers = tuple(callers_in("openvino_compile", Path(import_module(_PACKAGE).__file__ or "").parent))
        return call(core, model, *args, **kwargs)


def after_passes(applied: AppliedPasses, count: int) -> OpenVINOModel:
    """The model after the first `count` passes of a manager. Raises NotRunnable."""
    copy = applied.before.model.clone()
    manager = import_module(f"{_PACKAGE}.passes").Manager()
    try:
        for each in applied.passes[:count]:
            manager.register_pass(each)
        manager.run_passes(copy)
    except Exception as error:  # a pass is the program's
        raise NotRunnable(_last_line(error)) from error
    return OpenVINOModel(copy)


def computed_by_reference(
    model: OpenVINOModel, inputs: Mapping[tuple[int, int], Tensor], output: tuple[int, int]
) -> Tensor:
    """The value of an output from those of others upstream, by OpenVINO's reference implementations, without a device.
    Raises NotRunnable, also where an op on the way has no reference implementation.
    """
    openvino = import_module(_PACKAGE)
    copy = model.model.clone()
    listed = list(copy.get_ordered_ops())
    parameters, tensors = [], []
    try:
        for (op, port), value in inputs.items():
            source = listed[op].output(port)
            parameter = openvino.opset13.parameter(list(value.shape), source.get_element_type())
            for target in source.get_target_inputs():
                target.replace_source_output(parameter.output(0))
            parameters.append(parameter)
            tensors.append(openvino.Tensor(np.ascontiguousarray(value.numpy())))
        part = openvino.Model([listed[output[0]].output(output[1])], parameters)
        made = openvino.Tensor(part.outputs[0].get_element_type(), openvino.Shape([0]))
        if not part.evaluate([made], tensors):
            raise NotRunnable("an op has no reference implementation")
    except (RuntimeError, TypeError, ValueError) as error:
        raise NotRunnable(_last_line(error)) from error
    return torch.from_numpy(np.array(made.data))


def _compiled(model: Native, device: str, config: Mapping[str, object]) -> Native:
    """The model, compiled by the native function: the program may have replaced the Python method to change models."""
    openvino, native = import_module(_PACKAGE), import_module(_NATIVE)
    made = native.Core.compile_model(openvino.Core(), model._Model__model, device, dict(config))
    return openvino.CompiledModel(made)


def _executed(op: Native) -> ExecutedLayer:
    known = op.get_rt_info()

    def text(name: str) -> str:
        value = known[name] if name in known else ""  # noqa: SIM401 (it is no dict, and has no `get`)
        return str(getattr(value, "value", value))

    names = tuple(filter(None, text("originalLayersNames").split(",")))
    return ExecutedLayer(op.get_friendly_name(), text("layerType"), names, text("runtimePrecision"))


def _described(op: Native, places: Mapping[str, int]) -> ModelOp:
    sources = tuple((places[each.get_node().get_name()], each.get_index()) for each in op.input_values())
    name, kind = op.get_friendly_name(), op.get_type_name()
    named = ((each.get_node().get_friendly_name(), each.get_index()) for each in op.input_values())
    shown = ", ".join(f"{source}:{port}" if port else source for source, port in named)
    types = ", ".join(f"{o.get_element_type().get_type_name()}{o.get_partial_shape()}" for o in op.outputs())
    settings = " ".join(f"{key}={value}" for key, value in op.get_attributes().items())
    values = f" {_bits(op)}" if kind == "Constant" else ""
    return ModelOp(name, kind, sources, len(op.outputs()), f"{name} = {kind}({shown}) {settings}{values} : {types}")


def _bits(constant: Native) -> str:
    data = np.asarray(constant.data)
    if data.size <= 8:
        return str(data.tolist())
    return f"{zlib.crc32(np.ascontiguousarray(data).tobytes()):08x}" if data.nbytes <= _CONSTANT else ""


def _inferred(compiled: Native, arguments: Sequence[object]) -> list[Tensor]:
    """The results of a compiled model, as copies. Raises NotRunnable."""
    values = [each.detach().cpu().numpy() if isinstance(each, Tensor) else each for each in arguments]
    try:
        request = compiled.create_infer_request()
        request.start_async(dict(enumerate(values)), share_inputs=False)
        if not request.wait_for(int(_SECONDS * 1000)):
            request.cancel()
            raise NotRunnable(f"it ran for more than {_SECONDS:.0f} s")
        return [torch.from_numpy(np.array(request.get_output_tensor(at).data)) for at in range(len(compiled.outputs))]
    except (RuntimeError, TypeError, ValueError) as error:
        raise NotRunnable(_last_line(error)) from error


def _copied(value: object) -> object:
    return value.detach().clone() if isinstance(value, Tensor) else value


def _cloned(model: Native) -> OpenVINOModel:
    openvino = import_module(_PACKAGE)
    copy = model.clone()
    return OpenVINOModel(copy if isinstance(copy, openvino.Model) else openvino.Model(copy))


def _place_of_pass(applied: object) -> tuple[str, int]:
    """Where the class of a pass begins: at the first of its functions."""
    codes = [code for each in vars(type(applied)).values() if (code := getattr(each, "__code__", None)) is not None]
    first = min(codes, key=lambda code: int(code.co_firstlineno), default=None)
    return (first.co_filename, first.co_firstlineno) if first is not None else ("", 0)


def callers_in(function: str, compiler: Path) -> Iterator[Caller]:
    """The program's functions that run within `function` now, the innermost first; not those of the compiler."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_name != function:
        code = frame.f_code
        if not code.co_filename.startswith((str(compiler), _IDBG)):
            yield Caller(code.co_qualname, code.co_filename, code.co_firstlineno)
        frame = frame.f_back


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
