"""Look up Dynamo's backends, and observe its frames: compiled, skipped, or run in eager for an error."""

import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch

from idbg.analysis.decisions.break_report import whose
from idbg.engine.compat import stages
from idbg.engine.compat.hooks import Feature, hooked, missing
from idbg.engine.compat.lowering import Compiler
from idbg.engine.compat.names import instead_of, internals
from idbg.schema.graphs import CompileCall


def lookup_backend(name: str) -> Compiler:
    """The backend that torch knows by this name. Raises torch._dynamo.exc.InvalidBackend."""
    return cast("Compiler", internals._dynamo.backends.registry.lookup_backend(name))


def backend_names() -> list[str]:
    """Every backend that torch knows by name, also those of tests, sorted."""
    return sorted(internals._dynamo.list_backends(None))


@instead_of({})
def own_substitutes() -> dict[CodeType, CodeType]:
    """The functions in whose place Dynamo traces one of the program's (`substitute_in_graph`), and that one."""
    handlers = internals._dynamo.variables.PolyfilledFunctionVariable._get_polyfill_handlers()
    functions = ((each, inspect.unwrap(other)) for each, other in handlers.items() if inspect.isfunction(each))
    pairs = [(each.__code__, other.__code__) for each, other in functions]
    return {code: other for code, other in pairs if code is not other and not stages.is_torchs(other.co_filename)}


def takes_options(backend: Compiler) -> bool:
    """Whether torch.compile(options=...) reaches this backend."""
    if isinstance(backend, internals._dynamo.backends.common.AotAutograd):
        return False  # it logs that it ignores them
    try:
        parameters = inspect.signature(backend).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(each.name == "options" or each.kind is each.VAR_KEYWORD for each in parameters)


def is_compiled(model: object) -> bool:
    """Whether it is a result of torch.compile."""
    return isinstance(model, internals._dynamo.OptimizedModule) or hasattr(model, "_torchdynamo_orig_callable")


def nothing_compiled() -> AbstractContextManager[object]:
    """While it lasts, compiled functions run in eager."""
    return cast("AbstractContextManager[object]", torch.compiler.set_stance("force_eager"))


convert_frame: Any = internals._dynamo.convert_frame

_SKIPFILE = "frame is in the Dynamo skipfiles list"
_NO_TENSOR = "no tensor-related objects found in frame"
_UNKNOWN = ""  # torch gives no reason
_MAX_CALLERS = 1000


@contextmanager
def observe_code(made: Callable[[CodeType, CodeType], None]) -> Iterator[None]:
    """While it lasts, `made` gets each code that Dynamo compiles, and the code that it becomes."""

    def hook(code: CodeType, new_code: CodeType) -> None:
        made(code, new_code)

    handle = convert_frame.register_bytecode_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def caller(compiled: Mapping[int, str]) -> str:
    """The entry of `compiled` for the innermost running code, by its id, below a compile; "" for none."""
    frame: FrameType | None = sys._getframe()
    for _ in range(_MAX_CALLERS):
        if frame is None:
            break
        if name := compiled.get(id(frame.f_code)):
            return name
        frame = frame.f_back
    return ""


@dataclass(frozen=True)
class Compiling:
    """The frame that Dynamo compiles now: the torch.compile in which that is done, and the class of a method's object.
    `is_wrapper`: the frame is torch's own, around a module or function that Dynamo could not compile by itself.
    """

    call: CompileCall | None
    owner: str = ""
    is_wrapper: bool = False


WRAPPER = "inner"
"""The name of torch's function around what Dynamo could not compile by itself."""
_LOCAL_NAME = re.compile(r".*<locals>\.")
_places: WeakKeyDictionary[object, tuple[str, int]] = WeakKeyDictionary()


def note_call(compiled: object) -> None:
    """Remember the line of the user's that is running as that where torch.compile made this."""
    context = compiled.dynamo_ctx if isinstance(compiled, internals._dynamo.OptimizedModule) else _context(compiled)
    if context is None:
        return
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and whose(frame.f_code.co_filename) != "user":
        frame = frame.f_back
    if frame is not None:
        _places[context] = frame.f_code.co_filename, frame.f_lineno


def _context(compiled: object) -> object:
    """The object of torch's that made this compiled function."""
    names = getattr(getattr(compiled, "__code__", None), "co_freevars", ())
    closure = getattr(compiled, "__closure__", None) or ()
    return next((cell.cell_contents for name, cell in zip(names, closure, strict=False) if name == "self"), None)


def code_compiled() -> CodeType | None:
    """The code that Dynamo compiles on this thread; None outside of a compile."""
    return getattr(_compiled_frame(), "f_code", None)


def _compiled_frame() -> object:
    """The frame that Dynamo compiles, as its functions pass it on."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == _file_of("torch._dynamo.convert_frame"):
            seen: object = frame.f_locals.get("frame")
            if hasattr(seen, "f_code"):
                return seen
        frame = frame.f_back
    return None


def compiling() -> Compiling | None:
    """What this thread compiles, from the stack of torch's functions; None where they are not as expected."""
    seen = _compiled_frame()
    code = getattr(seen, "f_code", None)
    owner = _owner(code, getattr(seen, "f_locals", {})) if code is not None else ""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "compile_wrapper" and frame.f_code.co_filename == _file_of(
            "torch._dynamo.eval_frame"
        ):
            found = frame.f_locals
            name, is_module = _name_of(found.get("fn"))
            call = CompileCall(name, *_places.get(found.get("self"), ("", 0)), is_module)
            wraps = code is not None and code.co_filename == _wrappers() and WRAPPER in code.co_name
            return Compiling(call, owner, wraps)
        frame = frame.f_back
    return Compiling(None, owner) if code is not None else None


def _file_of(module: str) -> str:
    """The file of a module of torch's that is imported; "" where there is none."""
    return getattr(sys.modules.get(module), "__file__", None) or ""


def _wrappers() -> str:
    """Torch's file of functions around what Dynamo could not compile by itself."""
    return _file_of("torch._dynamo.external_utils")


def _owner(code: CodeType, values: Mapping[str, object]) -> str:
    """The class of the object whose method this is; "" of a function."""
    if "." not in _LOCAL_NAME.sub("", code.co_qualname) or not code.co_argcount:
        return ""
    first = values.get(code.co_varnames[0])
    return type(first).__name__ if isinstance(getattr(type(first), code.co_name, None), FunctionType) else ""


def _name_of(function: object) -> tuple[str, bool]:
    """What torch.compile got, by name, and whether it is a module, which has its class's."""
    while isinstance(function, FunctionType) and function.__code__.co_filename == _wrappers():
        function = inspect.getattr_static(function, "__wrapped__", None)
    function = function.func if isinstance(function, functools.partial) else function
    if isinstance(owner := getattr(function, "__self__", None), torch.nn.Module):
        function = owner
    if isinstance(function, torch.nn.Module):
        return type(function).__name__, True
    name = getattr(function, "__qualname__" if isinstance(function, FunctionType | MethodType) else "__name__", None)
    return _LOCAL_NAME.sub("", name) if isinstance(name, str) else type(function).__name__, False


Compile = Callable[[], object]
"""Compiles one frame, or finds that it is to be skipped."""


def observe_compiles(
    feature: Feature, compiled: Callable[[CodeType, Compile], object], reset: Callable[[], None]
) -> AbstractContextManager[None]:
    """While it lasts, `compiled` compiles each frame that Dynamo has no code for, and `reset` is called before all code
    is cleared.
    """

    def convert(call: Callable[..., Any], wrapper: object, frame: Any, *args: object) -> object:
        return compiled(frame.f_code, lambda: call(wrapper, frame, *args))

    def clear(call: Callable[[], None]) -> None:
        reset()
        call()

    return hooked(feature, {"CatchErrorsWrapper.__call__": convert, "reset": clear})


def observe_skips(
    feature: Callable[[str], Feature], skipped: Callable[[CodeType, str], None]
) -> AbstractContextManager[None]:
    """While it lasts, `skipped` gets each code that Dynamo leaves alone, and the reason."""

    def handle_skip(call: Callable[..., object], wrapper: object, result: Any, frame: Any) -> object:
        if result.skip_reason is not None and result.guarded_code is None:
            skipped(frame.f_code, result.skip_reason)
        return call(wrapper, result, frame)

    def convert(call: Callable[..., Any], wrapper: object, frame: Any, *args: Any) -> object:
        """This version of torch returns only that there is no code."""
        result = call(wrapper, frame, *args)
        if result.guarded_code is None and result.apply_to_code:
            skipped(frame.f_code, _skip_reason(frame))
        return result

    if missing("skipped frames"):
        return hooked(feature("skipped frames by result"), {"CatchErrorsWrapper.__call__": convert})
    return hooked(feature("skipped frames"), {"CatchErrorsWrapper._handle_skip": handle_skip})


def _skip_reason(frame: Any) -> str:
    if convert_frame.trace_rules.check(frame.f_code):
        return _SKIPFILE
    return _UNKNOWN if convert_frame.has_tensor_in_frame(frame) else _NO_TENSOR


def observe_suppressed(
    feature: Feature, suppressed: Callable[[BaseException, CodeType], None]
) -> AbstractContextManager[None]:
    """While it lasts, `suppressed` gets each error for which torch runs a frame in eager."""

    def format_error_msg(call: Callable[..., str], error: Any, code: CodeType, *args: Any, **kwargs: Any) -> str:
        suppressed(error, code)
        return call(error, code, *args, **kwargs)

    return hooked(feature, {"format_error_msg": format_error_msg})


@instead_of((8, 256))  # torch's defaults
def limits() -> tuple[int, int]:
    """How often a frame may be compiled: for the same object, and in total."""
    config = internals._dynamo.config
    return config.recompile_limit, config.accumulated_recompile_limit


@instead_of(True)
def makes_dynamic() -> bool:
    """Whether sizes that change between calls are compiled as dynamic now: not with `dynamic=False`."""
    return bool(internals._dynamo.config.automatic_dynamic_shapes)


@instead_of(False)
def suppresses_errors() -> bool:
    """Whether torch runs a frame in eager when its compile fails."""
    return bool(internals._dynamo.config.suppress_errors)
