"""Find the arguments that an op of the program's own writes to, though its schema declares that it only reads them.

A compiler may move such an op before or behind what reads the argument: the schema is all that it knows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

import torch
from torch import Tensor
from torch._ops import HigherOrderOperator, OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from idbg.engine.compat import comparing, fx, registrations


@dataclass(frozen=True)
class UndeclaredWrite:
    """`op` as "my::op", and its argument's name."""

    op: str
    argument: str

    def __str__(self) -> str:
        what = f"{self.op} writes to its argument {self.argument}, which its schema does not declare"
        return (
            f'{what} (mutates_args=("{self.argument}",)): a compiler may move it, and what reads that argument differs'
        )


class Before:
    """What a call's arguments hold before it, those that its op's schema declares as only read. Nothing is kept of
    torch's own ops.
    """

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
        """The arguments that hold something else now, each with what it held before."""
        return [
            (UndeclaredWrite(self._op, name), now, then) for name, now, then in self._held if not _is_same(now, then)
        ]


def _is_plain(value: object) -> TypeGuard[Tensor]:
    if not isinstance(value, Tensor) or type(value) not in (Tensor, torch.nn.Parameter):
        return False
    return value.layout == torch.strided and not value.is_meta


def _is_same(now: Tensor, then: Tensor) -> bool:
    return torch.equal(now, then) or bool(((now == then) | ((now != now) & (then != then))).all())


class WithoutUndeclaredWrites(TorchDispatchMode):
    """While it is in force, what ops write without declaring it is put back right after them."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self,
        func: OpOverload | HigherOrderOperator,
        types: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        given = dict(kwargs or {})
        if (kernel := comparing.dense_kernel(func)) is not None:
            with self:  # what a higher-order op holds runs op by op
                return kernel(*args, **given)
        before = Before(func, args, given)
        result = func(*args, **given)
        for _, now, then in before.written():
            now.copy_(then)
        return result
