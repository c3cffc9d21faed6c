"""Observe the passes that Inductor runs on a graph: when each begins and ends, and what the graph holds then."""

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from operator import is_
from typing import Any, NamedTuple, Protocol

import torch
from torch.fx import Graph, GraphModule, Node

from idbg.engine.compat.hooks import Feature, Wrapper, hooked
from idbg.schema.decisions.inductor import Phase

PHASES: dict[str, Phase] = {
    "_recursive_pre_grad_passes": "pre_grad",
    "_recursive_joint_graph_passes": "joint",
    "_recursive_post_grad_passes": "post_grad",
}
"""The functions of torch._inductor.compile_fx that run them."""


@dataclass(frozen=True, eq=False)
class Pass:
    """A pass that torch runs on a graph; `function` is what it calls, None where that is unknown."""

    name: str
    gm: GraphModule
    function: object = None


class PhaseObserver(Protocol):
    """Receives the phases. Each one that begins also ends, the innermost first."""

    def phase_began(self, phase: Phase, gm: GraphModule) -> None:
        """All passes of a phase will run on this graph; inside of another phase: on a graph that its graph holds."""

    def phase_ended(self, phase: Phase, gm: GraphModule) -> None:
        """All passes ran; `gm` is the result, usually the same object."""


def observe_phases(feature: Feature, observer: PhaseObserver) -> AbstractContextManager[None]:
    """While it lasts, `observer` gets each phase of passes of each graph that Inductor compiles."""

    def observed(phase: Phase) -> Wrapper:
        def run(call: Callable[..., object], gm: GraphModule, *args: Any, **kwargs: Any) -> object:
            observer.phase_began(phase, gm)
            after = gm
            try:
                result = call(gm, *args, **kwargs)
                after = result if isinstance(result, GraphModule) else gm  # some return the graph
                return result
            finally:
                observer.phase_ended(phase, after)

        return run

    return hooked(feature, {name: observed(phase) for name, phase in PHASES.items()})


def observe_passes(
    feature: Feature | str, began: Callable[[Pass], None], ended: Callable[[Pass], None]
) -> AbstractContextManager[None]:
    """While it lasts, `began` and `ended` get each pass, by the observer that torch puts around it.

    Torch enters the observer, and mostly gives it the function to call.
    """
    called: dict[int, object] = {}  # by the observer's id, from the call of a pass until the observer is entered
    entered: list[tuple[object, Pass]] = []

    def apply(call: Callable[..., object], observer: Any, pass_fn: Callable[..., object]) -> object:
        called[id(observer)] = pass_fn
        try:
            return call(observer, pass_fn)
        finally:
            called.pop(id(observer), None)

    def enter(call: Callable[..., object], observer: Any) -> object:
        function = called.pop(id(observer), None)
        applied = Pass(_own_name(observer.passname, function), observer.gm, function)
        began(applied)
        entered.append((observer, applied))
        return call(observer)

    def leave(call: Callable[..., object], observer: Any, *error: Any) -> None:
        call(observer, *error)
        if entered and entered[-1][0] is observer:
            ended(entered.pop()[1])

    name = "GraphTransformObserver"
    wrappers = {"apply_gm_pass": apply, "apply_graph_pass": apply, "__enter__": enter, "__exit__": leave}
    return hooked(feature, {f"{name}.{method}": wrapper for method, wrapper in wrappers.items()})


@dataclass(frozen=True)
class AppliedPattern:
    """`function`: the handler or replacement that the pattern was registered with, None where it is unknown.
    `nodes`: the names of the nodes that it matched.
    """

    function: object
    nodes: frozenset[str]


def observe_patterns(applied: Callable[[AppliedPattern], None]) -> AbstractContextManager[None]:
    """While it lasts, `applied` gets each pattern of the pattern matcher as it is applied."""

    def apply(call: Callable[..., None], entry: Any, match: Any, graph: Any, node: Any) -> None:
        applied(AppliedPattern(_function(entry), frozenset(each.name for each in match.nodes)))
        call(entry, match, graph, node)

    return hooked("patterns", {f"{kind}PatternEntry.apply": apply for kind in ("Graph", "Lowering", "Replacement")})


def _function(entry: Any) -> object:
    if (handler := getattr(entry, "handler", None)) is not None:
        return handler
    check = entry.extra_check  # of a replacement: a closure of register_replacement's
    return inspect.getclosurevars(check).nonlocals.get("replace_fn") if inspect.isfunction(check) else None


def _own_name(name: str, function: object) -> str:
    """Torch runs its group_batch_fusion_passes under the name of the program's own pass, directly after it."""
    function = function.func if isinstance(function, functools.partial) else function
    if getattr(function, "__module__", "") == "torch._inductor.fx_passes.group_batch_fusion":
        return str(getattr(function, "__name__", name))
    return name


_FACTS = 5  # of a node in a snapshot


class Snapshot:
    """The contents of a graph at one moment. It is cheap: it references what the nodes reference, and is read later,
    as torch replaces a node's arguments and never changes them in place.
    """

    def __init__(self, graph: Graph) -> None:
        flat: list[Any] = []
        for node in graph.nodes:
            flat += (node, node.name, node.target, node._args, node._kwargs)
        self._flat = flat

    def __len__(self) -> int:
        return len(self._flat) // _FACTS

    def is_same(self, other: "Snapshot") -> bool:
        """Whether no node was written in between. A node that was written may still be equal."""
        return len(self._flat) == len(other._flat) and all(map(is_, self._flat, other._flat))

    def names(self) -> list[str]:
        """The nodes, in order."""
        return self._flat[1::_FACTS]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: _FACTS * at for at, name in enumerate(self.names())}

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def __getitem__(self, name: str) -> "Facts":
        at = self._places[name]
        return Facts(*self._flat[at : at + _FACTS])

    def written(self, before: "Snapshot") -> list[str]:
        """The nodes of both whose target or arguments were replaced since."""
        old, new, places = before._flat, self._flat, before._places
        found: list[str] = []
        for at in range(0, len(new), _FACTS):
            was = places.get(new[at + 1])
            if was is not None and not all(map(is_, new[at + 2 : at + _FACTS], old[was + 2 : was + _FACTS])):
                found.append(new[at + 1])
        return found


class Facts(NamedTuple):
    """A node at the time of the snapshot; `node` itself may have changed since."""

    node: Node
    name: str
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def inputs(self) -> list[Node | None]:
        """Its arguments in order, those in lists too; None for one that is no node."""
        return [*_leaves(self.args), *_leaves(tuple(self.kwargs.values()))]


def _leaves(value: object) -> Iterator[Node | None]:
    match value:
        case Node():
            yield value
        case list() | tuple():
            for each in value:
                yield from _leaves(each)
        case dict():
            for each in value.values():
                yield from _leaves(each)
        case slice():
            yield from _leaves((value.start, value.stop, value.step))
        case _:
            yield None


def name_within(holder: GraphModule, gm: GraphModule) -> str:
    """The name of a graph inside of another; "?" where it is not inside."""
    return next((name for name, child in holder.named_modules() if child is gm), "?")


def value_of(node: Node) -> torch.Tensor | None:
    """The tensor that torch noted as a node's value; None for other values, or without one."""
    value = node.meta.get("val", node.meta.get("example_value"))
    return value if isinstance(value, torch.Tensor) else None
