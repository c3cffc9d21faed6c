"""Which random numbers does a run draw? The same ones where the same op asks a generator at the same place."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeGuard, cast

import torch
from torch import Tensor
from torch._ops import HigherOrderOperator, OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from idbg.engine.compat import fx, gpu

Draws = tuple[str, ...]
Op = OpOverload | HigherOrderOperator  # what a dispatch mode is asked for

# kernels that draw their dropout inside: nothing can be told of the numbers from outside
DRAWS_INSIDE = re.compile(r"_scaled_dot_product_\w+|_(flash|efficient)_attention_forward|\w*rnn\w*|lstm|gru")


def draws_outside(func: Op) -> TypeGuard[OpOverload]:
    """Whether an op draws random numbers, and gives them as they are or with what it does to them."""
    if not isinstance(func, OpOverload) or torch.Tag.nondeterministic_seeded not in func.tags:
        return False
    return not DRAWS_INSIDE.fullmatch(fx.op_name(func))


def place_of(generator: torch.Generator | None) -> str:
    """Where the generators stand that an op may draw from."""
    states = [generator.get_state()] if generator is not None else [torch.get_rng_state()]
    if generator is None and gpu.in_use():
        states += torch.cuda.get_rng_state_all()
    return hashlib.blake2b(b"".join(state.numpy().tobytes() for state in states), digest_size=8).hexdigest()


def draw_of(name: str, result: object, place: str) -> str:
    """One draw, as what it would take to draw it again."""
    made = [f"{leaf.dtype}{tuple(leaf.shape)}" for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
    return f"{name} {' '.join(made)} {place}"


class _Recorder(TorchDispatchMode):
    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.draws: list[str] = []

    def __torch_dispatch__(
        self, func: Op, types: object, args: tuple[object, ...] = (), kwargs: Mapping[str, object] | None = None
    ) -> object:
        given = dict(kwargs or {})
        if not draws_outside(func):
            return func(*args, **given)
        place = place_of(cast("torch.Generator | None", given.get("generator")))
        result = func(*args, **given)
        self.draws.append(draw_of(fx.op_name(func), result, place))
        return result


@contextmanager
def recorded_draws() -> Iterator[list[str]]:
    """What is drawn while it lasts."""
    with _Recorder() as recorder:
        yield recorder.draws
