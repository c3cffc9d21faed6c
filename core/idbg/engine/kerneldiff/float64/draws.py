"""Which random numbers does a run draw? The same ones where the same op asks a generator at the same place."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
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

# kernels that draw their dropout inside, and do not return it
_DRAWS_INSIDE = re.compile(r"_scaled_dot_product_\w+|_(flash|efficient|cudnn)_attention_\w+|\w*rnn\w*|lstm|gru")


def draws_outside(func: Op) -> TypeGuard[OpOverload]:
    """Whether an op draws random numbers, and gives them as they are or with what it does to them."""
    if not isinstance(func, OpOverload) or torch.Tag.nondeterministic_seeded not in func.tags:
        return False
    return not _DRAWS_INSIDE.fullmatch(fx.op_name(func))


def draws_inside(func: Op, args: Sequence[object], kwargs: Mapping[str, object]) -> TypeGuard[OpOverload]:
    """Whether an op drops out what it computes by random numbers that it draws inside of its kernel; a backward is by
    those of its forward.
    """
    if not isinstance(func, OpOverload) or not _DRAWS_INSIDE.fullmatch(name := fx.op_name(func)):
        return False
    if name.endswith("_backward"):
        return False
    return bool(argument(func, "dropout_p", args, kwargs))


def argument(func: OpOverload, name: str, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
    """The argument of this name, wherever it was given; None where it was not."""
    if name in kwargs:
        return kwargs[name]
    names = [argument.name for argument in func._schema.arguments]
    at = names.index(name) if name in names else len(args)
    return args[at] if at < len(args) else None


def generator_position(generator: torch.Generator | None) -> str:
    """Where the generators stand that an op may draw from."""
    states = [generator.get_state()] if generator is not None else [torch.get_rng_state()]
    if generator is None and gpu.in_use():
        states += torch.cuda.get_rng_state_all()
    return hashlib.blake2b(b"".join(state.numpy().tobytes() for state in states), digest_size=8).hexdigest()


def draw_of(name: str, result: object, place: str) -> str:
    """One draw, as what it would take to draw it again; no `result` of an op that does not return its numbers."""
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
        outside = draws_outside(func)
        if not outside and not draws_inside(func, args, given):
            return func(*args, **given)
        place = generator_position(cast("torch.Generator | None", given.get("generator")))
        result = func(*args, **given)
        self.draws.append(draw_of(fx.op_name(func), result if outside else None, place))
        return result


@contextmanager
def recorded_draws() -> Iterator[list[str]]:
    """What is drawn while it lasts."""
    with _Recorder() as recorder:
        yield recorder.draws
