"""Which backends are there, and how does one get ready to be handed to torch.compile?

A backend is one file here with one class (`name`, `checks`, `compile`), or a third party's under the entry point
`idbg.backends`; every name that torch knows works too.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

from torch.fx import GraphModule

from idbg import accelerator as accelerators
from idbg import plugins
from idbg.accelerator import Accelerator
from idbg.constraints import Constraint
from idbg.engine import compat
from idbg.engine.backends.aot import Aot
from idbg.engine.backends.base import Backend, Job, TargetBackend
from idbg.engine.backends.eager import Eager
from idbg.engine.backends.inductor import Inductor
from idbg.engine.backends.mock import Mock
from idbg.engine.backends.named import Named
from idbg.engine.compat import Compiled
from idbg.errors import BadInput
from idbg.settings import strict_from

__all__ = [
    "Backend",
    "Job",
    "TargetBackend",
    "aot_backend",
    "aot_mock_backend",
    "backend",
    "find",
    "mock_backend",
    "names",
]

OURS: Mapping[str, type[Backend]] = {kind.name: kind for kind in (Eager, Mock, Aot, Inductor)}


def find(name: str) -> Backend:
    """The backend of this name: ours, a plug-in's, or torch's. Raises BadInput with the names that there are."""
    if name in OURS:
        return OURS[name]()
    loaded = plugins.load("idbg.backends")
    if name in loaded.broken:
        raise BadInput(
            f"the backend {name} cannot be used: {loaded.broken[name]}", hint="mend or uninstall its package"
        )
    if name in loaded.found:
        return cast("type[Backend]", loaded.found[name])()
    if name not in compat.backend_names():
        raise BadInput(f"there is no backend {name!r}", hint=f"use one of {', '.join(names())}")
    return Named(name)


def names() -> list[str]:
    """Ours first, then plug-ins', then torch's."""
    ours = [*OURS, *plugins.names("idbg.backends")]
    return ours + [name for name in compat.backend_names() if name not in ours and not name.startswith("idbg_")]


def backend(
    name: str = "aot",
    *,
    strict: bool | None = None,
    accelerator: str | Path = "mock",
    constraints: Iterable[Constraint] | None = None,
    repros: str | Path = "debug_artifacts/repros",
) -> TargetBackend:
    """A backend for `torch.compile(model, backend=...)`.

    `accelerator` is a preset's name or a TOML file; `constraints`, where given, are the rules instead (none: no
    checks). `strict` is MOCK_STRICT's (default on) where it is not given: a `reject` violation raises
    ConstraintViolation, which names them all and the repro written into `repros`. Without it they are kept in
    `.violations` and the program runs. Raises AcceleratorError, SettingsError, BadInput.
    """
    text, _ = accelerators.find(str(accelerator))
    text = accelerators.from_environment(text, os.environ) if accelerator == "mock" else text
    rules = accelerators.parse(text)
    if constraints is not None:
        rules = Accelerator(name=rules.name, description="constraints given in Python", rules=tuple(constraints))
        text = accelerators.unparse(rules)
    if strict is None:
        strict = strict_from(os.environ) is not False
    return TargetBackend(find(name), rules, strict, repros=Path(repros), rules=text)


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
