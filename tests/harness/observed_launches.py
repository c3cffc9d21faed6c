"""Observe the launches of one model in a test."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from idbg.engine.kerneldiff.kernels.observe import observing
from idbg.engine.kerneldiff.tensors.allowance import GIVEN_K
from idbg.schema.diff import KernelError
from idbg.schema.errors import BadInput


def observe(run: Callable[[], object], *, k: float = GIVEN_K) -> tuple[KernelError, ...]:
    """Every kernel launch of what `run` compiles with Inductor and calls, in order. Raises BadInput if
    there are none.

    Of a graph that is called more than once the first call is observed.
    """
    with observing(k) as observation:
        run()
    if not observation.watches:
        raise BadInput(
            observation.problem or "Inductor compiled nothing in this run, so there are no kernels to observe",
            hint="bisect the graph instead (kerneldiff.bisect)"
            if observation.problem
            else "reset what was compiled before (torch._dynamo.reset()), and use a backend that lowers by Inductor",
        )
    return observation.kernels


def first_bad(kernels: tuple[KernelError, ...]) -> int | None:
    """The place of the first kernel whose error exceeds its inputs'."""
    return next((place for place, kernel in enumerate(kernels) if kernel.bad), None)


def observe_model(
    model: Callable[..., object],
    args: tuple[object, ...] = (),
    kwargs: Mapping[str, object] | None = None,
    *,
    loss: Callable[..., torch.Tensor] | None = None,
    options: dict[str, Any] | None = None,
    dynamic: bool | None = None,
    k: float = GIVEN_K,
) -> tuple[KernelError, ...]:
    """`observe` for one call of the model, and its backward if there is a loss; the caller restores its state.

    `options` are Inductor's.
    """
    torch._dynamo.reset()

    def run() -> None:
        with torch.set_grad_enabled(loss is not None):
            output = torch.compile(model, dynamic=dynamic, options=dict(options or {}))(*args, **(kwargs or {}))
            if loss is not None:
                loss(output).backward()  # type: ignore[no-untyped-call]

    return observe(run, k=k)
