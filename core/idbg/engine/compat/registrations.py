"""List what a program registered with torch: custom ops, lowerings, decompositions, passes.

Where another version of torch lacks a name, less is found, and a repro's trial run shows it.
"""

import functools
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CellType, FunctionType, ModuleType
from typing import Any

import torch
from torch.fx import GraphModule, Node

from idbg.engine.compat.hooks import below_hooks
from idbg.engine.compat.names import instead_of, internals

_OF_TORCH = {
    *(
        "aten",
        "c10d",
        "c10d_functional",
        "export",
        "fsdp",
        "higher_order",
        "inductor",
        "mkl",
        "mkldnn",
        "onednn",
        "prim",
    ),
    *("prims", "profiler", "quantized", "quantized_decomposed", "rngprims", "sparse", "streams", "symm_mem"),
}

Function = Callable[..., object]
_TORCH = str(Path(torch.__file__).parent)
_PATCHABLE = ("torch._inductor", "torch._dynamo", "torch._functorch", "torch._decomp", "torch.fx", "torch._subclasses")
_HOLDING = (FunctionType, staticmethod, classmethod, property)
_DECORATORS = "/typing_extensions.py"  # wherever it lies: torch decorates its deprecated functions with it
_CONFIGS = (internals._inductor.config, internals._functorch.config, internals._dynamo.config)


@instead_of({})
def functions_of_op(op: str) -> dict[str, Function]:
    """The Python functions of a custom op ("my::op") by purpose: "init", "fake", "backward", "setup"; {} for other ops
    than those of `torch.library.custom_op` and `triton_op`.
    """
    found = internals._library.custom_ops.OPDEFS.get(op)
    if found is None:
        return {}
    named = {"init": "_init_fn", "fake": "_abstract_fn", "backward": "_backward_fn", "setup": "_setup_context_fn"}
    held = {name: getattr(found, attribute, None) for name, attribute in named.items()}
    return {name: function for name, function in held.items() if function is not None}


@dataclass(frozen=True)
class FakeKernel:
    """The fake kernel of an op ("my::op"), and where it is defined."""

    op: str
    file: str
    line: int


@instead_of(None)
def fake_kernel(op: str, is_theirs: Callable[[str], bool]) -> FakeKernel | None:
    """The fake kernel that one of these files registered for this op; None without one."""
    entry = internals._library.simple_registry.singleton.get(op)
    registered = getattr(getattr(entry, "fake_impl", None), "kernel", None)
    function = part_of(functions_of_op(op).get("fake") or getattr(registered, "func", None), is_theirs)
    return FakeKernel(op, function.__code__.co_filename, function.__code__.co_firstlineno) if function else None


@dataclass(frozen=True)
class Made:
    """A call that creates an object of a library's class again: a function of a module, and its arguments."""

    module: str
    function: str
    args: tuple[object, ...] = ()
    kwargs: dict[str, object] = field(default_factory=dict)


@instead_of(None)
def made_by(value: object) -> Made | None:
    """The call that creates a backend like this one, if it is a partial or one of AOTAutograd's; else None."""
    if isinstance(value, functools.partial):
        return Made("functools", "partial", (value.func, *value.args), dict(value.keywords))
    if not isinstance(value, internals._dynamo.backends.common.AotAutograd):
        return None
    given: dict[str, object] = {name: _unwrapped(each) for name, each in value.kwargs.items()}
    forward = given.get("fw_compiler")  # which torch puts in the place of those that are not given
    kwargs = {name: each for name, each in given.items() if name == "fw_compiler" or each not in (forward, None)}
    return Made("torch._dynamo.backends.common", "aot_autograd", kwargs=kwargs)


def _unwrapped(compiler: object) -> object:
    """The compiler of the backward, without AOTAutograd's wrapper."""
    if not getattr(compiler, "_is_wrapped_bw_compiler", False):
        return compiler
    cells = getattr(compiler, "__closure__", None) or ()
    return next((cell.cell_contents for cell in cells if callable(cell.cell_contents)), compiler)


def is_torchs(op: str) -> bool:
    """Whether an op is of one of torch's own namespaces."""
    return op.partition("::")[0].lstrip("_") in _OF_TORCH


def loaded_libraries() -> list[str]:
    """The shared libraries with ops that the program loaded."""
    return sorted(map(str, torch.ops.loaded_libraries))


@dataclass(frozen=True)
class TableEntry:
    """An entry of torch's tables of lowerings or decompositions: the table's path, the op, and the function."""

    table: str
    op: object
    value: Function

    @property
    def line(self) -> str:
        """The statement that adds this entry, up to the value; "" if the op has no plain spelling."""
        ops = internals._ops.OpOverload | internals._ops.OpOverloadPacket
        return f"{self.table}[torch.ops.{self.op}] = " if isinstance(self.op, ops) else ""


def table_entries() -> Iterator[TableEntry]:
    """All lowerings and decompositions, torch's own too."""
    for module, name in (
        ("torch._decomp", "decomposition_table"),
        ("torch._inductor.lowering", "lowerings"),
        ("torch._inductor.decomposition", "decompositions"),
    ):
        held: ModuleType | None = sys.modules.get(module)
        for op, value in list(getattr(held, name, {}).items()):
            if callable(value):
                yield TableEntry(f"{module}.{name}", op, value)


def part_of(value: object, is_theirs: Callable[[str], bool]) -> FunctionType | None:
    """The function from one of these files that a value is, or that torch's function wraps, as `make_pointwise(f)`
    wraps f; None without one.
    """
    seen: set[int] = set()
    left = [value]
    while left:
        each = unwrapped(left.pop())
        if isinstance(each, functools.partial):
            left += [each.func, *each.args]
        if not isinstance(each, FunctionType) or id(each) in seen:
            continue
        seen.add(id(each))
        if is_theirs(each.__code__.co_filename):
            return each
        left += [cell.cell_contents for cell in each.__closure__ or () if _is_filled(cell)]
    return None


def unwrapped(function: object) -> object:
    """The function without its decorators."""
    while (inner := getattr(function, "__wrapped__", None)) is not None:
        function = inner
    return function


@instead_of(())
def set_to_objects() -> tuple[tuple[str, object], ...]:
    """Torch's settings whose value is a function or an object, such as a pass: name and value."""
    found: list[tuple[str, object]] = []
    for config in _CONFIGS:
        for name in getattr(config, "_config", {}):
            with warnings.catch_warnings():  # of deprecated settings
                warnings.simplefilter("ignore")
                value: object = getattr(config, name, None)
            if callable(value) and not isinstance(value, type):
                found.append((f"{config.__name__}.{name}", value))
    return tuple(found)


def outside_the_key(is_own: Callable[[str], bool]) -> str:
    """A function of the program that lowers graphs and is not part of the key of torch's graph cache, in words; ""
    without one. `is_own` decides whether a file is the program's.

    Functions that change the graph above lowering (a decomposition, a joint pass) are in the key by their result.
    """
    for what, value in _below_the_key():
        if (function := part_of(value, is_own)) is not None:
            code = function.__code__
            place = f"{Path(code.co_filename).name}:{code.co_firstlineno}"
            return f"the program's own {what} ({code.co_name}, {place}) is not part of the cache's key"
    return ""


def _below_the_key() -> Iterator[tuple[str, object]]:
    held: ModuleType | None = sys.modules.get("torch._inductor.lowering")
    for op, function in list(getattr(held, "lowerings", {}).items()):
        yield f"lowering of {op}", function
    held = sys.modules.get("torch._inductor.fx_passes.post_grad")
    for patterns in getattr(held, "pass_patterns", ()):
        for entry in [each for several in list(patterns.patterns.values()) for each in several]:
            yield "pattern", getattr(entry, "handler", None)
            yield "pattern", entry.extra_check
    for name, value in patched("torch._inductor"):
        yield f"torch.{name.removeprefix('torch.')}", function_of(value)


def _is_filled(cell: CellType) -> bool:
    try:
        return callable(cell.cell_contents)
    except ValueError:
        return False


def patched(within: str | tuple[str, ...] = _PATCHABLE) -> tuple[tuple[str, object], ...]:
    """Attributes of torch's compiler, in modules and classes, that are replaced by functions from outside of torch:
    "torch._inductor.codegen.cpp.CppOverrides.tanh", and its value.
    """
    found: list[tuple[str, object]] = []
    for module in [held for name, held in sys.modules.items() if name.startswith(within) and _is_file_of_torch(held)]:
        found += [(f"{module.__name__}.{name}", value) for name, value in _foreign(module)]
        for each in [held for held in vars(module).values() if isinstance(held, type)]:
            if each.__module__ == module.__name__ and "<" not in each.__qualname__:
                path = f"{module.__name__}.{each.__qualname__}"
                found += [(f"{path}.{name}", value) for name, value in _foreign(each)]
    return tuple(found)


def _foreign(owner: ModuleType | type) -> Iterator[tuple[str, object]]:
    """The attributes of a module or a class that are functions from outside of torch, as they are without idbg's hooks.

    A compiler has 20,000 attributes, and this is computed for each graph.
    """
    for name, value in list(vars(owner).items()):
        if not isinstance(value, _HOLDING):
            continue
        function = function_of(value)
        below: Any = below_hooks(function)
        if not isinstance(below, FunctionType) or below.__code__.co_filename.startswith((_TORCH, "<")):
            continue
        if not below.__code__.co_filename.endswith(_DECORATORS):
            wrap = type(value) if isinstance(value, (staticmethod, classmethod)) else None
            yield name, value if below is function else wrap(below) if wrap else below


def _is_file_of_torch(module: ModuleType) -> bool:
    """Whether the module is a file of torch's: generated wrappers are among its modules too."""
    return (getattr(module, "__file__", None) or "").startswith(f"{_TORCH}/")


def function_of(value: object) -> object:
    """The function of an attribute of a class, without `staticmethod` and the like; else the value itself."""
    if isinstance(value, (staticmethod, classmethod)):
        return value.__func__
    return value.fget if isinstance(value, property) else value


def called_by(module: GraphModule) -> Iterator[tuple[Node, object]]:
    """The calls of a graph and of its inner graphs, each with its target."""
    for graph in module.modules():
        if isinstance(graph, GraphModule):
            yield from ((node, node.target) for node in graph.graph.nodes if node.op == "call_function")


def op_called(target: object) -> str:
    """The name of the op that is called ("my::op"); "" for another target."""
    if isinstance(target, internals._ops.OpOverloadPacket):
        return str(target._qualified_op_name)
    return target._schema.name if isinstance(target, internals._ops.OpOverload) else ""


@instead_of(None)
def kernel_launched(node: Node) -> tuple[Function, list[object], dict[str, object]] | None:
    """The user's Triton function that a node launches, its grid, and its arguments; None where it launches none."""
    if "triton_kernel_wrapper" not in str(node.target):
        return None
    index, constants, grids, given = (
        node.kwargs[name] for name in ("kernel_idx", "constant_args_idx", "grid", "kwargs")
    )
    assert isinstance(index, int) and isinstance(constants, int)
    kernel = internals._higher_order_ops.triton_kernel_wrap.kernel_side_table.get_kernel(index)
    while (inner := getattr(kernel, "fn", None)) is not None:  # autotuned, heuristics, just-in-time
        kernel = inner
    fixed = internals._higher_order_ops.triton_kernel_wrap.kernel_side_table.get_constant_args(constants)
    assert isinstance(given, dict) and isinstance(grids, (list, tuple))
    return kernel, list(grids[-1]), {**given, **fixed}
