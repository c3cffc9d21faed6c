"""Which kernel of the compiled program is to blame, or which node of its graphs where no kernel can be observed?"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch.fx import GraphModule

from idbg.engine.compat import comparing
from idbg.engine.kerneldiff.asked import Backend
from idbg.engine.kerneldiff.kernels.bisect import BisectResult, first_bad_node
from idbg.engine.kerneldiff.kernels.observe import Observation, observing
from idbg.engine.kerneldiff.kernels.references import copied
from idbg.engine.kerneldiff.sides.run import Call, Side, run_side
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.schema.diff import KernelError
from idbg.schema.graphs import GraphId


def run_observed(
    subject: Subject, compile: Callable[[Call], Call], *, backward: bool = False
) -> tuple[Side, tuple[KernelError, ...]]:
    """The compiled model once more, with every kernel of Inductor's observed."""
    torch._dynamo.reset()
    observed = Observation()

    def around(stack: ExitStack) -> Call:
        nonlocal observed
        stack.enter_context(comparing.random_as_eager())
        observed = stack.enter_context(observing())
        return compile(subject.model)

    return run_side("kernels", subject, around, backward), observed.kernels


def first_bad_of(subject: Subject, backend: Backend, *, dynamic: bool | None = None) -> tuple[KernelError, ...]:
    """The first node of the first Dynamo graph that the backend computes wrong, as a launch; none if no graph is wrong.

    The forward alone is searched. Raises what the backend raises on a part of a graph.
    """
    for number, (gm, inputs) in enumerate(_graphs(subject, dynamic)):
        result = first_bad_node(gm, inputs, backend, dynamic=dynamic)
        if result.node:
            return (_as_launch(f"{number}/0", result),)
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


def _as_launch(frame: str, result: BisectResult) -> KernelError:
    return KernelError(
        frame=frame,
        part="",
        name=result.node,
        graph=GraphId(frame, "dynamo"),
        nodes=(result.node,),
        file=result.file,
        line=result.line,
        observed=True,
        reason=f"bisected, compiling {result.compiles} parts of the graph",
        error=result.error,
        input_error=result.input_error,
        eager_error=result.eager_error,
        bad=True,
        node=result.node,
    )
