"""Record which random numbers a run draws: equal records mean equal numbers, from the same op and generator state."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeGuard

import torch
from torch import Tensor

from idbg.engine.compat import fx, gpu
from idbg.engine.compat.torch_types import OpOverload, tree_leaves
from idbg.engine.kerneldiff.float64.op_mode import Args, Kwargs, Op, OpMode

Draws = tuple[str, ...]

# kernels that draw their dropout inside, and do not return it
_DRAWS_INSIDE = re.compile(r"_scaled_dot_product_\w+|_(flash|efficient|cudnn)_attention_\w+|\w*rnn\w*|lstm|gru")


def draws_outside(func: Op) -> TypeGuard[OpOverload]:
    """Whether an op draws random numbers and returns them, or what it computes with them."""
    if not isinstance(func, OpOverload) or torch.Tag.nondeterministic_seeded not in func.tags:
        return False
    return not _DRAWS_INSIDE.fullmatch(fx.op_name(func))


def draws_inside(func: Op, args: Sequence[object], kwargs: Mapping[str, object]) -> TypeGuard[OpOverload]:
    """Whether an op applies dropout with random numbers drawn inside its kernel; a backward uses its forward's."""
    if not isinstance(func, OpOverload) or not _DRAWS_INSIDE.fullmatch(name := fx.op_name(func)):
        return False
    if name.endswith("_backward"):
        return False
    return bool(argument(func, "dropout_p", args, kwargs))


def argument(func: OpOverload, name: str, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
    """The argument of this name, positional or not; None if it is missing."""
    if name in kwargs:
        return kwargs[name]
    names = [argument.name for argument in func._schema.arguments]
    at = names.index(name) if name in names else len(args)
    return args[at] if at < len(args) else None


def generator_position(generator: torch.Generator | None) -> str:
    """A hash of the states of the generators that an op may draw from."""
    states = [generator.get_state()] if generator is not None else [torch.get_rng_state()]
    if generator is None and gpu.in_use():
        states += torch.cuda.get_rng_state_all()
    return hashlib.blake2b(b"".join(state.numpy().tobytes() for state in states), digest_size=8).hexdigest()


def draw_of(name: str, result: object, place: str) -> str:
    """The record of one draw; `result` is None of an op that does not return its numbers."""
    made = [f"{leaf.dtype}{tuple(leaf.shape)}" for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
    return f"{name} {' '.join(made)} {place}"


class _Recorder(OpMode):
    def __init__(self) -> None:
        super().__init__()
        self.draws: list[str] = []

    def run(self, func: OpOverload, args: Args, kwargs: Kwargs) -> object:
        outside = draws_outside(func)
        if not outside and not draws_inside(func, args, kwargs):
            return func(*args, **kwargs)
        place = generator_position(kwargs.get("generator"))
        result = func(*args, **kwargs)
        self.draws.append(draw_of(fx.op_name(func), result if outside else None, place))
        return result


@contextmanager
def recorded_draws() -> Iterator[list[str]]:
    """Record what is drawn in this context."""
    with _Recorder() as recorder:
        yield recorder.draws
