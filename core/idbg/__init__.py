"""What can a user's own Python say to the debugger? `import idbg` loads none of it: each name loads what it needs."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from idbg.accelerators.adapter import AcceleratorAdapter as AcceleratorAdapter
    from idbg.accelerators.adapter import Capabilities as Capabilities
    from idbg.accelerators.adapter import CompilationResult as CompilationResult
    from idbg.accelerators.adapter import CompilationStatus as CompilationStatus
    from idbg.accelerators.model import Accelerator as Accelerator
    from idbg.api import Session as Session
    from idbg.api import check as check
    from idbg.api import report as report
    from idbg.api import run_program as run_program
    from idbg.engine.backends import aot_backend as aot_backend
    from idbg.engine.backends import aot_mock_backend as aot_mock_backend
    from idbg.engine.backends import backend as backend
    from idbg.engine.backends import mock_backend as mock_backend
    from idbg.engine.kerneldiff.api import quick_check as quick_check
    from idbg.engine.kerneldiff.kernels.user_reference import reference as reference
    from idbg.engine.kerneldiff.tensors.compare import compare_tensors as compare_tensors
    from idbg.guard_inspector import GuardInspector as GuardInspector
    from idbg.kernel_diff import KernelDiff as KernelDiff
    from idbg.schema.decisions.dynamo import GuardReport as GuardReport
    from idbg.schema.errors import ConstraintViolation as ConstraintViolation
    from idbg.schema.errors import IdbgError as IdbgError
    from idbg.stages import StageReader as StageReader
    from idbg.stages import StageText as StageText
    from idbg.stages import stage as stage

__version__ = "0.1.0"

# name -> the module that has it
_HOMES = {
    "Accelerator": "idbg.accelerators.model",
    "AcceleratorAdapter": "idbg.accelerators.adapter",
    "Capabilities": "idbg.accelerators.adapter",
    "CompilationResult": "idbg.accelerators.adapter",
    "CompilationStatus": "idbg.accelerators.adapter",
    "ConstraintViolation": "idbg.schema.errors",
    "GuardInspector": "idbg.guard_inspector",
    "GuardReport": "idbg.schema.decisions.dynamo",
    "IdbgError": "idbg.schema.errors",
    "KernelDiff": "idbg.kernel_diff",
    "Session": "idbg.api",
    "StageReader": "idbg.stages",
    "StageText": "idbg.stages",
    "aot_backend": "idbg.engine.backends",
    "aot_mock_backend": "idbg.engine.backends",
    "backend": "idbg.engine.backends",
    "check": "idbg.api",
    "compare_tensors": "idbg.engine.kerneldiff.tensors.compare",
    "mock_backend": "idbg.engine.backends",
    "quick_check": "idbg.engine.kerneldiff.api",
    "reference": "idbg.engine.kerneldiff.kernels.user_reference",
    "report": "idbg.api",
    "run_program": "idbg.api",
    "stage": "idbg.stages",
}

__all__ = [  # noqa: RUF022
    "Accelerator",
    "AcceleratorAdapter",
    "Capabilities",
    "CompilationResult",
    "CompilationStatus",
    "ConstraintViolation",
    "GuardInspector",
    "GuardReport",
    "IdbgError",
    "KernelDiff",
    "Session",
    "StageReader",
    "StageText",
    "aot_backend",
    "aot_mock_backend",
    "backend",
    "check",
    "compare_tensors",
    "mock_backend",
    "quick_check",
    "reference",
    "report",
    "run_program",
    "stage",
    "__version__",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'idbg' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
