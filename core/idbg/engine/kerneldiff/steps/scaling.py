"""Does a GradScaler skip a step? As it does in eager, also in float64, where nothing is too large for a gradient.

A scale of 65536 is meant to overflow in float16, and the step is then left out. Float64 would take it, and be another
training. So where the program has a scaler, eager goes ahead, and float64 finds what eager found.
"""

from collections.abc import Mapping
from typing import cast

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from idbg.engine.compat import fx
from idbg.engine.kerneldiff.float64.draws import Op
from idbg.engine.kerneldiff.float64.wide_ops import UNSCALES


class RecordedChecks(TorchDispatchMode):
    """While it is in force, each check of gradients is taken down."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[float] = []

    def __torch_dispatch__(
        self, func: Op, types: object, args: tuple[object, ...] = (), kwargs: Mapping[str, object] | None = None
    ) -> object:
        result = func(*args, **dict(kwargs or {}))
        if fx.op_name(func) == UNSCALES:
            self.found.append(float(cast("Tensor", args[1])))
        return result


class Follows(TorchDispatchMode):
    """While it is in force, each check of gradients finds what was `found` at the same place."""

    supports_higher_order_operators = True

    def __init__(self, found: list[float]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._found = iter(found)

    def __torch_dispatch__(
        self, func: Op, types: object, args: tuple[object, ...] = (), kwargs: Mapping[str, object] | None = None
    ) -> object:
        result = func(*args, **dict(kwargs or {}))
        if fx.op_name(func) == UNSCALES and (found := next(self._found, None)) is not None:
            cast("Tensor", args[1]).fill_(found)
        return result
