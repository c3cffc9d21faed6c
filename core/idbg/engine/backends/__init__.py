"""Find a backend by name, and prepare it for torch.compile.

A backend is one class (`name`, `checks`, `compile`), or a third party's under the entry point
`idbg.backends`: such a class, or an `idbg.AcceleratorAdapter`. Every backend that torch knows by name works too.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import cast

from msgspec.structs import replace
from torch.fx import GraphModule

from idbg import plugins
from idbg.accelerators import adapter as adapters
from idbg.accelerators import registry
from idbg.accelerators.adapter import AcceleratorAdapter
from idbg.accelerators.parse import parse, unparse
from idbg.config.settings import default_accelerator, strict_from
from idbg.constraints import Constraint
from idbg.engine.backends.adapter import AdapterBackend
from idbg.engine.backends.aoti import Aoti
from idbg.engine.backends.base import Backend, Job, TargetBackend
from idbg.engine.backends.mock import Mock
from idbg.engine.backends.program_backend import is_own, program_backend
from idbg.engine.backends.torch_backends import Aot, Eager, Inductor, NamedBackend
from idbg.engine.compat import dynamo
from idbg.engine.compat.lowering import Compiled
from idbg.schema.errors import BadInput, typed_text
from idbg.schema.events import KnownBackend

__all__ = [
    "Backend",
    "Job",
    "TargetBackend",
    "aot_backend",
    "aot_mock_backend",
    "backend",
    "find",
    "is_own",
    "known",
    "mock_backend",
    "names",
    "of_program",
    "takes_options",
]

OURS: Mapping[str, type[Backend]] = {kind.name: kind for kind in (Eager, Mock, Aot, Inductor, Aoti)}


def find(name: str, registers: Callable[[str], bool] | None = None) -> Backend:
    """The backend of this name: ours, a plug-in's, or torch's. Raises BadInput that lists the known names.

    `registers` tells whether the program that will run may register the name with torch.
    """
    if name in OURS:
        return OURS[name]()
    if name in plugins.names(adapters.GROUP):
        return _of_others(name)
    if name not in dynamo.backend_names() and not (registers and registers(name)):
        raise BadInput(f"there is no backend {name!r}", hint=f"use one of {', '.join(names())}")
    return NamedBackend(name)


def of_program(arguments: Mapping[str, object], *, checks: bool) -> Backend:
    """The backend that the program itself names in these arguments of torch.compile. Raises BadInput."""
    name = arguments["backend"]
    by_us = isinstance(name, str) and name in plugins.names(adapters.GROUP) and name not in dynamo.backend_names()
    return _of_others(str(name)) if by_us else program_backend(arguments, checks=checks)


def takes_options(backend: Backend) -> bool:
    """Whether options change how it compiles."""
    if isinstance(backend, NamedBackend):
        return dynamo.takes_options(backend.function)
    return not isinstance(backend, (Eager, Mock, AdapterBackend))


def _of_others(name: str) -> Backend:
    problem = adapters.broken().get(name)
    if problem is None:
        kind = cast("type[Backend | AcceleratorAdapter]", plugins.load(adapters.GROUP).values[name])
        try:
            made = kind()
            return AdapterBackend(made, name) if isinstance(made, AcceleratorAdapter) else made
        # Broad on purpose: a plug-in is code of others, and may need a driver or a device that is not here.
        except (Exception, SystemExit) as error:
            problem = typed_text(error)
    raise BadInput(f"the backend {name} cannot be used: {problem}", hint="fix or uninstall its package")


def known() -> tuple[KnownBackend, ...]:
    """All backends of other packages: first those for idbg, with the error of a broken one, then those for torch."""
    broken, loaded = adapters.broken(), plugins.load(adapters.GROUP)
    others = [
        KnownBackend(name, error=" ".join(broken[name].split()))
        if name in broken
        else KnownBackend(name, (loaded.values[name].__doc__ or "").strip().partition("\n")[0])
        for name in plugins.names(adapters.GROUP)
    ]
    taken = {*OURS, *(other.name for other in others)}
    dynamos = [name for name in plugins.names("torch_dynamo_backends") if name not in (*taken, "idbg_mock")]
    packages = [KnownBackend(name, "a backend of torch.compile: no rules are checked") for name in dynamos]
    taken |= {*dynamos, "idbg_mock"}
    torchs = [KnownBackend(name, "torch's own: no rules are checked") for name in names() if name not in taken]
    return (
        *others,
        *packages,
        *(one for one in torchs if not one.name.endswith(("_TESTING_ONLY", "minifier_backend"))),
    )


def names() -> list[str]:
    """All names: ours first, then plug-ins', then torch's."""
    ours = [*OURS, *plugins.names(adapters.GROUP)]
    return ours + [name for name in dynamo.backend_names() if name not in ours and not name.startswith("idbg_")]


def backend(
    name: str | AcceleratorAdapter = "aot",
    *,
    strict: bool | None = None,
    accelerator: str | Path | None = None,
    constraints: Iterable[Constraint] | None = None,
    repros: str | Path = "debug_artifacts/repros",
) -> TargetBackend:
    """A backend for `torch.compile(model, backend=...)`.

    `name` may also be an adapter. `accelerator` is a preset's name, a TOML file, or its text in several lines. By
    default, the rules are the backend's own (its package's accelerator, or its adapter's capabilities), else the preset
    "mock". `constraints`, if given, replace the rules (empty: no checks). `strict` defaults to MOCK_STRICT (on): a
    `reject` violation raises ConstraintViolation, which lists all violations and the repro written into `repros`.
    Without it they are collected in `.violations` and the program runs. Raises AcceleratorError, SettingsError,
    BadInput.
    """
    chosen = AdapterBackend(name) if isinstance(name, AcceleratorAdapter) else find(name)
    own = isinstance(name, AcceleratorAdapter) or default_accelerator(name) != name
    if accelerator is None and own and isinstance(chosen, AdapterBackend):
        rules = chosen.adapter.capabilities.accelerator(chosen.name)
        text = unparse(rules)
    else:
        # a backend of ours that is named in Python comes with its rules
        named = str(accelerator or (chosen.name if default_accelerator(chosen.name) == chosen.name else "mock"))
        text = named if "\n" in named else registry.find(named)[0]
        text = registry.with_mock_variables(text, os.environ) if named == "mock" else text
        rules = parse(text)
    if constraints is not None:
        rules = replace(rules, description="constraints given in Python", rules=tuple(constraints))
        text = unparse(rules)
    if strict is None:
        strict = strict_from(os.environ) is not False
    return TargetBackend(chosen, rules, strict, repros=Path(repros), rules=text)


def aot_backend(
    *, strict: bool | None = None, accelerator: str | Path = "mock", constraints: Iterable[Constraint] | None = None
) -> TargetBackend:
    """`backend("aot", ...)`: rules checked on every graph, then Inductor."""
    return backend("aot", strict=strict, accelerator=accelerator, constraints=constraints)


aot_mock_backend = aot_backend  # the name that users of the earlier system know


def mock_backend(gm: GraphModule, inputs: list[object], **_: object) -> Compiled:
    """The mock accelerator as a plain backend: `torch.compile(model, backend=mock_backend)`, configured by MOCK_*.

    With MOCK_STRICT=0 violations are logged as warnings of the logger "idbg".
    """
    return backend("mock")(gm, inputs)
