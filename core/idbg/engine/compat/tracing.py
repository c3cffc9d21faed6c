"""Torch's trace of compiles, and the settings under which it is complete."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from logging import Logger
from typing import cast
from unittest.mock import patch

import torch
import torch.compiler.config
from torch.fx.node import Node, map_aggregate

from idbg.engine.compat.names import instead_of, internals
from idbg.schema.graphs import Part

_TRACING = ("torch._logging", "torch._utils_internal")  # modules through which a record is written


def trace_log() -> Logger:
    """The logger of TORCH_TRACE."""
    return internals._logging._internal.trace_log


@instead_of("")
def interned(index: int) -> str:
    """The file name of a number in a trace record."""
    for name, number in internals._logging.structured.INTERN_TABLE.items():
        if number == index:
            return name
    return ""


def current_frame() -> str:
    """The compile id ("0/0") of the frame that is being compiled on this thread; "" outside of a compile."""
    compile_id = internals._guards.CompileContext.current_compile_id()
    return str(compile_id) if compile_id is not None else ""


_namer: Callable[[str], str] = str


def frame_name() -> str:
    """The session's name of the frame that is being compiled on this thread, or its compile id without a session."""
    frame = current_frame()
    return _namer(frame) if frame else ""


@contextmanager
def frames_named(namer: Callable[[str], str]) -> Iterator[None]:
    """While it lasts, frames have the names that `namer` returns for their compile ids."""
    global _namer
    before, _namer = _namer, namer
    try:
        yield
    finally:
        _namer = before


def compiled_part() -> Part:
    """The part of the frame that AOTAutograd compiles on this thread; "" outside of it."""
    logging_utils = sys.modules.get("torch._functorch._aot_autograd.logging_utils")
    names: list[str] = getattr(logging_utils, "graph_being_compiled", [])
    part = names[0].rpartition("_")[2] if names else ""
    return cast("Part", part) if part in ("forward", "backward", "inference") else ""


def traced_by() -> dict[str, object] | None:
    """The globals of the module that writes the record which is being handled; None where that is torch."""
    frame = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith("torch.") and not name.startswith(_TRACING):
            return None
        if not name.startswith((*_TRACING, "logging", "idbg.engine", "idbg.traces")):
            return frame.f_globals
        frame = frame.f_back  # type: ignore[assignment]
    return None


def part_of(is_backward: bool, is_inference: bool) -> Part:
    """The part of a frame that a graph of Inductor's is."""
    return "backward" if is_backward else "inference" if is_inference else "forward"


@instead_of(False)
def _is_autograd_compiled() -> bool:
    return bool(
        internals._dynamo.config.compiled_autograd or internals._dynamo.compiled_autograd.compiled_autograd_enabled
    )


@contextmanager
def _numbers_replace_nodes() -> Iterator[None]:
    """A pass may put a number in the place of a node's input: torch's hooks of provenance read the name of a node."""
    plain = Node.replace_input_with

    def replace_input_with(node: Node, old_input: Node, new_input: Node) -> None:
        if isinstance(new_input, Node):
            plain(node, old_input, new_input)
            return
        node.args = map_aggregate(node.args, lambda each: new_input if each is old_input else each)
        node.kwargs = map_aggregate(node.kwargs, lambda each: new_input if each is old_input else each)

    with patch.object(Node, "replace_input_with", replace_input_with):
        yield


@contextmanager
def observed() -> Iterator[None]:
    """While it lasts, torch's settings make every graph and its provenance visible.

    Enter it in the thread that compiles: in 2.15 overrides are local to it. The AOTAutograd cache is off, as it skips
    the inner compile on a hit, and with it every check. The FX graph cache stays on. The backward is lowered with the
    forward, or its provenance is lost; not with compiled autograd, which compiles it as part of another graph.
    """
    eagerly = not _is_autograd_compiled()
    with ExitStack() as stack:
        stack.enter_context(internals._inductor.config.patch({"trace.provenance_tracking_level": 1}))
        stack.enter_context(_numbers_replace_nodes())
        # 2.11 leaves provenance out of the cache's key: an entry without it must not be found
        stack.enter_context(torch.compiler.config.patch(cache_key_tag="idbg"))  # type: ignore[attr-defined]
        stack.enter_context(
            internals._functorch.config.patch(force_non_lazy_backward_lowering=eagerly, enable_autograd_cache=False)
        )
        yield
