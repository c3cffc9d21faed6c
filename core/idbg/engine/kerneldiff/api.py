"""Compare a compiled model with a reference."""

import inspect
from collections.abc import Mapping
from typing import Any, cast

import torch

from idbg.engine.kerneldiff.comparison import ComparisonRun
from idbg.engine.kerneldiff.request import ComparisonRequest
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.program.load import Model, Workload
from idbg.schema.diff import DiffReport


class ModelDiff(ComparisonRequest):
    """The comparison of a model; `idbg.KernelDiff` documents the settings."""

    def compare(self) -> DiffReport:
        """Run every side and compare. Exceptions of a side are in the report. Raises BadInput for invalid settings."""
        return self.begin().run()

    def begin(self) -> ComparisonRun:
        """The comparison to `run`; it holds the compared tensors. Raises as `compare` does."""
        self.check()
        args, kwargs = arguments(self.model, self.inputs, self.kwargs)
        workload = Workload(self.model, args, kwargs, self.loss, self.grad)
        subject = Subject(workload, input_gradients=self.backward)
        return ComparisonRun(self, subject)


def quick_check(model: Model, inputs: object = ()) -> bool:
    """Whether Inductor computes what eager does, on these inputs."""
    return ModelDiff(model, inputs).compare().passed


def arguments(
    model: Model, inputs: object, kwargs: Mapping[str, Any] | None = None
) -> tuple[tuple[object, ...], dict[str, Any]]:
    """The model's positional and keyword arguments, from the `inputs` of a comparison."""
    keywords = dict(kwargs or {})
    if type(inputs) in (tuple, list):
        return tuple(cast("tuple[object, ...]", inputs)), keywords
    if isinstance(inputs, Mapping) and all(isinstance(key, str) for key in inputs):
        named = {**inputs, **keywords}
        return ((), named) if _takes(model, **named) or not _takes(model, inputs, **keywords) else ((inputs,), keywords)
    if isinstance(inputs, tuple) and not _takes(model, inputs, **keywords):  # a namedtuple of all arguments
        return tuple(inputs), keywords
    return (inputs,), keywords


def _takes(model: Model, *args: object, **kwargs: object) -> bool:
    call = model.forward if isinstance(model, torch.nn.Module) else model
    try:
        inspect.signature(call).bind(*args, **kwargs)
    except (TypeError, ValueError):  # it does not fit, or it is a builtin without a signature
        return False
    return True
