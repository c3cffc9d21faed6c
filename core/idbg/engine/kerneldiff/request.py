"""The settings of one comparison, and their checks."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from math import inf
from typing import Any, get_args

import torch

from idbg.engine import backends
from idbg.engine.kerneldiff.tensors.compare import tolerance
from idbg.engine.kerneldiff.tensors.saved_outputs import SavedOutputs
from idbg.engine.program.load import Loss, Model, differentiates
from idbg.schema.diff import DiffReport, K, Mode
from idbg.schema.errors import BadInput
from idbg.schema.programs import Float64On

Backend = str | Callable[..., Any]
"""A side: "eager", "float64", a backend that idbg or torch knows by name, or what torch.compile takes for one."""

FLOAT64 = ("float64", "fp64")


@dataclass(frozen=True)
class ComparisonRequest:
    """The settings of one comparison; `idbg.KernelDiff` documents them."""

    model: Model
    inputs: object = ()
    kwargs: Mapping[str, Any] | None = None
    _: KW_ONLY
    loss: Loss | None = None
    backward: bool = False
    backward_if_recorded: bool = False
    grad: bool = False
    reference: Backend | SavedOutputs = "eager"
    test: Backend = "inductor"
    compiled: Model | None = None  # what the program itself compiled for that backend
    later: bool = False  # a later call: of that, with its own random numbers, and nothing is compiled beside it
    atol: float | None = None
    rtol: float | None = None
    tolerances: Mapping[str, tuple[float, float]] | None = None
    k: float = K
    runs: int = 1
    mode: Mode | None = None
    dynamic: bool | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    per_kernel: bool = False
    sync: bool = False
    nan: bool = False
    steps: int = 0
    float64: Float64On = "auto"
    memory: int = 0  # bytes of its device that waiting float64 may have; 0: what is free there
    kept: bool = False  # a later session may compare with these outputs
    agree: Callable[[bool], bool] = bool  # whether any rank wants a run whose collectives all ranks must begin
    on_side: Callable[[str], None] | None = None
    on_result: Callable[[DiffReport], None] | None = None

    @property
    def chosen_mode(self) -> Mode:
        """The mode that is set, or the one that the other settings imply."""
        if self.reference in FLOAT64:  # there is no third side to be better than
            return "tolerance"
        plain = self.atol is not None or self.rtol is not None
        return self.mode or ("tolerance" if plain else "float64")

    @property
    def may_differentiate(self) -> bool:
        """Whether gradients are compared where outputs require them, or, for a session's outputs, where it has some."""
        if isinstance(self.reference, SavedOutputs):
            return self.backward_if_recorded and any(name.startswith("grad(") for name in self.reference)
        return self.backward_if_recorded and not differentiates(self.model)

    def check(self) -> None:
        """Raises BadInput for invalid settings."""
        if self.mode is not None and self.mode not in get_args(Mode):
            raise BadInput(f"there is no mode {self.mode!r}", hint=f"use one of {', '.join(get_args(Mode))}")
        if self.float64 not in get_args(Float64On):
            hint = f"use one of {', '.join(get_args(Float64On))}"
            raise BadInput(f"float64 cannot be computed on {self.float64!r}", hint=hint)
        if self.runs < 1:
            raise BadInput(f"the test cannot run {self.runs} times", hint="runs is 1 or more")
        if self.steps < 0:
            raise BadInput(f"a training cannot have {self.steps} steps", hint="steps is 0 (none) or more")
        self._check_numbers()
        if self.test in FLOAT64:
            raise BadInput("float64 cannot be the test side", hint='give it as the reference: reference="float64"')
        for side in (self.reference, self.test):
            if isinstance(side, torch.nn.Module):
                raise BadInput(
                    "a model was passed where a backend belongs", hint="compare two models with compare_tensors"
                )

    def _check_numbers(self) -> None:
        if not 1 <= self.k < inf:
            raise BadInput(
                f"k is {self.k}", hint="k is 1 or more: the test may be as far from float64 as the reference is"
            )
        for name, value in (("atol", self.atol), ("rtol", self.rtol)):
            if value is not None:
                tolerance(name, value)
        for name, own in (self.tolerances or {}).items():
            if not isinstance(own, (tuple, list)) or len(own) != 2:
                raise BadInput(f"the tolerances of {name} are {own!r}", hint="give its (atol, rtol)")
            for kind, value in zip(("atol", "rtol"), own, strict=True):
                tolerance(f"the {kind} of {name}", value)


def name_of(backend: Backend | SavedOutputs) -> str:
    """The name of this side in reports."""
    if isinstance(backend, str):
        return backend
    if isinstance(backend, backends.TargetBackend):
        return backend.backend.name
    return str(getattr(backend, "__name__", type(backend).__name__))


def compile_backend(backend: Backend) -> Backend:
    """The backend for torch.compile; idbg's own check no rules here."""
    if not isinstance(backend, str) or backend == "inductor":
        return backend
    return backends.backend(backend, strict=False, constraints=())
