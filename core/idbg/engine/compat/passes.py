"""Which passes does Inductor run on a graph, when does each begin and end, and what did the graph hold then?

Run on torch 2.14 (CPU) and 2.11.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from operator import is_
from typing import Any, NamedTuple, Protocol

import torch
from torch.fx import Graph, GraphModule, Node

from idbg.engine.compat.patched import when_lowering
from idbg.schema.decisions.passes import Phase

_PHASES: dict[str, Phase] = {
    "_recursive_pre_grad_passes": "pre_grad",
    "_recursive_joint_graph_passes": "joint",
    "_recursive_post_grad_passes": "post_grad",
}


@dataclass(frozen=True, eq=False)
class Pass:
    """A pass that torch runs on a graph; `made_by` is what it calls, None where that is not told."""

    name: str
    gm: GraphModule
    made_by: object = None


class Hears(Protocol):
    """Who is told. Whatever begins also ends, and what is inside of another ends first."""

    def phase_began(self, phase: Phase, gm: GraphModule) -> None:
        """All passes of a phase will run on this graph; inside of another: on a graph that that one holds."""

    def phase_ended(self, phase: Phase, gm: GraphModule) -> None:
        """They did; `gm` is what came of it, mostly the same object."""

    def pass_began(self, applied: Pass) -> None:
        """One pass will run, perhaps inside of another."""

    def pass_ended(self, applied: Pass) -> None:
        """It did: `applied` is the same object."""


@contextmanager
def passes_heard(listener: Hears) -> Iterator[None]:
    """While it lasts, each phase and each pass of whatever Inductor compiles is told."""
    with when_lowering(lambda: _patched(listener)):
        yield


@contextmanager
def _patched(listener: Hears) -> Iterator[None]:
    from torch._inductor import compile_fx

    with ExitStack() as stack:
        for name, phase in _PHASES.items():
            stack.enter_context(replaced(compile_fx, name, _phase_told(getattr(compile_fx, name), phase, listener)))
        stack.enter_context(observers_heard(listener.pass_began, listener.pass_ended))
        yield


@contextmanager
def replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)


def _phase_told(original: Callable[..., object], phase: Phase, listener: Hears) -> Callable[..., object]:
    """A function of the compiler's that calls itself for graphs inside of graphs; some give the graph back."""

    @functools.wraps(original)
    def told(gm: GraphModule, *args: Any, **kwargs: Any) -> object:
        listener.phase_began(phase, gm)
        after = gm
        try:
            result = original(gm, *args, **kwargs)
            after = result if isinstance(result, GraphModule) else gm
            return result
        finally:
            listener.phase_ended(phase, after)

    return told


@contextmanager
def observers_heard(began: Callable[[Pass], None], ended: Callable[[Pass], None]) -> Iterator[None]:
    """Each pass alone, by the observer that torch puts around it: it is entered, and mostly given what to call."""
    from torch.fx.passes.graph_transform_observer import GraphTransformObserver as Observer

    called: dict[int, object] = {}  # by the observer's id, from the call of a pass until the observer is entered
    entered: list[tuple[object, Pass]] = []

    def applying(original: Callable[..., object]) -> Callable[..., object]:
        def apply(observer: Any, pass_fn: Callable[..., object]) -> object:
            called[id(observer)] = pass_fn
            try:
                return original(observer, pass_fn)
            finally:
                called.pop(id(observer), None)

        return apply

    enter, leave = Observer.__enter__, Observer.__exit__

    def entering(observer: Any) -> Any:
        made_by = called.pop(id(observer), None)
        applied = Pass(_own_name(observer.passname, made_by), observer.gm, made_by)
        began(applied)
        entered.append((observer, applied))
        return enter(observer)

    def leaving(observer: Any, *error: Any) -> None:
        leave(observer, *error)
        if entered and entered[-1][0] is observer:
            ended(entered.pop()[1])

    with ExitStack() as stack:
        for name in ("apply_gm_pass", "apply_graph_pass"):
            stack.enter_context(replaced(Observer, name, applying(getattr(Observer, name))))
        stack.enter_context(replaced(Observer, "__enter__", entering))
        stack.enter_context(replaced(Observer, "__exit__", leaving))
        yield


def _own_name(name: str, made_by: object) -> str:
    """Torch runs its group_batch_fusion_passes by the name of the program's own pass, just after that."""
    function = made_by.func if isinstance(made_by, functools.partial) else made_by
    if getattr(function, "__module__", "") == "torch._inductor.fx_passes.group_batch_fusion":
        return str(getattr(function, "__name__", name))
    return name


_FACTS = 5  # of a node in a look


class Look:
    """What a graph holds now. Cheap: it only holds what the nodes hold, so that no id is ever another's, and is
    read later: torch never writes into a node's arguments, it gives the node others.
    """

    def __init__(self, graph: Graph) -> None:
        flat: list[Any] = []
        for node in graph.nodes:
            flat += (node, node.name, node.target, node._args, node._kwargs)
        self._flat = flat

    def __len__(self) -> int:
        return len(self._flat) // _FACTS

    def is_same(self, other: "Look") -> bool:
        """Whether nothing was written in between; what was written may say the same."""
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

    def written(self, before: "Look") -> list[str]:
        """The nodes that were there before, and that were given another target or other arguments since."""
        old, new, places = before._flat, self._flat, before._places
        found: list[str] = []
        for at in range(0, len(new), _FACTS):
            was = places.get(new[at + 1])
            if was is not None and not all(map(is_, new[at + 2 : at + _FACTS], old[was + 2 : was + _FACTS])):
                found.append(new[at + 1])
        return found


class Facts(NamedTuple):
    """What a node was when it was looked at; `node` itself may be another by now."""

    node: Node
    name: str
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def inputs(self) -> list[Node | None]:
        """Its arguments in order, those in lists too; None for what is no node."""
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


def held_name(holder: GraphModule, gm: GraphModule) -> str:
    """Under which name a graph holds another; "?" where it does not."""
    return next((name for name, child in holder.named_modules() if child is gm), "?")


def value_of(node: Node) -> torch.Tensor | None:
    """The tensor that torch knows as a node's value; None of other values, or where it knows none."""
    value = node.meta.get("val", node.meta.get("example_value"))
    return value if isinstance(value, torch.Tensor) else None
