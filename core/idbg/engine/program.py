"""How is the user's program loaded and run, under the target that the session chose?

A program is a file or module with a function `program()`, or any script that calls torch.compile. Either runs as it
would by itself: its own `sys.argv`, `__main__`, working folder and import path; torch's and Python's global state
is put back afterwards.
"""

import ast
import importlib.util
import linecache
import os
import random
import runpy
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils._pytree import tree_map

from idbg.engine import compat
from idbg.engine.backends.base import TargetBackend
from idbg.engine.capture.run import RunCapture, phase
from idbg.errors import ProgramError
from idbg.records import Program, Target

Model = Callable[..., Any]


@dataclass(frozen=True)
class Workload:
    """What `program()` returned: a callable, its arguments, and a loss if there is a backward to compile."""

    model: Model
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    loss: Model | None = None


class Programs:
    """Runs programs, and holds the last `program()`'s model and inputs for as long as none of its files changes."""

    def __init__(self) -> None:
        self._program: Program | None = None
        self._device = ""
        self._workload: Workload | None = None
        self._files: dict[str, int] = {}

    def run(self, program: Program, target: Target, backend: TargetBackend, capture: RunCapture) -> None:
        """Run the program once for the target. Raises what the program raises, or ProgramError."""
        calls = _Calls()
        with _as_main(program) as loaded, _state_restored(), _torch_compile_replaced(target, backend, calls):
            torch._dynamo.reset()
            if _defines_function(program):
                with phase(capture, "program"):
                    workload = self._load(program, target.device, loaded)
                with phase(capture, "run"):
                    _run(workload, target)
            else:
                _run_script(program, capture)
        if not capture.frames:
            raise _compiled_nothing(program, calls.count)

    def _load(self, program: Program, device: str, loaded: "LoadedFiles") -> Workload:
        held = self._workload
        if (
            held is not None
            and (program, device) == (self._program, self._device)
            and self._files == _stamps(self._files)
        ):
            return held
        self._workload = None  # let the old model go before the new one is built
        with torch.device(device) if device else nullcontext():  # what a loss closes over is made there too
            workload = _workload(program)
        self._workload = workload = _on_device(workload, device)
        self._program, self._device, self._files = program, device, _stamps(loaded())
        return workload


@dataclass
class _Calls:
    count: int = 0


# A file with a program() function


def _defines_function(program: Program) -> bool:
    name = program.name or "program"
    path = _file_of(program)
    if path is None:
        return bool(program.name)
    tree = ast.parse(path.read_bytes(), filename=str(path))
    found = any(isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name for node in tree.body)
    if program.name and not found:
        defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        raise ProgramError(
            f"{path.name} defines no function {program.name!r}", hint=f"it defines {', '.join(defined) or 'none'}"
        )
    return found


def _file_of(program: Program) -> Path | None:
    if not program.module:
        return Path(program.path)
    try:
        spec = importlib.util.find_spec(program.path)
    except (ModuleNotFoundError, ValueError) as error:
        raise ProgramError(
            f"there is no module {program.path}: {error}", hint="run from the folder that holds the package"
        ) from error
    if spec is None or spec.origin is None:
        raise ProgramError(f"there is no module {program.path}", hint="run from the folder that holds the package")
    return Path(spec.origin) if spec.origin.endswith(".py") else None


def _workload(program: Program) -> Workload:
    """Import the program and call its function."""
    name = program.name or "program"
    function = getattr(_imported(program), name)
    return _checked(function(), f"{name}() of {Path(program.path).name}")


def _imported(program: Program) -> ModuleType:
    if program.module:
        return importlib.import_module(program.path)
    path = Path(program.path).resolve()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ProgramError(f"{path} is not a Python file", hint="give a file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    finally:
        if before is not None:
            sys.modules[path.stem] = before
    return module


def _checked(returned: object, where: str) -> Workload:
    """Raises ProgramError unless it is (model, args[, kwargs][, loss])."""
    hint = "return model, args | model, args, kwargs | model, args, kwargs, loss; args is a tuple of the model's inputs"
    if not isinstance(returned, tuple) or not 1 <= len(returned) <= 4:
        raise ProgramError(f"{where} returned {_described(returned)}, not a model and its inputs", hint=hint)
    model, *rest = returned
    if not callable(model):
        raise ProgramError(
            f"{where} returned {_described(model)} where the model belongs, which cannot be called", hint=hint
        )
    loss = rest.pop() if rest and callable(rest[-1]) and not isinstance(rest[-1], torch.Tensor) else None
    args = rest[0] if rest else ()
    kwargs = rest[1] if len(rest) > 1 else {}
    if isinstance(args, dict) and len(rest) == 1:
        args, kwargs = (), args
    if not isinstance(args, (tuple, list)):
        args = (args,)
    if not isinstance(kwargs, dict) or len(rest) > 2:
        raise ProgramError(
            f"{where} returned {_described(rest[-1])} where keyword arguments or a loss belong", hint=hint
        )
    original: Model = getattr(model, "_orig_mod", None) or model
    return Workload(original, tuple(args), kwargs, loss)


def _described(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _on_device(workload: Workload, device: str) -> Workload:
    if not device:
        return workload

    def moved(value: object) -> object:
        return value.to(device) if isinstance(value, torch.Tensor) else value

    model = workload.model.to(device) if isinstance(workload.model, torch.nn.Module) else workload.model
    return Workload(model, tree_map(moved, workload.args), tree_map(moved, dict(workload.kwargs)), workload.loss)


def _run(workload: Workload, target: Target) -> None:
    """One step: forward without gradients, or forward, loss and backward where there is a loss."""
    compiled = torch.compile(workload.model, dynamic=target.dynamic)
    parameters = list(workload.model.parameters()) if isinstance(workload.model, torch.nn.Module) else []
    with torch.set_grad_enabled(workload.loss is not None):
        output = compiled(*workload.args, **workload.kwargs)
        if workload.loss is None:
            return
        before = {parameter: parameter.grad for parameter in parameters}
        try:
            workload.loss(output).backward()
        finally:
            for parameter, gradient in before.items():
                parameter.grad = gradient  # the program is held: a second run must not add to the first's gradients


# A script


def _run_script(program: Program, capture: RunCapture) -> None:
    with phase(capture, "run"):
        try:
            if program.module:
                runpy.run_module(program.path, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(program.path, run_name="__main__")
        except SystemExit as error:
            if error.code not in (None, 0):
                raise ProgramError(
                    f"the program ended itself with sys.exit({error.code!r})",
                    hint="see what it printed; arguments for it go after --",
                ) from error


def _compiled_nothing(program: Program, calls: int) -> ProgramError:
    name = Path(program.path).name
    if calls:
        return ProgramError(
            f"{name} ran to its end, but nothing that it gave to torch.compile was ever called or could be compiled",
            hint="call the compiled function once with real inputs; the log shows graph breaks",
        )
    return ProgramError(
        f"{name} ran to its end, but never called torch.compile",
        hint="define program() that returns a model and its inputs, or call torch.compile in it",
    )


# The world the program runs in


LoadedFiles = Callable[[], Iterable[str]]


def _stamps(files: Iterable[str]) -> dict[str, int]:
    """When each file was last changed, in nanoseconds; 0 for one that is gone."""
    return {file: os.stat(file).st_mtime_ns if os.path.exists(file) else 0 for file in files}


@contextmanager
def _as_main(program: Program) -> Iterator[LoadedFiles]:
    """argv, working folder and import path as the program expects them; its own modules are loaded anew each time.

    Yields a function that tells the files of the user's own that were loaded so far.
    """
    argv, path, folder, modules = sys.argv, list(sys.path), os.getcwd(), dict(sys.modules)
    cwd = program.cwd or folder
    os.chdir(cwd)
    sys.argv = [program.path, *program.argv]
    sys.path[:0] = [cwd if program.module else str(Path(program.path).resolve().parent)]
    linecache.checkcache()
    importlib.invalidate_caches()

    def new() -> dict[str, str]:
        folders = (Path(cwd), Path(program.path).resolve().parent)
        found = {
            name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items() if name not in modules
        }
        return {name: file for name, file in found.items() if _is_the_users(file, *folders)}

    try:
        yield lambda: [str(_file_of(program) or ""), *new().values()]
    finally:
        sys.argv, sys.path[:] = argv, path
        os.chdir(folder)
        for name in new():
            del sys.modules[name]
        sys.modules["__main__"] = modules["__main__"]


def _is_the_users(file: str, *folders: Path) -> bool:
    return bool(file) and "site-packages" not in file and any(Path(file).is_relative_to(folder) for folder in folders)


@contextmanager
def _state_restored() -> Iterator[None]:
    """Random generators, default dtype, grad mode and matmul precision as they were."""
    python, torch_state = random.getstate(), torch.get_rng_state()
    cuda = torch.cuda.get_rng_state_all() if compat.cuda_in_use() else None
    dtype, grad, precision = torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_float32_matmul_precision()
    numpy = sys.modules.get("numpy")
    numpy_state = numpy.random.get_state() if numpy else None
    try:
        yield
    finally:
        random.setstate(python)
        torch.set_rng_state(torch_state)
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)
        if numpy is not None and numpy_state is not None:
            numpy.random.set_state(numpy_state)
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(grad)
        torch.set_float32_matmul_precision(precision)


@contextmanager
def _torch_compile_replaced(target: Target, backend: TargetBackend, calls: _Calls) -> Iterator[None]:
    """While it lasts, every torch.compile compiles for the target, whatever backend it asks for.

    Its mode and options still hold where the target lowers through Inductor.
    """
    original = torch.compile
    known = compat.inductor_options()
    made: dict[str, TargetBackend] = {}

    def compile_for_target(model: Any = None, *, disable: bool = False, **kwargs: Any) -> Any:
        if model is None:
            return lambda function: compile_for_target(function, disable=disable, **kwargs)
        if disable:
            return original(model, disable=True, **kwargs)
        calls.count += 1
        dynamic = target.dynamic if target.dynamic is not None else kwargs.pop("dynamic", None)
        kwargs.pop("dynamic", None)
        kwargs.pop("backend", None)
        asked = compat.mode_options(kwargs.pop("mode", None), dynamic) | dict(kwargs.pop("options", None) or {})
        options = {name.replace("-", "_"): value for name, value in asked.items() if name in known} | target.options
        key = repr(sorted(options.items()))
        chosen = made.setdefault(
            key, backend.with_options(options)
        )  # one object for equal options, or Dynamo compiles again
        return original(model, backend=chosen, dynamic=dynamic, **kwargs)

    torch.compile = compile_for_target
    try:
        yield
    finally:
        torch.compile = original
