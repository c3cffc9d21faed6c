"""Find custom ops that write to arguments which their schema declares as read only, or return them.

A compiler may move such an op before or behind what reads the argument: the schema is all that it knows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeGuard

import torch
from torch import Tensor

from idbg.engine.compat import fx, registrations
from idbg.engine.compat.torch_types import OpOverload, tree_leaves, tree_map
from idbg.engine.kerneldiff.float64.op_mode import Args, Kwargs, OpMode

_Function = Callable[..., object]


@dataclass(frozen=True)
class UndeclaredWrite:
    """`op` as "my::op", and its argument's name. `returned`: it only returns the argument's memory: what writes to its
    result writes there.
    """

    op: str
    argument: str
    returned: bool = False


class ReadOnlyArguments:
    """Copies of the arguments that a custom op's schema declares as read only, from before the call."""

    def __init__(self, func: object, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        self._op = fx.op_name(func)
        self._held: list[tuple[str, Tensor, Tensor]] = []
        if not isinstance(func, OpOverload) or registrations.is_torchs(func.namespace):
            return
        for at, argument in enumerate(func._schema.arguments):
            value = args[at] if at < len(args) else kwargs.get(argument.name)
            if argument.alias_info is None:
                self._held += [(argument.name, leaf, leaf.clone()) for leaf in tree_leaves(value) if _is_plain(leaf)]

    def written(self) -> list[tuple[UndeclaredWrite, Tensor, Tensor]]:
        """The arguments that changed, each with its value before."""
        return [
            (UndeclaredWrite(self._op, name), now, then) for name, now, then in self._held if not _is_same(now, then)
        ]

    def returned(self, result: object) -> list[UndeclaredWrite]:
        """The arguments whose memory the op has returned."""
        memory = {leaf.untyped_storage().data_ptr() for leaf in tree_leaves(result) if _is_plain(leaf)} - {0}
        own = {name: now.untyped_storage().data_ptr() for name, now, _ in self._held}
        return [UndeclaredWrite(self._op, name, returned=True) for name, at in own.items() if at in memory]


def _is_plain(value: object) -> TypeGuard[Tensor]:
    if not isinstance(value, Tensor) or type(value) not in (Tensor, torch.nn.Parameter):
        return False
    return value.layout == torch.strided and not value.is_meta


def _is_same(now: Tensor, then: Tensor) -> bool:
    return torch.equal(now, then) or bool(((now == then) | ((now != now) & (then != then))).all())


class WithoutUndeclaredWrites(OpMode):
    """Reverts undeclared writes right after the op."""

    def run(self, func: OpOverload, args: Args, kwargs: Kwargs) -> object:
        return without_undeclared_writes(func, args, kwargs)


def without_undeclared_writes(
    func: _Function, args: Args, kwargs: Kwargs, run: Callable[[_Function, Args, Kwargs], object] | None = None
) -> object:
    """The op's result, with its undeclared writes reverted, and copied if it is an argument; `run` runs it."""
    before = ReadOnlyArguments(func, args, kwargs)
    result = run(func, args, kwargs) if run else func(*args, **kwargs)
    for _, now, then in before.written():
        now.copy_(then)
    return tree_map(_copy, result) if before.returned(result) else result


def _copy(leaf: object) -> object:
    return leaf.clone() if isinstance(leaf, Tensor) else leaf
