"""At which node of the program's graphs does a backend go wrong that gives no wrapper to observe?"""

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule

from idbg.engine.kerneldiff.kernels.bisect import BisectResult, first_bad_node
from idbg.engine.kerneldiff.kernels.references import copied
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.schema.diff import KernelError
from idbg.schema.graphs import GraphId

Backend = str | Callable[..., Any]


def first_bad_of(subject: Subject, backend: Backend, *, dynamic: bool | None = None) -> tuple[KernelError, ...]:
    """The first node of the first Dynamo graph that the backend computes wrong, as a launch; none if no graph is wrong.

    The forward alone is searched. Raises what the backend raises on a part of a graph.
    """
    for number, (gm, inputs) in enumerate(_graphs(subject, dynamic)):
        found = first_bad_node(gm, inputs, backend, dynamic=dynamic)
        if found.node:
            return (_as_launch(f"{number}/0", found),)
    return ()


def _graphs(subject: Subject, dynamic: bool | None) -> list[tuple[GraphModule, tuple[object, ...]]]:
    """The program's graphs, with the values that each is first called with."""
    calls: dict[GraphModule, tuple[object, ...]] = {}

    def remember(gm: GraphModule, _: object) -> Callable[..., Any]:
        def run(*args: object) -> Any:
            if gm not in calls:
                calls[gm] = tuple(copied(args))
            return gm.forward(*args)

        return run

    torch._dynamo.reset()
    with subject.restored(), torch.set_grad_enabled(subject.grad):
        torch.compile(subject.model, backend=remember, dynamic=dynamic)(*subject.args, **subject.kwargs)
    return list(calls.items())


def _as_launch(frame: str, found: BisectResult) -> KernelError:
    return KernelError(
        frame=frame,
        part="",
        name=found.node,
        graph=GraphId(frame, "dynamo"),
        nodes=(found.node,),
        file=found.file,
        line=found.line,
        observed=True,
        reason=f"bisected, compiling {found.compiles} parts of the graph",
        error=found.error,
        input_error=found.input_error,
        eager_error=found.eager_error,
        bad=True,
        node=found.node,
    )
