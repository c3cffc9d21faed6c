"""Load and run the user's program.

A program is a file or module with a function `program()`, or any script that calls torch.compile.
"""

import dis
import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import cast

import torch

from idbg.config.program_function import defines_function, file_of
from idbg.engine.capture.run import RunCapture, phase
from idbg.engine.compat import dynamo
from idbg.engine.compat.torch_types import tree_leaves, tree_map
from idbg.engine.failures.owners import chain
from idbg.engine.program.environment import as_main, state_restored
from idbg.engine.program.main_file import status_of
from idbg.engine.program.script import run_script
from idbg.engine.program.target import target_settings
from idbg.engine.program.torch_compile import (
    BeforeCall,
    CompileCalls,
    CurrentBackend,
    ProgramCall,
    torch_compile_replaced,
)
from idbg.schema import events
from idbg.schema.errors import ProgramError, exception_text, spelled
from idbg.schema.programs import Program, Target

_CALLS = {"LOAD_ATTR", "LOAD_METHOD"}
_OF_AUTOGRAD = ("torch/autograd/__init__.py", "torch/_tensor.py")


def differentiates(model: object) -> bool:
    """Whether the function itself (or a module's forward) calls `.backward()`. Functions that it calls are not
    searched: if they differentiate, torch's error shows it (`failed_to_differentiate`).
    """
    while isinstance(model, partial):
        model = model.func
    call = model.forward if isinstance(model, torch.nn.Module) else model
    code = getattr(getattr(call, "__func__", call), "__code__", None)
    return isinstance(code, CodeType) and any(
        step.opname in _CALLS and step.argval == "backward"
        for each in _codes(code)
        for step in dis.get_instructions(each)
    )


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes(const)


def failed_to_differentiate(error: BaseException | None) -> bool:
    """Whether torch refused to differentiate because no gradients were recorded: the program itself calls backward."""
    if error is None:
        return False
    return any("does not require grad" in exception_text(link) and _in_autograd(link) for link in chain(error))


def _in_autograd(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.replace("\\", "/").endswith(_OF_AUTOGRAD):
            return True
        trace = trace.tb_next
    return False


Model = Callable[..., object]
Loss = Callable[..., torch.Tensor]  # of what the model gives: one number


@dataclass(frozen=True)
class Workload:
    """What `program()` returned: a callable, its arguments, and a loss if there is a backward to compile.

    `grad`: it runs with gradients recorded even without a loss. `compiled`: what the program itself compiled it to.
    """

    model: Model
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    loss: Loss | None = None
    grad: bool = False
    compiled: Model | None = None


Compare = Callable[[Workload, str, CurrentBackend | None], None]
"""Compares a workload with a reference. Also takes the name of the function that the program itself compiles, and the
backend that its torch.compile was given.
"""


Later = Callable[[Workload, ProgramCall], None]
"""Compares a later call of a function that a script compiles, if it is its turn."""


class Programs:
    """Runs one program, and keeps a `program()`'s model and inputs while none of its files changes.

    What a program does to its process (imports, registrations, torch's settings) cannot be undone: any other program
    needs a new process (`is_spent`).
    """

    def __init__(self, arguments: Mapping[str, object] | None = None) -> None:
        """`arguments` are arguments for a `program()` that takes any of them."""
        self._arguments = dict(arguments or {})
        self._program: Program | None = None
        self._device = ""
        self._workload: Workload | None = None
        self._files: dict[str, int] = {}

    def is_spent(self, program: Program, device: str) -> bool:
        """Whether this process has run something that could affect this program."""
        return self._program is not None and not self._holds(program, device)

    def run(
        self,
        program: Program,
        target: Target,
        capture: RunCapture,
        compare: Compare | None = None,
        later: Later | None = None,
    ) -> int:
        """Run the program once for the target, or compare it, and return a script's exit status. Raises what the
        program raises, or ProgramError.

        A script's compiled function is compared at its first call, with the arguments of that call; `later` gets the
        other ones.
        """
        calls = CompileCalls()
        code: object = None
        calls_seen = _before_call(compare, later) if compare and not defines_function(program) else None
        with (
            as_main(program),
            state_restored(),
            target_settings(target, _warning(capture)) as reapply,
            torch_compile_replaced(target, calls, calls_seen, reapply),
        ):
            torch.compiler.reset()
            if defines_function(program):
                with phase(capture, "program"):
                    workload = self._load(program, target.device)
                with phase(capture, "run"):
                    compare(workload, "", None) if compare else _run(workload, target)
            else:
                self._program, self._workload = program, None
                code = run_script(program, capture)
        status = status_of(code)
        compiled = capture.frames or capture.children()
        if status and (compare is not None or not compiled):
            raise _ended_itself("the program", code)
        if not compiled:
            raise _compiled_nothing(program, calls.count, target.stance)
        return status

    def _holds(self, program: Program, device: str) -> bool:
        same = (program, device) == (self._program, self._device)
        return self._workload is not None and same and self._files == _stamps(self._files)

    def _load(self, program: Program, device: str) -> Workload:
        if self._workload is not None and self._holds(program, device):
            return self._workload
        self._program, self._device = program, device
        before = set(sys.modules)
        with torch.device(device) if device else nullcontext():  # what a loss closes over is made there too
            workload = _workload(program, self._arguments)
        new = {getattr(module, "__file__", None) or "" for name, module in sys.modules.items() if name not in before}
        self._files = _stamps({str(file_of(program) or ""), *new})
        self._workload = workload = on_device(workload, device)
        return workload


def _warning(capture: RunCapture) -> Callable[[str], None]:
    return lambda text: capture.emit(events.Noted(level="warning", text=text))


def _stamps(files: Iterable[str]) -> dict[str, int]:
    """The modification time of each file, in nanoseconds; 0 if it does not exist."""
    return {file: os.stat(file).st_mtime_ns if os.path.exists(file) else 0 for file in files}


# A file with a program() function


def registers(program: Program, backend: str) -> bool:
    """Whether the program's file may register a backend of this name with torch: it registers one, and contains the
    name.
    """
    path = file_of(program)
    text = path.read_text(errors="replace") if path is not None and path.is_file() else ""
    return "register_backend" in text and re.search(rf"\b{re.escape(backend)}\b", text) is not None


def _workload(program: Program, arguments: Mapping[str, object]) -> Workload:
    """Import the program and call its function with those of the arguments that it takes."""
    name, file = program.name or "program", Path(program.path).name
    module = imported(program)
    function = getattr(module, name, None)
    if not callable(function):
        there = [known for known, value in vars(module).items() if callable(value) and not known.startswith("_")]
        raise ProgramError(f"{file} defines no function {name!r}", hint=f"it has {', '.join(there) or 'none'}")
    try:
        returned = function(**{name: value for name, value in arguments.items() if name in _parameters(function)})
    except SystemExit as error:
        raise _ended_itself(f"{name}() of {file}", error.code) from error
    return checked(returned, f"{name}() of {file}")


def _parameters(function: Callable[..., object]) -> Iterable[str]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # a callable without a signature
        return ()


class _FromSource(SourceFileLoader):
    """Compiles the file at each import: Python would use bytecode of before an edit that keeps second and size."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def imported(program: Program) -> ModuleType:
    """The program's file as a module. Raises what it raises, or ProgramError."""
    if program.module:
        return importlib.import_module(program.path)
    path = Path(program.path).resolve()
    if path.suffix != ".py":
        raise ProgramError(f"{path} is not a Python file", hint="give a file that ends in .py")
    loader = _FromSource(path.stem, str(path))
    spec = cast(ModuleSpec, importlib.util.spec_from_file_location(path.stem, path, loader=loader))
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module
    try:
        loader.exec_module(module)
    except SystemExit as error:
        raise _ended_itself(path.name, error.code) from error
    finally:
        if before is not None:
            sys.modules[path.stem] = before
    return module


def checked(returned: object, where: str) -> Workload:
    """The workload that a program's function returned. Raises ProgramError unless it is (model, args[, kwargs][,
    loss]).
    """
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
    return Workload(model, tuple(args), kwargs, loss, grad=loss is None and differentiates(model))


def _described(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def on_device(workload: Workload, device: str) -> Workload:
    """The workload with its model and inputs on the device; unchanged for ""."""
    if not device:
        return workload

    def moved(value: object) -> object:
        return value.to(device) if isinstance(value, torch.Tensor) else value

    model = workload.model.to(device) if isinstance(workload.model, torch.nn.Module) else workload.model
    args, kwargs = tree_map(moved, workload.args), tree_map(moved, dict(workload.kwargs))
    return Workload(model, args, kwargs, workload.loss, workload.grad)


def _run(workload: Workload, target: Target) -> None:
    """One step: a forward without gradients; or forward, loss and backward if there is a loss; or what the program
    itself calls a step.
    """
    compiled = workload.model
    if not dynamo.is_compiled(compiled):
        compiled = torch.compile(compiled, dynamic=target.dynamic)
    leaves = [leaf for leaf in tree_leaves((workload.args, workload.kwargs)) if isinstance(leaf, torch.Tensor)]
    if isinstance(workload.model, torch.nn.Module):
        leaves += workload.model.parameters()
    # the program is kept: a second run must not add to the first's gradients
    before = [(leaf, leaf.grad) for leaf in leaves if leaf.is_leaf]
    with torch.set_grad_enabled(workload.loss is not None or workload.grad):
        try:
            output = _called(compiled, workload)
            if workload.loss is not None:
                workload.loss(output).backward()  # type: ignore[no-untyped-call]
        finally:
            for leaf, gradient in before:
                leaf.grad = gradient


def _called(compiled: Model, workload: Workload) -> object:
    try:
        return compiled(*workload.args, **workload.kwargs)
    except RuntimeError as error:
        if torch.is_grad_enabled() or not failed_to_differentiate(error):
            raise
    torch.compiler.reset()
    with torch.enable_grad():
        return compiled(*workload.args, **workload.kwargs)


# A script


def _before_call(compare: Compare, later: Later | None) -> BeforeCall:
    def hold(call: ProgramCall) -> None:
        if call.number > 1 and later is None:
            return
        workload = Workload(call.model, call.args, call.kwargs, grad=torch.is_grad_enabled(), compiled=call.compiled)
        if call.number == 1:
            compare(workload, _name(call.model), call.backend)
        elif later is not None:
            later(workload, call)

    return hold


def _name(model: Model) -> str:
    """What users call it: a module by its class, also where they call `module.compile()` or compile its `forward`."""
    owner, name = getattr(model, "__self__", None), getattr(model, "__name__", type(model).__name__)
    if not isinstance(owner, torch.nn.Module):
        return name
    return type(owner).__name__ + ("" if name in ("_call_impl", "forward") else f".{name}")


def _ended_itself(what: str, code: object) -> ProgramError:
    return ProgramError(
        f"{what} ended itself with sys.exit({spelled(code)})",
        hint="see what it printed; arguments for it go after --",
    )


def _compiled_nothing(program: Program, calls: int, stance: str) -> ProgramError:
    name = Path(program.path).name
    if calls and stance not in ("", "default"):
        hint = "it may say that the first call runs in eager, or all: leave it out, or call more often in a script"
        return ProgramError(f"{name} ran to its end, and with the stance {stance} nothing was compiled", hint=hint)
    if calls:
        return ProgramError(
            f"{name} ran to its end, but nothing that it gave to torch.compile was ever called or could be compiled",
            hint="call the compiled function once with real inputs; the log shows graph breaks",
        )
    return ProgramError(
        f"{name} ran to its end, but never called torch.compile",
        hint="define program() that returns a model and its inputs, or call torch.compile in it",
    )
