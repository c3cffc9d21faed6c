"""IREE's compiler as iree-turbine calls it: what it dumps, and the locations that it has."""

import sys
from collections.abc import Callable, Mapping
from ctypes import c_char_p, c_void_p
from pathlib import Path
from typing import Protocol, cast

from torch.fx import Node

from idbg.engine.compat.hooks import caller
from idbg.engine.compat.origins import source_name


class _Source(Protocol):
    _backing_ref: bytes | None


class _Invocation(Protocol):
    _inv_p: c_void_p | int | None
    _sources: list[_Source]


class _Contexts(Protocol):
    _c: object


_prints_locations = False  # of this process: it cannot be undone


def wrappers(dumped: Callable[[], Path], ready: Callable[[], None], *, locations: bool) -> Mapping[str, object]:
    """What to call in place of the functions of the feature "IREE stages": each compile dumps into a `dumped` folder.

    With `locations` all MLIR that this process prints has its locations, also that which turbine gives to the compiler.
    """

    def execute(call: Callable[..., bool], invocation: _Invocation, *args: object, **kwargs: object) -> bool:
        folder = dumped()
        if (text := _source(invocation)) is not None:
            (folder / "0.torch.mlir").write_bytes(text)
        library = sys.modules["iree.compiler.api.ctypes_dl"]._dylib
        pointer = invocation._inv_p
        address = pointer.value if isinstance(pointer, c_void_p) else pointer
        library.ireeCompilerInvocationSetDumpCompilationPhasesTo(c_void_p(address), c_char_p(str(folder).encode()))
        try:
            return call(invocation, *args, **kwargs)
        finally:
            ready()

    def get_node_location(call: Callable[..., object], cache: _Contexts, node: Node, *rest: object) -> object:
        location = call(cache, node, *rest)
        if locations:
            _print_locations()
        if caller().f_code.co_name != "import_nodes":  # a function's own location: that of its first node
            return location
        named = cast("Callable[..., object]", sys.modules["iree.compiler.ir"].Location.name)
        name, context = source_name(node), cache._c
        return named(name, location, context=context) if location is not None else named(name, context=context)

    def initialize(call: Callable[..., None], *arguments: str) -> None:
        """A second call ends the process."""
        global _prints_locations
        if not _prints_locations:
            _prints_locations = True
            call(*arguments)

    return {
        "Invocation.execute": execute,
        "ContextCache.get_node_location": get_node_location,
        "_initializeGlobalCL": initialize,
    }


def _print_locations() -> None:
    if not _prints_locations:
        sys.modules["iree.compiler.api"]._initializeGlobalCL("idbg", "--mlir-print-debuginfo")


def _source(invocation: _Invocation) -> bytes | None:
    """The module that is compiled, as it was given; None where that is not a text."""
    sources = invocation._sources
    data = bytes(sources[-1]._backing_ref or b"") if sources else b""
    return data.rstrip(b"\0") if data and not data.startswith(b"ML\xefR") else None
