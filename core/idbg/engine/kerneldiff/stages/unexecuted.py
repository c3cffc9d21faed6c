"""Find a node of a Dynamo graph whose line eager never runs.

Dynamo traces something else than eager runs where the program checks `torch.compiler.is_compiling()`, and where a
function has a substitute (`torch._dynamo.substitute_in_graph`).
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from torch.fx import GraphModule, Node

from idbg.analysis.crashes import Place, frames_of
from idbg.engine.compat import dynamo, stages


@dataclass(frozen=True)
class UnexecutedNode:
    """A node of the graph with this number; `line` is the program's. `substitute`: the function that Dynamo
    traces instead of the one that eager calls; None if eager only takes another branch.
    """

    graph: int
    node: str
    line: Place
    substitute: Place | None = None


def unexecuted_node(graphs: Sequence[GraphModule], run: Callable[[], object]) -> UnexecutedNode | None:
    """The first node whose line the run in eager does not execute; else, where eager calls a function that has a
    substitute, the first node of the line that calls it: one that returns a number leaves no node. None if there is
    none.
    """
    nodes = [(number, name, node) for number, gm in enumerate(graphs) for name, node in _nodes(gm)]
    stacks = [(number, name, _own_frames(node.meta.get("stack_trace") or "")) for number, name, node in nodes]
    calls: list[tuple[Place, Place]] = []
    with _lines_executed({frame.file for _, _, stack in stacks for frame in stack}, calls) as executed:
        run()
    for number, name, stack in stacks:
        at = next(
            (at for at, frame in enumerate(stack) if frame.line not in executed[frame.file, frame.function]), None
        )
        if at is None or ("." in name and not executed[stack[at].file, stack[at].function]):
            continue  # the backward of an autograd function may run in another thread
        if at and not executed[stack[at].file, stack[at].function]:
            return UnexecutedNode(number, name, stack[at - 1], stack[at])
        return UnexecutedNode(number, name, stack[at])
    at_calls = (
        UnexecutedNode(number, name, caller, substitute)
        for caller, substitute in calls
        for number, name, stack in stacks
        if caller in stack
    )
    return next(at_calls, None)


def _nodes(gm: GraphModule) -> Iterator[tuple[str, Node]]:
    """The graph's nodes, then those of the graphs that it holds, as of an autograd function: "bwd_body_0.mul"."""
    for path, module in gm.named_modules():
        if isinstance(module, GraphModule):
            yield from ((f"{path}.{node.name}" if path else node.name, node) for node in module.graph.nodes)


def _own_frames(stack: str) -> list[Place]:
    return [frame for frame in frames_of(stack) if not stages.is_torchs(frame.file)]


def _own_caller(frame: FrameType) -> Place | None:
    caller = frame.f_back
    while caller is not None and stages.is_torchs(caller.f_code.co_filename):
        caller = caller.f_back
    return None if caller is None else _place(caller.f_code, caller.f_lineno)


def _place(code: CodeType, line: int) -> Place:
    return Place(code.co_filename, line, code.co_name)


@contextmanager
def _lines_executed(files: set[str], calls: list[tuple[Place, Place]]) -> Iterator[dict[tuple[str, str], set[int]]]:
    """Record the lines of these files that this thread runs, by file and function; into `calls` who calls a function
    that has a substitute, and that substitute.
    """
    substitutes = dynamo.own_substitutes()
    executed: dict[tuple[str, str], set[int]] = defaultdict(set)

    def traced(frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        if code in substitutes and (caller := _own_caller(frame)) is not None:
            calls.append((caller, _place(substitutes[code], substitutes[code].co_firstlineno)))
        if code.co_filename not in files:
            return None
        executed[code.co_filename, code.co_name].add(frame.f_lineno)
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        yield executed
    finally:
        sys.settrace(before)
